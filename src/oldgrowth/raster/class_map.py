"""A map of classes as a raster: which classes it has, how many pixels of each, and where."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rasterio.windows import Window

from ..datasets.files import SourceFile, find_files
from ..errors import MissingCRSError, NoDataError, NotAClassMapError
from .grid import Grid
from .raster_files import EXTENSIONS, opened, reading

MOST_CLASSES = 65_535
_STRIP_PIXELS, _MOST_PIXELS = 1 << 22, 1 << 25  # read at a time: about, and at most
_NAME = re.compile(r"CLASS_(-?\d+)")


@dataclass(frozen=True)
class MapStrip:
    """Lines of a map from the line `first` on: pixel values, and which pixels have a class."""

    first: int
    values: npt.NDArray[np.integer[Any]]
    valid: npt.NDArray[np.bool_]

    def by_class(self) -> Iterator[tuple[int, npt.NDArray[np.intp]]]:
        """The classes in it, each with its pixels, counted within the strip in the order of the scan."""
        places = np.flatnonzero(self.valid)
        values = self.values.ravel()[places]
        order = np.argsort(values, kind="stable")
        found, firsts = np.unique(values[order], return_index=True)
        for value, (first, stop) in zip(
            found.tolist(), pairwise([*firsts.tolist(), len(values)]), strict=True
        ):
            yield value, places[order[first:stop]]


@dataclass(frozen=True)
class ClassMap:
    """A map of classes in a file. Pixels without data have no class."""

    file: SourceFile
    grid: Grid
    names: dict[int, str]  # of pixel values, if the file has them
    lines: int  # of a strip

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
        with opened(self.file) as raster:
            for first in range(0, height, self.lines):
                window = Window(0, first, width, min(self.lines, height - first))
                with reading(self.file):
                    found = raster.read(1, window=window, masked=True)
                yield MapStrip(first, found.data, ~np.ma.getmaskarray(found))

    def counts(self) -> dict[int, int]:
        """How many pixels each class has, by pixel value."""
        counts: dict[int, int] = {}
        for strip in self.strips():
            self.add(counts, strip)
        return self.checked(counts)

    def add(self, counts: dict[int, int], strip: MapStrip) -> None:
        """Add the pixels of a strip to the numbers of pixels."""
        values, found = np.unique(strip.values[strip.valid], return_counts=True)
        for value, count in zip(values.tolist(), found.tolist(), strict=True):
            counts[value] = counts.get(value, 0) + count
        if len(counts) > MOST_CLASSES:
            raise NotAClassMapError(self.file.path, f"it has more than {MOST_CLASSES:,} different values")

    def checked(self, counts: dict[int, int]) -> dict[int, int]:
        """The numbers of pixels in the order of the values; there must be some."""
        if not counts:
            raise NoDataError(self.file.path, "all of its pixels are nodata")
        return dict(sorted(counts.items()))


def open_class_map(path: str | Path) -> ClassMap:
    """Open a raster of one band of whole numbers as a map of classes."""
    (file, *more) = find_files(path, EXTENSIONS)
    if more:
        raise NotAClassMapError(str(path), f"it has {1 + len(more)} rasters")
    with opened(file) as raster:
        if raster.count != 1:
            raise NotAClassMapError(file.path, f"it has {raster.count} bands")
        if np.dtype(raster.dtypes[0]).kind not in "iu":
            raise NotAClassMapError(file.path, f"its values are of type {raster.dtypes[0]}")
        if raster.crs is None:
            raise MissingCRSError(file.path, "so that points cannot be placed on it")
        grid = Grid(raster.width, raster.height, raster.transform, raster.crs)
        names = class_names(raster.tags())
        lines = _lines_of_a_strip(raster.block_shapes[0][0], raster.width)
    return ClassMap(file, grid, names, lines)


def class_names(tags: Mapping[str, str]) -> dict[int, str]:
    """Names by pixel value; those that several values have are told apart by these."""
    found = ((_NAME.fullmatch(key), name) for key, name in tags.items())
    names = {int(value[1]): name for value, name in found if value is not None}
    often = Counter(names.values())
    return {value: name if often[name] == 1 else f"{name} ({value})" for value, name in names.items()}


def _lines_of_a_strip(block: int, width: int) -> int:
    """Whole blocks of the file, which would be read several times otherwise, unless they are large."""
    if block * width > _MOST_PIXELS:
        return max(1, _STRIP_PIXELS // width)
    return block * max(1, _STRIP_PIXELS // (block * width))
