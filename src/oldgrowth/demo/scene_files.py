"""A generated scene on disk: the training rows in Parquet files, pixels and classes in .npy files.

Generating a scene takes far more memory than training on it may, so it runs in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import SceneError
from .scene import FEATURE_NAMES, Bools, Scene, make_scene, patches_of_lines, split_blocks

TARGET = "label"
_BLOCKS_ACROSS = 12
_BLOCK_SIDES = (5, 50)
_ROWS_PER_FILE = 250_000
_WRITERS = 2


@dataclass(frozen=True)
class SceneFiles:
    """The scene, mapped from its files, its test pixels, and the files of the other rows."""

    scene: Scene
    test: Bools
    rows: list[Path]


def make_scene_files(directory: Path, size: int, seed: int) -> SceneFiles:
    """Generate a scene of `size` x `size` pixels in the directory, in another process."""
    # -P: do not import from the working directory. In its own session the process does not get the Ctrl-C
    # of the terminal; `run` ends it.
    command = [sys.executable, "-P", "-m", __name__, str(directory), str(size), str(seed)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    if done.returncode:
        raise SceneError(done.returncode, done.stderr)
    bands, labels, truth, test = (
        np.load(directory / f"{name}.npy", mmap_mode="r") for name in ("bands", "labels", "truth", "test")
    )
    return SceneFiles(Scene(bands, labels, truth), test, sorted(directory.glob("*.parquet")))


def write_scene(directory: Path, size: int, seed: int) -> None:
    scene = make_scene(size, size, seed)
    smallest, largest = _BLOCK_SIDES
    block = min(largest, max(smallest, size // _BLOCKS_ACROSS))
    test = split_blocks(scene, block=block, seed=seed)
    layers: dict[str, npt.NDArray[Any]] = {
        "bands": scene.bands, "labels": scene.labels, "truth": scene.truth, "test": test
    }  # fmt: skip
    for name, pixels in layers.items():
        np.save(directory / f"{name}.npy", pixels)

    def write(first: int, last: int) -> None:
        train = ~test[first:last].ravel()
        rows = patches_of_lines(scene.bands, first, last)[train]
        labels = scene.labels[first:last].ravel()[train]
        _write_rows(directory / f"lines-{first:05d}.parquet", rows, labels)

    with ThreadPoolExecutor(_WRITERS) as pool:
        for task in [pool.submit(write, *lines) for lines in strips(scene.shape, _ROWS_PER_FILE)]:
            task.result()


def strips(shape: tuple[int, int], pixels: int) -> Iterator[tuple[int, int]]:
    """First line, and the line after the last, of strips of about this number of pixels."""
    height, width = shape
    step = max(1, pixels // width)
    return ((first, min(first + step, height)) for first in range(0, height, step))


def _write_rows(path: Path, rows: npt.NDArray[np.uint16], labels: npt.NDArray[np.uint8]) -> None:
    by_feature = np.ascontiguousarray(rows.T)
    columns = [pa.array(column) for column in by_feature] + [pa.array(labels)]
    pq.write_table(pa.table(columns, names=[*FEATURE_NAMES, TARGET]), path)


def main(directory: str, size: str, seed: str) -> int:
    """The main function of the other process; the last line of its errors is shown to the user."""
    try:
        write_scene(Path(directory), int(size), int(seed))
    except (OSError, MemoryError, pa.ArrowException) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
