"""Boxes on a map: where scenes and files with labels lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import rasterio
from rasterio import warp

from .gdal_errors import GDAL_ERRORS
from .grid import Grid


@dataclass(frozen=True)
class Box:
    """The lowest and the highest coordinates of something."""

    left: float
    bottom: float
    right: float
    top: float

    def __str__(self) -> str:
        return f"x {self.left:g} to {self.right:g}, y {self.bottom:g} to {self.top:g}"

    @property
    def corners(self) -> tuple[float, float, float, float]:
        return self.left, self.bottom, self.right, self.top

    @staticmethod
    def of(grid: Grid) -> Box:
        places = ((0, 0), (grid.width, 0), (0, grid.height), (grid.width, grid.height))
        corners = np.array([grid.transform @ place for place in places])
        low, high = corners.min(axis=0), corners.max(axis=0)
        return Box(float(low[0]), float(low[1]), float(high[0]), float(high[1]))

    def has(self, other: Box) -> bool:
        """Whether another box is inside."""
        low = self.left <= other.left and self.bottom <= other.bottom
        return low and self.right >= other.right and self.top >= other.top

    def grown(self, share: float) -> Box:
        """A box that is larger by a share of its size on each side."""
        x, y = share * (self.right - self.left), share * (self.top - self.bottom)
        return Box(self.left - x, self.bottom - y, self.right + x, self.top + y)

    def moved(self, crs: Any, other: Any) -> Box | None:
        """A box in another coordinate reference system around this one; None if there is no single one."""
        try:
            with rasterio.Env():
                left, bottom, right, top = warp.transform_bounds(crs, other, *self.corners)
        except GDAL_ERRORS:
            return None
        if not np.isfinite((left, bottom, right, top)).all() or left > right or bottom > top:
            return None  # it crosses the meridian of 180 degrees, or is not known there
        return Box(left, bottom, right, top)
