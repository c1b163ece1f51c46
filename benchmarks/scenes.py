"""Maps and fits of scenes: python benchmarks/scenes.py [--quick] [--billion].

A generated scene of 9 bands of bytes in GeoTIFFs, with 3x3 patches. Measurements alternate, each in its own
process. Rivals map fewer lines, as they are slow; speeds are compared in pixels a second. Each goal is shown
with its figure.

    python benchmarks/scenes.py            61 megapixels; an hour, 2 GB of disk
    python benchmarks/scenes.py --quick    4 megapixels
    python benchmarks/scenes.py --billion  the paper's billion pixels in steps of 250 million, see
                                           billion_scenes.py; hours, 60 GB of disk
"""

from __future__ import annotations

import argparse
import pickle
import shutil
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

import otb
import scene_goals
from billion_scenes import FIT, STAGES, billion, run_worker
from journal import Journal, Run
from oldgrowth import RandomForestClassifier, raster
from oldgrowth.messages.text import human_bytes
from raster_worker import PATCH, padded_patches, read_lines
from scene_files import first_labels, write_scene
from scene_goals import (
    DASK,
    LOOP,
    MAP,
    OTB,
    PREDICT,
    SHALLOW_MAP,
    STORES,
    bytes_per_row,
    fit_name,
    stages_of,
)

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "rasters-billion.jsonl"
TREES = 24
MAP_LIMIT = 512 * 10**6
TRAINING_LINES = 64  # of which the pixels are trained on, for the maps
OTB_TRAINING_LINES = 16  # its training takes minutes


def main() -> None:
    options = parse()
    console = Console(highlight=False, width=max(Console().width, 110))
    work = options.directory
    work.mkdir(parents=True, exist_ok=True)
    if options.billion:
        billion(work, options.step, Journal(RESULTS), console)
    else:
        width, lines, rival_lines, fit_lines = (
            (8000, 7625, 256, 1000) if not options.quick else (2000, 2000, 64, 400)
        )
        maps(work, (width, lines, rival_lines), options.repeats, console)
        fits(work, (width, fit_lines), options.repeats, console)
    if not options.keep:
        shutil.rmtree(work)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--directory", type=Path, default=HERE / "results" / "rasters", help="for scenes and maps"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--billion", action="store_true")
    parser.add_argument("--step", type=float, default=250, help="megapixels between the sizes of --billion")
    parser.add_argument("--keep", action="store_true", help="keep the data")
    return parser.parse_args()


# Maps.


