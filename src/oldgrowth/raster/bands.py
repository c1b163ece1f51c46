"""Finds the bands of a scene: of one file, of a file for each band, of a directory, a glob or a VRT."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from rasterio.errors import RasterioError

from ..datasets.files import SourceFile, find_files, seen_now
from ..errors import BandError, DamagedFileError, GridError, MissingCRSError, NoDataError
from .grid import Grid

EXTENSIONS = (".tif", ".tiff", ".vrt", ".jp2", ".img")
KIND = "a raster"


@dataclass(frozen=True)
class Band:
    """A band of a file. Its pixels are `ratio` times as large as those of the scene along a side."""

    name: str
    file: SourceFile
    index: int
    dtype: np.dtype[Any]
    nodata: float | None
    scale: float = 1.0
    offset: float = 0.0
    ratio: int = 1

    @property
    def is_bytes(self) -> bool:
        """Whether its values are bytes, as they are."""
        return self.dtype == np.uint8 and (self.scale, self.offset) == (1.0, 0.0)


@dataclass(frozen=True)
class Bands:
    """All bands of a scene, their grid, and all files that their pixels are in."""

    grid: Grid
    bands: tuple[Band, ...]
    files: tuple[SourceFile, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(band.name for band in self.bands)

    def chosen(self, patterns: Sequence[str], where: str) -> tuple[Band, ...]:
        """The bands of these names or patterns, in the order of the patterns."""
        found: dict[str, Band] = {}
        for pattern in patterns:
            matching = [band for band in self.bands if fnmatchcase(band.name, pattern)]
            if not matching:
                raise BandError(where, f"has no band {pattern!r}", self.names)
            found |= {band.name: band for band in matching if band.name not in found}
        return tuple(found.values())


@contextmanager
def opened(file: SourceFile) -> Iterator[Any]:
    """A raster for reading; errors name the file."""
    with file.watched(KIND), reading(file), rasterio.open(file.path) as source:
        yield source


@contextmanager
def reading(file: SourceFile) -> Iterator[None]:
    """Turn rasterio's errors into errors that name the file."""
    try:
        yield
    except RasterioError as error:
        file.check_unchanged()
        raise DamagedFileError(file.path, KIND, error.__cause__ or error) from error


def find_bands(source: str | Path | Sequence[str | Path], skipped: Sequence[str] = ()) -> Bands:
    """Find the bands of one scene, but for files to be skipped."""
    files = [file for file in find_files(source, EXTENSIONS) if file.path not in skipped]
    if not files:
        raise NoDataError(repr(source), "no raster was found")
    names = _names_of_files([file.path for file in files])
    found: list[Band] = []
    first: tuple[Grid, SourceFile] | None = None
    all_files: dict[str, SourceFile] = {}
    for file, name in zip(files, names, strict=True):
        with opened(file) as raster:
            grid = Grid(raster.width, raster.height, raster.transform, raster.crs)
            if first is None:
                first = grid, file
                _check_crs(grid, file)
            ratio = first[0].ratio_of(grid)
            if ratio is None:
                raise GridError(file.path, grid, first[1].path, first[0])
            found += _bands_of(raster, file, name, ratio)
            for path in raster.files:  # of a VRT also those it refers to
                if os.path.isfile(path):
                    all_files.setdefault(os.path.abspath(path), seen_now(path))
    assert first is not None
    found.sort(key=lambda band: _natural(band.name) if len(files) > 1 else [])
    _check_unique(found, str(source))
    return Bands(first[0], tuple(found), tuple(all_files.values()))


def _check_crs(grid: Grid, file: SourceFile) -> None:
    if grid.crs is None:
        raise MissingCRSError(file.path, "so that labels and maps cannot be placed")


def _bands_of(raster: Any, file: SourceFile, name: str, ratio: int) -> list[Band]:
    bands = []
    for i in range(raster.count):
        description = raster.descriptions[i]
        own = _identifier(description) if description else (name if raster.count == 1 else f"B{i + 1}")
        nodata = raster.nodatavals[i]
        bands.append(
            Band(
                own,
                file,
                i + 1,
                np.dtype(raster.dtypes[i]),
                None if nodata is None or math.isnan(nodata) else float(nodata),
                float(raster.scales[i]),
                float(raster.offsets[i]),
                ratio,
            )
        )
    return bands


def _names_of_files(paths: list[str]) -> list[str]:
    """Names for bands of single files: what is left of the files' names without what they have in common."""
    stems = [Path(path).stem for path in paths]
    if len(stems) == 1:
        return [_identifier(stems[0].rsplit("_", 1)[-1])]
    different = next((i for i, marks in enumerate(zip(*stems, strict=False)) if len(set(marks)) > 1), None)
    common = min(stems, key=len)[:different]
    cut = max(common.rfind(mark) for mark in "_-. ") + 1
    return [_identifier(stem[cut:]) for stem in stems]


def _identifier(text: str) -> str:
    """A name that can be used in expressions."""
    name = re.sub(r"\W+", "_", text.strip()).strip("_") or "band"
    return f"B{name}" if name[0].isdigit() else name


def _natural(name: str) -> list[tuple[int, int, str]]:
    """A key that sorts B2 before B10."""
    parts = re.findall(r"\d+|\D+", name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]


def _check_unique(bands: list[Band], where: str) -> None:
    seen: dict[str, Band] = {}
    for band in bands:
        if band.name in seen:
            other = seen[band.name].file.path
            what = f"has two bands named {band.name!r}, in {other} and {band.file.path}"
            raise BandError(where, what, [b.name for b in bands])
        seen[band.name] = band
