"""Blocks of one coordinate reference system on scenes of another one, where scenes overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from ..reading.coordinates import transformed
from ..reading.grid import Grid
from .blocks import Area, BlockGrid
from .shapes import Shapes, joined, shapes_of, to_pixels

_PARTS = 8  # of the side of a block, which is not straight on another map


def foreign_blocks(blocks: BlockGrid, chosen: npt.NDArray[np.bool_], scene: int) -> Shapes:
    """The chosen blocks of all other coordinate reference systems in pixels of a scene.

    They are larger by the border of the blocks and one pixel: none is missed for being curved.
    """
    grid, own = blocks.grids[scene], blocks.areas[scene]
    others = {area.first: area for area in blocks.areas if area.first != own.first}
    found = [_on_grid(area, _chosen_of(area, chosen), grid) for area in others.values()]
    polygons = np.concatenate([shapely.buffer(one, blocks.border + 1) for one in found] or [np.empty(0)])
    return shapes_of(polygons, np.arange(len(polygons)))[0] if len(polygons) else joined([])


def _chosen_of(area: Area, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """The lower left corners of the chosen blocks of an area, on its map."""
    numbers = np.flatnonzero(chosen[area.first : area.first + area.columns * area.lines])
    line, column = np.divmod(numbers, area.columns)
    return np.column_stack([(area.left + column) * area.width, (area.low + line) * area.height])


def _on_grid(area: Area, corners: npt.NDArray[Any], grid: Grid) -> npt.NDArray[Any]:
    """Blocks as polygons in pixels of a grid, of those that may touch it."""
    to_grid = to_pixels(grid.transform)
    half = np.array([area.width / 2, area.height / 2])
    middles = to_grid(transformed(corners + half, area.crs, grid.crs))
    beside = to_grid(transformed(corners, area.crs, grid.crs))
    with np.errstate(invalid="ignore"):  # where they have no place
        reach = 4 * np.abs(middles - beside).max(axis=1, initial=0)[:, None]  # more than to any corner
    size = np.array([grid.width, grid.height])
    near = np.isfinite(reach[:, 0]) & ((middles > -reach) & (middles < size + reach)).all(axis=1)
    left, low = corners[near].T
    squares = shapely.box(left, low, left + area.width, low + area.height)
    squares = shapely.segmentize(squares, max(area.width, area.height) / _PARTS)
    moved = shapely.transform(squares, lambda points: to_grid(transformed(points, area.crs, grid.crs)))
    return np.asarray(moved)