def maps(work: Path, size: tuple[int, int, int], repeats: int, console: Console) -> None:
    width, lines, rival_lines = size
    bands, labels = write_scene(work / f"scene-{width}x{lines}", lines, width=width)
    quarter, _ = write_scene(work / f"scene-{width}x{lines // 4}", lines // 4, width=width)
    models = train(work, bands, labels, TRAINING_LINES * 8000 // width)
    out = str(work / "map.tif")
    common: dict[str, Any] = {"bands": bands, "model": models["oldgrowth"]}
    rival = {"bands": bands, "model": models["scikit-learn"], "out": out, "lines": rival_lines}
    jobs: dict[str, Run] = {
        MAP: common | {"out": out, "memory_limit": MAP_LIMIT},
        PREDICT: common,
        LOOP: rival,
        DASK: rival,
    }
    if otb.is_installed():
        jobs |= jobs_with_otb(work, jobs[MAP], labels, rival_lines)
    else:
        console.print("Orfeo ToolBox is left out: its applications are not installed (Debian: otb-bin).")
    runs: dict[str, list[Run]] = {what: [] for what in jobs}
    for _ in range(repeats):
        for what, arguments in jobs.items():
            runs[what].append(run_worker(MAP if what == SHALLOW_MAP else what, **arguments))
            last = runs[what][-1]
            console.print(
                f"{what}: {last['pixels'] / last['seconds'] / 1e6:.3f} megapixels/s", soft_wrap=True
            )
    small = run_worker(MAP, **(jobs[MAP] | {"bands": quarter}))
    show_maps(console, runs, width * lines, small)


def train(work: Path, bands: list[str], labels: str, lines: int) -> dict[str, str]:
    """Forests of both libraries on the first lines of the scene."""
    from sklearn.ensemble import RandomForestClassifier as ScikitLearn

    ours, theirs = work / "forest.og", work / "forest.pickle"
    scene = raster.open_scene(bands, patch=PATCH).with_labels(first_labels(labels, lines))
    RandomForestClassifier(TREES, random_state=0).fit(scene).save(ours)
    batches = [(batch.x, np.asarray(batch.y)) for batch in scene.batches(1 << 18)]
    x, y = (np.concatenate(arrays) for arrays in zip(*batches, strict=True))
    model = ScikitLearn(TREES, n_jobs=-1, random_state=0).fit(np.nan_to_num(x), y)
    theirs.write_bytes(pickle.dumps(model))
    return {"oldgrowth": str(ours), "scikit-learn": str(theirs)}


def jobs_with_otb(work: Path, our_map: Run, labels: str, rival_lines: int) -> dict[str, Run]:
    """Maps of Orfeo ToolBox and of ours, with as many trees that are no deeper than its trees may be."""
    bands, ours, theirs, stack = our_map["bands"], work / "shallow.og", work / "otb.model", work / "stack.tif"
    rows = padded_patches(bands, 0, OTB_TRAINING_LINES, OTB_TRAINING_LINES)
    rows = rows.reshape(rows.shape[0] * rows.shape[1], -1)
    y = read_lines([labels], 0, OTB_TRAINING_LINES).ravel()
    scene = raster.open_scene(bands, patch=PATCH).with_labels(first_labels(labels, OTB_TRAINING_LINES))
    RandomForestClassifier(TREES, max_depth=otb.MOST_DEPTH, random_state=0).fit(scene).save(ours)
    otb.train(rows, y.astype(np.int32), TREES, int(rows.shape[1] ** 0.5), theirs)
    lines = padded_patches(bands, 0, rival_lines, rival_lines)
    otb.write_stack(lines.reshape(*lines.shape[:2], -1), bands[0], stack)
    arguments = {"model": str(theirs), "stack": str(stack), "out": our_map["out"]}
    return {SHALLOW_MAP: our_map | {"model": str(ours)}, OTB: arguments}


def show_maps(console: Console, runs: dict[str, list[Run]], pixels: int, small: Run) -> None:
    table = Table(
        title=f"Maps, {pixels / 1e6:.0f} megapixels x 9 bands, 3x3, {TREES} trees", title_justify="left"
    )
    for heading in ("what", "megapixels/s", "seconds", "peak memory"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for what, some in runs.items():
        best = max(some, key=lambda run: run["pixels"] / run["seconds"])
        rate = best["pixels"] / best["seconds"] / 1e6
        peak = human_bytes(best["peak"]) if "peak" in best else ""
        table.add_row(what, f"{rate:.3f}", f"{best['seconds']:.1f}", peak)
    table.add_row("map, a quarter of the lines", "", f"{small['seconds']:.1f}", human_bytes(small["peak"]))
    console.print(table)
    for verdict in scene_goals.of_maps(runs, small, MAP_LIMIT):
        console.print(str(verdict), soft_wrap=True)


# Fits.


def fits(work: Path, size: tuple[int, int], repeats: int, console: Console) -> None:
    width, lines = size
    bands, labels = write_scene(work / f"scene-{width}x{lines}", lines, width=width)
    table = write_table(work / "rows.parquet", bands, labels)
    spill = {"spill_dir": str(work)}
    scene: dict[str, Any] = {"bands": bands, "labels": labels}
    jobs: dict[str, tuple[str, Run]] = {
        fit_name(source, store): (
            f"fit from {source}",
            (scene if source == "scene" else {"table": table}) | {"fit": FIT | spill | {"store": store}},
        )
        for source, stores in (("scene", ("gather", *STORES)), ("Parquet", STORES))
        for store in stores
    }
    runs: dict[str, list[Run]] = {what: [] for what in jobs}
    for _ in range(repeats):
        for what, (work_name, arguments) in jobs.items():
            runs[what].append(run_worker(work_name, **arguments))
            console.print(f"{what}: {runs[what][-1]['seconds']:.1f} s", soft_wrap=True)
    assert len({run["digest"] for some in runs.values() for run in some}) == 1, "forests differ"
    show_fits(console, runs, width * lines)


def write_table(path: Path, bands: list[str], labels: str) -> str:
    """The rows of the scene as Parquet: bytes, and null where a value is missing."""
    scene = raster.open_scene(bands, patch=PATCH).with_labels(labels)
    writer: pq.ParquetWriter | None = None
    for batch in scene.batches(1 << 18):
        missing = np.isnan(batch.x)
        values = np.where(missing, 0, batch.x).astype(np.uint8)
        columns = [pa.array(values[:, i].copy(), mask=missing[:, i].copy()) for i in range(values.shape[1])]
        assert scene.feature_names is not None
        rows = pa.table([*columns, pa.array(np.asarray(batch.y))], names=[*scene.feature_names, "label"])
        writer = writer or pq.ParquetWriter(path, rows.schema)
        writer.write_table(rows)
    assert writer is not None
    writer.close()
    return str(path)


def show_fits(console: Console, runs: dict[str, list[Run]], pixels: int) -> None:
    table = Table(
        title=f"Fits, {pixels / 1e6:.0f} megapixels x 81, 4 trees on a top tree", title_justify="left"
    )
    for heading in ("what", "median s", "best s", *STAGES, "bytes/row on disk"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for what, some in runs.items():
        best = min(some, key=lambda run: run["seconds"])
        seconds = [f"{stages_of(best)[name]['seconds']:.1f}" for name in STAGES]
        middle = median(run["seconds"] for run in some)
        table.add_row(what, f"{middle:.1f}", f"{best['seconds']:.1f}", *seconds, f"{bytes_per_row(best):.1f}")
    console.print(table)
    for verdict in scene_goals.of_fits(runs):
        console.print(str(verdict), soft_wrap=True)


if __name__ == "__main__":
    main()
