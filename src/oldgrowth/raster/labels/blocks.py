"""Spatial blocks: pixels near each other are in one part, so that no forest is tested on its neighbours."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from rasterio.errors import CRSError

from ...checks import is_real
from ...errors import ParameterError
from ..reading.grid import Grid
from ..reading.strips import Strip, StripRows

Whole = npt.NDArray[np.int64]

MOST_BLOCKS = 10_000_000
_EARTH = 6_378_137.0  # metres, the radius at the equator
_SIZE = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*(km|m)?\s*")
_WANTED = "a distance, such as '2 km', '500 m' or a number of map units"


def parse_size(size: Any) -> tuple[float, bool]:
    """A distance, and whether it is in metres; from "2 km", "500 m" or a number of map units."""
    found = _SIZE.fullmatch(size) if isinstance(size, str) else None
    number = float(found[1]) if found is not None else float(size) if is_real(size) else 0.0
    if not 0 < number < math.inf:
        raise ParameterError("size", size, _WANTED)
    unit = None if found is None else found[2]
    return number * (1000 if unit == "km" else 1), unit is not None


@dataclass(frozen=True)
class Area:
    """The blocks of a coordinate reference system: how large they are, and how they are numbered."""

    crs: Any
    width: float  # in units of the map
    height: float
    first: int  # number of the first block
    left: int
    low: int
    columns: int
    lines: int


@dataclass(frozen=True)
class BlockGrid:
    """Squares with fixed places in a coordinate reference system: scenes that overlap have the same ones.

    A pixel is in the block that its centre (x, y) is in: number floor(x / size) along one axis and
    floor(y / size) along the other. Blocks are numbered from 0.
    """

    grids: tuple[Grid, ...]
    areas: tuple[Area, ...]  # of each scene
    border: int  # in pixels, of scenes: blocks are known so far beyond their edges

    @staticmethod
    def of(size: Any, grids: Sequence[Grid], patch: int) -> BlockGrid:
        """Blocks for scenes, known as far from each as pixels of patches may overlap."""
        border = 2 * (patch // 2)
        areas: list[Area] = []
        for grid in grids:
            if not any(area.crs == grid.crs for area in areas):
                alike = [one for one in grids if one.crs == grid.crs]
                first = areas[-1].first + areas[-1].columns * areas[-1].lines if areas else 0
                areas.append(_area(size, alike, border, first))
                _check_size(size, areas[-1], alike, patch)
        of_grids = [next(area for area in areas if area.crs == grid.crs) for grid in grids]
        blocks = BlockGrid(tuple(grids), tuple(of_grids), border)
        if blocks.count > MOST_BLOCKS:
            raise ParameterError("size", size, f"larger: there would be {blocks.count:,} blocks")
        return blocks

    @property
    def count(self) -> int:
        """How many numbers of blocks there are."""
        return max(area.first + area.columns * area.lines for area in self.areas)

    def numbers(self, strip: Strip, border: int = 0) -> Whole:
        """The number of the block of each pixel of a strip, by line and pixel, with a border around it."""
        grid, area = self.grids[strip.scene], self.areas[strip.scene]
        pixels = np.arange(-border, grid.width + border)[None]
        lines = np.arange(strip.first - border, strip.stop + border)[:, None]
        column, line = _places(grid, area.width, area.height, pixels, lines)
        return area.first + (line - area.low) * area.columns + (column - area.left)


def _places(grid: Grid, width: float, height: float, pixels: Whole, lines: Whole) -> tuple[Whole, Whole]:
    """The column and the line of the block of each pixel."""
    t = grid.transform
    x = t.c + (pixels + 0.5) * t.a
    y = t.f + (lines + 0.5) * t.e
    if t.b != 0 or t.d != 0:
        x, y = x + (lines + 0.5) * t.b, y + (pixels + 0.5) * t.d
    return np.floor(x / width).astype(np.int64), np.floor(y / height).astype(np.int64)


def _area(size: Any, grids: Sequence[Grid], border: int, first: int) -> Area:
    """The blocks around scenes of one coordinate reference system."""
    width, height = _units(size, grids)
    found = []
    for grid in grids:
        pixels = np.array([[-border, grid.width + border - 1]])
        lines = np.array([[-border], [grid.height + border - 1]])
        column, line = _places(grid, width, height, pixels, lines)
        found.append((column.min(), column.max(), line.min(), line.max()))
    left, _, low, _ = np.min(found, axis=0).tolist()
    _, right, _, high = np.max(found, axis=0).tolist()
    return Area(grids[0].crs, width, height, first, left, low, right - left + 1, high - low + 1)


def _units(size: Any, grids: Sequence[Grid]) -> tuple[float, float]:
    """The size along both axes in units of the map; in degrees, for the latitude in the middle."""
    distance, in_metres = parse_size(size)
    if not in_metres:
        return distance, distance
    crs = grids[0].crs
    try:
        if not crs.is_geographic:
            _, metres = crs.linear_units_factor
            return distance / metres, distance / metres
        _, radians = crs.units_factor
    except CRSError as error:
        wanted = f"a number of map units: the unit of {crs} is not known"
        raise ParameterError("size", size, wanted) from error
    middles = [(grid.transform @ (grid.width / 2, grid.height / 2))[1] for grid in grids]
    narrowing = max(0.01, math.cos(radians * sum(middles) / len(middles)))
    height = distance / (_EARTH * radians)
    return height / narrowing, height


def _check_size(size: Any, area: Area, grids: Sequence[Grid], patch: int) -> None:
    """Refuse blocks that are smaller than a patch."""
    for grid in grids:
        t = grid.transform
        x, y = patch * math.hypot(t.a, t.d), patch * math.hypot(t.b, t.e)
        if area.width < x * (1 - 1e-9) or area.height < y * (1 - 1e-9):
            what = "pixel" if patch == 1 else f"patch of {patch} x {patch} pixels"
            raise ParameterError("size", size, f"larger: a {what} is {x:g} x {y:g} map units large")


def rows_by_block(rows: Iterable[StripRows], blocks: BlockGrid) -> Whole:
    """How many rows each block has, by its number."""
    counts = np.zeros(blocks.count, dtype=np.int64)
    for some in rows:
        if len(some.lines):
            numbers = blocks.numbers(some.strip)[some.lines, some.pixels]
            low = int(numbers.min())
            found = np.bincount(numbers - low)
            counts[low : low + len(found)] += found
    return counts


def check_several(counts: Whole, size: Any, least: int = 2) -> None:
    """Refuse blocks of which too few have rows; given the rows of each."""
    found = int(np.count_nonzero(counts))
    if found < least:
        what = "1 block" if found == 1 else f"{found} blocks"
        raise ParameterError(
            "size", size, f"smaller: all rows are in {what}, and at least {least} are needed"
        )


def drawn_blocks(counts: Whole, share: float, seed: int) -> npt.NDArray[np.bool_]:
    """Blocks in random order until they have this share of all rows; at least one, and not all."""
    chosen = np.zeros(len(counts), dtype=bool)
    wanted, have = share * int(counts.sum()), 0
    order = np.random.default_rng(seed).permutation(np.flatnonzero(counts))
    for block in order[:-1].tolist():
        more = int(counts[block])
        if have and abs(have + more - wanted) > abs(have - wanted):
            continue
        chosen[block] = True
        have += more
        if have >= wanted:
            break
    return chosen
