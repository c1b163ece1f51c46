"""A map as it fits a page: read from its overviews, so that memory does not depend on its size."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rasterio.enums import Resampling

from ...datasets.files import find_files
from ...errors import DataError, NoDataError
from ..reading.grid import Grid
from ..reading.raster_files import EXTENSIONS, opened, reading
from .class_map import class_names
from .map_layers import Color, some_colors

_MOST_CLASSES = 256  # of whole numbers without a palette; beyond, they are measurements


@dataclass(frozen=True)
class SmallMap:
    """The pixels of a map of one band, masked where there is no data; of classes, their names and colours."""

    pixels: Any
    grid: Grid  # of the file
    description: str
    names: dict[int, str]
    colors: dict[int, Color]

    @property
    def is_of_classes(self) -> bool:
        return bool(self.colors)

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top: in units of the map, or in pixels if it is rotated."""
        transform = self.grid.transform
        if transform.b or transform.d:
            return 0, self.grid.width, self.grid.height, 0
        (left, top), (right, bottom) = transform @ (0, 0), transform @ (self.grid.width, self.grid.height)
        return left, right, bottom, top


def read_small(path: str | Path, most: int) -> SmallMap:
    """Read a map so that its longer side has at most `most` pixels."""
    (file, *more) = find_files(path, EXTENSIONS)
    if more:
        raise DataError(f"{path} has {1 + len(more)} rasters, but a map is one.")
    with opened(file) as raster, reading(file):
        if raster.count != 1:
            raise DataError(f"{file.path} has {raster.count} bands, but a map has one.")
        grid = Grid(raster.width, raster.height, raster.transform, raster.crs)
        shrunk = max(1.0, max(grid.width, grid.height) / most)
        shape = (max(1, round(grid.height / shrunk)), max(1, round(grid.width / shrunk)))
        whole = np.dtype(raster.dtypes[0]).kind in "iu"
        how = Resampling.nearest if whole else Resampling.average
        pixels = raster.read(1, out_shape=shape, masked=True, resampling=how)
        palette = raster.colormap(1) if whole and "palette" in {c.name for c in raster.colorinterp} else {}
        names, description = class_names(raster.tags()), raster.descriptions[0] or ""
    if not whole:
        pixels = np.ma.masked_invalid(pixels)
    if not pixels.count():
        raise NoDataError(file.path, "all of its pixels are nodata")
    colors = _colors(pixels, names, palette) if whole else {}
    return SmallMap(pixels, grid, description, names, colors)


def _colors(pixels: Any, names: dict[int, str], palette: dict[int, tuple[int, ...]]) -> dict[int, Color]:
    """The colours of all classes in the picture: those of the file, or others that differ."""
    values = np.unique(pixels.compressed()).tolist()
    if not palette:
        known = sorted({*values, *names})
        return dict(zip(known, some_colors(len(known)), strict=True)) if len(values) <= _MOST_CLASSES else {}
    return {value: palette.get(value, (0, 0, 0, 255))[:3] for value in values}  # type: ignore[misc]
