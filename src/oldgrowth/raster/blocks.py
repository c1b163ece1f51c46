"""Spatial blocks: pixels near each other are in one part, so that no forest is tested on its neighbours."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ParameterError
from .grid import Grid
from .strips import Strip, StripLabels

_METRES_OF_DEGREE = 111_320.0
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(km|m)?\s*")
Block = tuple[str, int, int]  # coordinate reference system, and place along both axes


@dataclass(frozen=True)
class BlockGrid:
    """Squares of `size` metres or units of the map.

    They have fixed places in a coordinate reference system: scenes that overlap have the same ones.
    """

    size: float
    in_metres: bool

    @staticmethod
    def parse(size: Any) -> BlockGrid:
        """From "2 km", "500 m" or a number of map units."""
        found = _SIZE.fullmatch(size) if isinstance(size, str) else None
        if found is not None and float(found[1]) > 0:
            metres = float(found[1]) * (1000 if found[2] == "km" else 1)
            return BlockGrid(metres, found[2] is not None)
        if isinstance(size, int | float) and not isinstance(size, bool) and size > 0:
            return BlockGrid(float(size), False)
        raise ParameterError("size", size, "a distance, such as '2 km', '500 m' or a number of map units")

    def columns(self, grid: Grid, shift: int) -> npt.NDArray[np.int64]:
        """The place of each pixel column, seen `shift` pixels further on."""
        x = grid.transform.c + (np.arange(grid.width) + 0.5 + shift) * grid.transform.a
        return np.floor(x / self._units(grid)[0]).astype(np.int64)

    def lines(self, grid: Grid, first: int, stop: int, shift: int) -> npt.NDArray[np.int64]:
        y = grid.transform.f + (np.arange(first, stop) + 0.5 + shift) * grid.transform.e
        return np.floor(y / self._units(grid)[1]).astype(np.int64)

    def _units(self, grid: Grid) -> tuple[float, float]:
        """The size along both axes in units of the map."""
        if not self.in_metres:
            return self.size, self.size
        if grid.crs.is_geographic:
            _, latitude = grid.transform @ (grid.width / 2, grid.height / 2)
            narrowing = max(0.01, math.cos(math.radians(round(latitude))))
            return self.size / (_METRES_OF_DEGREE * narrowing), self.size / _METRES_OF_DEGREE
        _, metres = grid.crs.linear_units_factor
        return self.size / metres, self.size / metres


@dataclass(frozen=True)
class BlockFilter:
    """Pixels of some blocks; or all others, but for those nearer than `gap` pixels to these blocks."""

    blocks: BlockGrid
    chosen: frozenset[Block]
    inside: bool
    gap: int
    grids: tuple[Grid, ...]

    def keeps(self, strip: Strip, labels: StripLabels | None) -> npt.NDArray[np.bool_]:
        if self.inside:
            return self._within(strip, 0, 0)
        shifts = sorted({-self.gap, 0, self.gap})
        found = self._within(strip, 0, 0)
        for dx in shifts:
            for dy in shifts:
                found |= self._within(strip, dx, dy)
        return ~found

    def _within(self, strip: Strip, dx: int, dy: int) -> npt.NDArray[np.bool_]:
        """Whether the place `dx` and `dy` pixels away from each pixel is in a chosen block."""
        grid = self.grids[strip.scene]
        crs = str(grid.crs)
        columns, of_column = np.unique(self.blocks.columns(grid, dx), return_inverse=True)
        lines, of_line = np.unique(self.blocks.lines(grid, strip.first, strip.stop, dy), return_inverse=True)
        chosen = [
            [(crs, column, line) in self.chosen for column in columns.tolist()] for line in lines.tolist()
        ]
        return np.array(chosen, dtype=bool)[of_line][:, of_column]

    def fingerprint(self) -> dict[str, Any]:
        return {
            "blocks": self.blocks.size,
            "chosen": sorted(list(block) for block in self.chosen),
            "inside": self.inside,
            "gap": self.gap,
        }


def drawn_blocks(counts: dict[Block, int], share: float, seed: int) -> frozenset[Block]:
    """Blocks in random order until they have this share of all pixels; at least one, and not all."""
    order = np.random.default_rng(seed).permutation(len(counts))
    places, wanted, have = sorted(counts), share * sum(counts.values()), 0
    chosen: list[Block] = []
    for i in order[:-1].tolist():
        if chosen and abs(have + counts[places[i]] - wanted) > abs(have - wanted):
            continue
        chosen.append(places[i])
        have += counts[places[i]]
        if have >= wanted:
            break
    return frozenset(chosen)


def rows_by_block(
    strips: Iterable[tuple[Strip, npt.NDArray[np.bool_]]], grids: Sequence[Grid], blocks: BlockGrid
) -> dict[Block, int]:
    """How many pixels of each block may be rows; given which ones of each strip may be."""
    counts: dict[Block, int] = {}
    for strip, chosen in strips:
        grid = grids[strip.scene]
        columns, lines = blocks.columns(grid, 0), blocks.lines(grid, strip.first, strip.stop, 0)
        for line in np.unique(lines).tolist():
            of_columns = chosen[lines == line].sum(axis=0)
            for column in np.unique(columns[of_columns > 0]).tolist():
                block = (str(grid.crs), column, line)
                counts[block] = counts.get(block, 0) + int(of_columns[columns == column].sum())
    return counts
