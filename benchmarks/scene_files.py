"""Generated imagery as GeoTIFFs: a file for each band, and one with labels."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import rasterio
from affine import Affine

from imagery import N_BANDS, WIDTH, pixels

LINES_AT_A_TIME = 512
_PIXEL = 30.0  # metres
_LABELS = "labels.tif"


@dataclass(frozen=True)
class Scenes:
    """Scenes one south of the other: the files of their bands, and one file of the labels of all."""

    bands: list[list[str]]
    labels: str

    def first(self, count: int) -> Scenes:
        return replace(self, bands=self.bands[:count])

    @property
    def files(self) -> list[str]:
        return [*(band for bands in self.bands for band in bands), self.labels]

    @property
    def nbytes(self) -> int:
        return sum(os.path.getsize(file) for file in self.files)


def write_scene(directory: Path, lines: int, seed: int = 0, width: int = WIDTH) -> tuple[list[str], str]:
    """The files of the bands and of the labels; files that are there are taken as they are."""
    made = write_scenes(directory, 1, lines, width, seed)
    return made.bands[0], made.labels


def write_scenes(directory: Path, count: int, lines: int, width: int = WIDTH, seed: int = 0) -> Scenes:
    """Scenes of so many lines each; files that are there are taken as they are."""
    folders = [directory / f"part-{part + 1}" for part in range(count)]
    bands = [[folder / f"scene_B{band + 1}.tif" for band in range(N_BANDS)] for folder in folders]
    labels, done = directory / _LABELS, directory / "complete"
    if not done.exists():
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        with rasterio.open(labels, "w", **_profile(0, count * lines, width)) as label_file:
            for part, files in enumerate(bands):
                _write_part(files, label_file, part * lines, lines, seed)
        done.touch()
    return Scenes([[str(band) for band in files] for files in bands], str(labels))


def _profile(first: int, lines: int, width: int) -> dict[str, Any]:
    """Of a file that begins with a line of the ground."""
    return {
        "driver": "GTiff",
        "width": width,
        "height": lines,
        "count": 1,
        "dtype": "uint8",
        "nodata": 0,
        "crs": "EPSG:32637",
        "transform": Affine(_PIXEL, 0, 500_000, 0, -_PIXEL, 4_000_000 - first * _PIXEL),
        "tiled": True,
        "blockxsize": 512,
        "blockysize": 512,
        "compress": "deflate",
        "bigtiff": "if_safer",
    }


def _write_part(names: list[Path], label_file: Any, first: int, lines: int, seed: int) -> None:
    """Some lines of the ground: the bands to files of their own, the labels to their place in a file."""
    width = label_file.width
    with ExitStack() as stack:
        files = [
            stack.enter_context(rasterio.open(name, "w", **_profile(first, lines, width))) for name in names
        ]
        for line in range(0, lines, LINES_AT_A_TIME):
            n = min(LINES_AT_A_TIME, lines - line)
            values, labels = pixels(first + line, n, seed, width)
            for band, file in enumerate(files):
                window = rasterio.windows.Window(0, line, width, n)
                file.write(values[:, band].reshape(n, width), 1, window=window)
            window = rasterio.windows.Window(0, first + line, width, n)
            label_file.write(labels.reshape(n, width) + 1, 1, window=window)


def first_labels(labels: str, lines: int) -> str:
    """A file with the labels of the first lines, and none beyond them."""
    path = Path(labels).with_name(f"first-{lines}-labels.tif")
    with rasterio.open(labels) as source, rasterio.open(path, "w", **source.profile) as file:
        values = source.read(1)
        values[lines:] = 0
        file.write(values, 1)
    return str(path)
