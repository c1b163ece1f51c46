"""The grid of a raster: its size, where it lies, and how a coarser one fits it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from affine import Affine

_TOLERANCE = 1e-3  # of a pixel, by which corners of two grids may differ
_WITHIN = 0.25  # of a pixel, by which centres of the same pixels may differ


@dataclass(frozen=True)
class Grid:
    """Pixels of a raster and their coordinates."""

    width: int
    height: int
    transform: Affine
    crs: Any  # rasterio's CRS, or None

    def __str__(self) -> str:
        t = self.transform
        where = "no CRS" if self.crs is None else str(self.crs)
        sizes = f"{self.pixel_width:.10g} x {math.hypot(t.b, t.e):.10g}"
        turned = ", rotated" if t.b or t.d else ""
        return (
            f"{self.width} x {self.height} pixels of {sizes} from ({t.c:.10g}, {t.f:.10g}){turned}, {where}"
        )

    @property
    def pixel_width(self) -> float:
        """The length of the side of a pixel along a line, also of a rotated grid."""
        return math.hypot(self.transform.a, self.transform.d)

    def shift_of(self, other: Grid) -> tuple[int, int] | None:
        """How many lines and pixels after this grid's first one another grid begins that has the same pixels;
        None if its pixels are others.

        They are the same if the centre of each lies well within the pixel of this grid.
        """
        if (self.crs is None) != (other.crs is None) or (self.crs is not None and self.crs != other.crs):
            return None
        moved = ~self.transform @ other.transform
        corners = ((0, 0), (other.width - 1, 0), (0, other.height - 1))
        centres = [moved @ (x + 0.5, y + 0.5) for x, y in corners]
        right, down = (math.floor(place) for place in centres[0])
        for (x, y), (u, v) in zip(corners, centres, strict=True):
            if max(abs(u - x - right - 0.5), abs(v - y - down - 0.5)) > _WITHIN:
                return None
        return down, right

    def ratio_of(self, coarse: Grid) -> int | None:
        """How many of these pixels a pixel of another grid has along a side; None if it does not fit.

        It fits if its pixels are a whole number of times as large, it begins at the same corner, and it
        covers this grid.
        """
        if (self.crs is None) != (coarse.crs is None) or (self.crs is not None and self.crs != coarse.crs):
            return None
        side = self.pixel_width
        ratio = round(coarse.pixel_width / side) if side else 0
        if ratio < 1:
            return None
        wanted = self.transform @ Affine.scale(ratio)
        corners = ((0, 0), (coarse.width, 0), (0, coarse.height))
        for corner in corners:
            (x, y), (u, v) = wanted @ corner, coarse.transform @ corner
            if max(abs(x - u), abs(y - v)) > _TOLERANCE * side * ratio:
                return None
        if coarse.width * ratio < self.width or coarse.height * ratio < self.height:
            return None
        fits = ratio > 1 or (coarse.width, coarse.height) == (self.width, self.height)
        return ratio if fits else None
