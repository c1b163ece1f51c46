"""A map of classes as a raster: which classes it has, how many pixels of each, and where."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rasterio.windows import Window

from ...checks import path_of
from ...datasets.files import SourceFile
from ...errors import MissingCRSError, NoDataError, NotAClassMapError
from ..reading.grid import Grid
from ..reading.raster_files import find_rasters, look_at, opened, reading

MOST_CLASSES = 65_535
# Pixels that are read, decoded and looked at at a time, about. Whole rows of blocks are read, which would be
# decoded several times otherwise, unless they are larger than the most.
_READ_PIXELS, _MOST_PIXELS, _STRIP_PIXELS = 1 << 22, 1 << 26, 1 << 20
_NAME = re.compile(r"CLASS_(-?\d+)")


@dataclass(frozen=True)
class MapStrip:
    """Lines of a map from the line `first` on: pixel values, and which pixels have a class."""

    first: int
    values: npt.NDArray[np.integer[Any]]
    valid: npt.NDArray[np.bool_]

    def counts(self) -> dict[int, int]:
        """How many pixels each class has, by pixel value."""
        values = self.values.ravel() if self.valid.all() else self.values[self.valid]
        if values.dtype.kind == "u" and values.dtype.itemsize <= 2:
            counts = np.bincount(values)
            found = np.flatnonzero(counts)
            return dict(zip(found.tolist(), counts[found].tolist(), strict=True))
        found, counts = np.unique(values, return_counts=True)
        return dict(zip(found.tolist(), counts.tolist(), strict=True))

    def places(self, value: int) -> npt.NDArray[np.intp]:
        """The pixels of a class, counted within the strip in the order of the scan."""
        return np.flatnonzero((self.values == value) & self.valid)


@dataclass(frozen=True)
class ClassMap:
    """A map of classes in a file. Pixels without data have no class."""

    file: SourceFile
    grid: Grid
    names: dict[int, str]  # of pixel values, if the file has them
    block: tuple[int, int]  # lines and pixels that are decoded together

    def label(self, value: int) -> str:
        """The name of a class, or its pixel value."""
        return self.names.get(value, str(value))

    @property
    def pixel_hectares(self) -> float | None:
        """The area of a pixel in the projection of the map; None if pixels are in degrees."""
        if not self.grid.crs.is_projected:
            return None
        _, metres = self.grid.crs.linear_units_factor
        return abs(self.grid.transform.determinant) * metres**2 / 10_000

    def strips(self) -> Iterator[MapStrip]:
        """All lines, a strip at a time."""
        height, width = self.grid.height, self.grid.width
        read = _lines_at_a_time(self.block[0], width)
        lines = max(1, _STRIP_PIXELS // width)
        with opened(self.file) as raster:
            for first in range(0, height, read):
                values, valid = self._read(raster, first, min(first + read, height))
                for top in range(0, len(values), lines):
                    yield MapStrip(first + top, values[top : top + lines], valid[top : top + lines])

    def _read(self, raster: Any, first: int, stop: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Values of some lines and which are valid, read by columns of blocks."""
        width = self.grid.width
        values = np.empty((stop - first, width), dtype=raster.dtypes[0])
        valid = np.empty(values.shape, dtype=bool)
        columns = self.block[1] * max(1, _READ_PIXELS // (len(values) * self.block[1]))
        with reading(self.file):
            for left in range(0, width, columns):
                part = slice(left, min(left + columns, width))
                window = Window(left, first, part.stop - left, len(values))
                found = raster.read(1, window=window, masked=True)
                values[:, part], valid[:, part] = found.data, ~np.ma.getmaskarray(found)
        return values, valid

    def counts(self) -> dict[int, int]:
        """How many pixels each class has, by pixel value."""
        counts: Counter[int] = Counter()
        for strip in self.strips():
            self.add(counts, strip.counts())
        return self.checked(counts)

    def add(self, counts: Counter[int], more: dict[int, int]) -> None:
        """Add the pixels of a strip to the numbers of pixels."""
        counts.update(more)
        if len(counts) > MOST_CLASSES:
            raise NotAClassMapError(self.file.path, f"it has more than {MOST_CLASSES:,} different values")

    def checked(self, counts: Counter[int]) -> dict[int, int]:
        """The numbers of pixels in the order of the values; there must be some."""
        if not counts:
            raise NoDataError(self.file.path, "all of its pixels are nodata")
        return dict(sorted(counts.items()))


def open_class_map(path: str | Path) -> ClassMap:
    """Open a raster of one band of whole numbers as a map of classes."""
    path_of("path", path)
    (file, *more) = find_rasters(path)
    if more:
        raise NotAClassMapError(str(path), f"it has {1 + len(more)} rasters")
    (band, *others) = look_at(file)
    if others:
        raise NotAClassMapError(file.path, f"it has {1 + len(others)} bands")
    if band.dtype.kind not in "iu":
        raise NotAClassMapError(file.path, f"its values are of type {band.dtype}")
    if band.grid.crs is None:
        raise MissingCRSError(file.path, "so that points cannot be placed on it")
    with opened(file) as raster:
        names, columns = class_names(raster.tags()), raster.block_shapes[0][1]
    return ClassMap(file, band.grid, names, (band.block_lines, columns))


def class_names(tags: Mapping[str, str]) -> dict[int, str]:
    """Names by pixel value; those that several values have are told apart by these."""
    found = ((_NAME.fullmatch(key), name) for key, name in tags.items())
    names = {int(value[1]): name for value, name in found if value is not None}
    often = Counter(names.values())
    return {value: name if often[name] == 1 else f"{name} ({value})" for value, name in names.items()}


def _lines_at_a_time(block: int, width: int) -> int:
    if block * width > _MOST_PIXELS:
        return max(1, _READ_PIXELS // width)
    return block * max(1, _READ_PIXELS // (block * width))
