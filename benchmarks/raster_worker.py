"""Runs one measurement on a scene: python raster_worker.py PARAMETERS prints one line of JSON.

PARAMETERS is JSON: `what` is one of WORK, the rest are its arguments.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import rasterio

import oldgrowth
import otb
from oldgrowth import raster
from oldgrowth.system.memory import peak_memory

PATCH = 3
LINES_AT_A_TIME = 256

Figures = dict[str, Any]


def main() -> None:
    wanted = json.loads(sys.argv[1])
    print("\n" + json.dumps(WORK[wanted.pop("what")](**wanted)), flush=True)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def map_scene(model: str, bands: list[str], out: str, memory_limit: int) -> Figures:
    """A map of a whole scene, from files to file."""
    forest = oldgrowth.load(model)

    def work() -> Any:
        scene = raster.open_scene(bands, patch=PATCH)
        return raster.write_map(forest, scene, out, memory_limit=memory_limit)

    seconds, written = timed(work)
    return {"seconds": seconds, "pixels": written.pixels, "peak": peak_memory()}


def predict_rows(model: str, bands: list[str]) -> Figures:
    """The same rows in memory as bytes; those at the edges, which have missing values, are left out."""
    forest = oldgrowth.load(model, mmap=False)
    image = read_lines(bands, 0, None)
    rows = np.ascontiguousarray(patches(image)).reshape(-1, PATCH * PATCH * len(bands))
    del image
    seconds, _ = timed(lambda: forest.predict(rows))
    return {"seconds": seconds, "pixels": len(rows)}


def read_lines(bands: list[str], first: int, stop: int | None) -> np.ndarray:
    """Pixels by line, pixel and band."""
    layers = []
    for band in bands:
        with rasterio.open(band) as file:
            last = file.height if stop is None else min(stop, file.height)
            layers.append(file.read(1, window=rasterio.windows.Window(0, first, file.width, last - first)))
    return np.stack(layers, axis=-1)


def patches(image: np.ndarray) -> np.ndarray:
    """By line and pixel without the border: column of the patch, line and band, as oldgrowth orders them."""
    views = np.lib.stride_tricks.sliding_window_view(image, (PATCH, PATCH), axis=(0, 1))
    return views.transpose(0, 1, 4, 3, 2)


def sklearn_loop(model: str, bands: list[str], out: str, lines: int) -> Figures:
    """The loop that people write with rasterio and scikit-learn: block by block, on all cores."""
    with open(model, "rb") as file:
        forest = pickle.load(file)

    def work() -> int:
        with rasterio.open(bands[0]) as like:
            profile = like.profile | {"height": lines}
        with rasterio.open(out, "w", **profile) as target:
            for first in range(0, lines, LINES_AT_A_TIME):
                stop = min(lines, first + LINES_AT_A_TIME)
                classes = predicted(forest, bands, first, stop, lines)
                window = rasterio.windows.Window(0, first, classes.shape[1], stop - first)
                target.write(classes.astype(np.uint8), 1, window=window)
        return lines * int(profile["width"])

    seconds, pixels = timed(work)
    return {"seconds": seconds, "pixels": pixels}


def padded_patches(bands: list[str], first: int, stop: int, lines: int) -> np.ndarray:
    """The patches of some lines of the first `lines`; what lies beyond these is as at the edge."""
    top, bottom = max(0, first - 1), min(lines, stop + 1)
    image = read_lines(bands, top, bottom)
    border = ((1 - first + top, 1 - bottom + stop), (1, 1), (0, 0))
    return patches(np.pad(image, border, mode="edge"))


def predicted(forest: Any, bands: list[str], first: int, stop: int, lines: int) -> np.ndarray:
    rows = padded_patches(bands, first, stop, lines)
    shape = rows.shape[:2]
    return forest.predict(rows.reshape(shape[0] * shape[1], -1)).reshape(shape)


def sklearn_dask(model: str, bands: list[str], out: str, lines: int) -> Figures:
    """dask.array.map_blocks with scikit-learn's forest in each task."""
    import dask
    import dask.array as da

    with open(model, "rb") as file:
        forest = pickle.load(file)
    forest.set_params(n_jobs=1)

    def work() -> int:
        image = read_lines(bands, 0, lines)
        blocks = da.from_array(
            np.pad(image, ((1, 1), (1, 1), (0, 0)), mode="edge"), chunks=(LINES_AT_A_TIME, -1, -1)
        )

        def of_block(block: np.ndarray) -> np.ndarray:
            rows = patches(block)
            shape = rows.shape[:2]
            classes = forest.predict(rows.reshape(shape[0] * shape[1], -1)).reshape(shape)
            return np.pad(classes, 1).astype(np.uint8)

        classes = da.map_overlap(
            of_block, blocks, depth=(1, 0, 0), boundary="none", drop_axis=2, dtype=np.uint8
        )
        with dask.config.set(scheduler="threads"):
            result = classes.compute()[1:-1, 1:-1]
        with rasterio.open(bands[0]) as like:
            profile = like.profile | {"height": lines}
        with rasterio.open(out, "w", **profile) as target:
            target.write(result, 1)
        return result.size

    seconds, pixels = timed(work)
    return {"seconds": seconds, "pixels": pixels}


def otb_map(model: str, stack: str, out: str) -> Figures:
    """OTB's map of an image that has the patches as bands."""
    with rasterio.open(stack) as file:
        pixels = file.width * file.height
    seconds, _ = timed(lambda: otb.classify(stack, model, out))
    return {"seconds": seconds, "pixels": pixels}


def fit_scene(bands: list[str] | list[list[str]], labels: str, fit: dict[str, Any]) -> Figures:
    """A forest of one scene or several, from files."""
    return fitted(lambda: raster.open_scene(bands, patch=PATCH).with_labels(labels), fit)


def fit_table(table: str, fit: dict[str, Any]) -> Figures:
    return fitted(lambda: oldgrowth.open_dataset(table, target="label"), fit)


def fitted(data: Callable[[], Any], fit: dict[str, Any]) -> Figures:
    most_disk = 0

    def watch(progress: Any) -> None:
        nonlocal most_disk
        most_disk = max(most_disk, progress.disk)

    seconds, forest = timed(lambda: oldgrowth.RandomForestClassifier(**fit).fit(data(), callback=watch))
    report = forest.fit_report_.as_dict()
    digest = forest.forest_.digest()
    return {
        "seconds": seconds,
        "peak": peak_memory(),
        "most_disk": most_disk,
        "report": report,
        "digest": digest,
    }


WORK: dict[str, Callable[..., Figures]] = {
    "map": map_scene,
    "predict": predict_rows,
    "rasterio + scikit-learn": sklearn_loop,
    "dask + scikit-learn": sklearn_dask,
    "OTB ImageClassifier": otb_map,
    "fit from scene": fit_scene,
    "fit from Parquet": fit_table,
}


if __name__ == "__main__":
    main()
