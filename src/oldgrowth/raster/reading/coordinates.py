"""Coordinates of one coordinate reference system in another one, transformed by PROJ."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import rasterio
from rasterio import warp

from .gdal_errors import GDAL_ERRORS

Floats = npt.NDArray[np.float64]

_AT_ONCE = 1 << 16


def transformed(points: Floats, crs: Any, other: Any) -> Floats:
    """Points in two columns, in another coordinate reference system; infinite where they have no place.

    One point that has no place makes PROJ refuse all: those around it are then transformed in smaller parts.
    """
    moved = np.empty_like(points)
    parts = [(first, min(len(points), first + _AT_ONCE)) for first in range(0, len(points), _AT_ONCE)]
    while parts:
        first, stop = parts.pop()
        some = points[first:stop]
        try:
            with rasterio.Env():  # which keeps errors from being printed
                moved[first:stop] = np.column_stack(warp.transform(crs, other, some[:, 0], some[:, 1]))
        except GDAL_ERRORS:
            moved[first:stop] = np.inf
            if stop - first > 1:
                middle = (first + stop) // 2
                parts += [(first, middle), (middle, stop)]
    return moved
