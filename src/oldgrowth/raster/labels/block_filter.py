"""The pixels of some blocks, and those far enough from them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..reading.patches import touches_invalid
from ..reading.strips import Strip, StripLabels
from .blocks import BlockGrid
from .foreign_blocks import foreign_blocks
from .shapes import Shapes, burn


@dataclass(frozen=True)
class BlockFilter:
    """Pixels of chosen blocks; or all others, but for those so near that a patch has pixels of both."""

    blocks: BlockGrid
    chosen: npt.NDArray[np.bool_]  # by number
    inside: bool

    def keeps(self, strip: Strip, labels: StripLabels | None) -> npt.NDArray[np.bool_]:
        if self.inside:
            return self.chosen[self.blocks.numbers(strip)]
        border = self.blocks.border
        outside = ~self.chosen[self.blocks.numbers(strip, border)]
        kept = ~touches_invalid(outside, 2 * border + 1)
        if len(shapes := self._foreign[strip.scene]):
            grid = self.blocks.grids[strip.scene]
            near = np.zeros(kept.shape, dtype=np.uint8)
            ones = np.ones(len(shapes), dtype=np.uint8)
            burn(shapes, ones, near, strip.first, grid.transform.determinant < 0)
            kept &= near == 0
        return kept

    @cached_property
    def _foreign(self) -> list[Shapes]:
        """The chosen blocks of other coordinate reference systems, on each scene."""
        return [foreign_blocks(self.blocks, self.chosen, i) for i in range(len(self.blocks.grids))]

    def fingerprint(self) -> dict[str, Any]:
        area = self.blocks.areas[0]
        return {
            "blocks": [area.width, area.height],
            "chosen": hashlib.sha256(np.packbits(self.chosen).tobytes()).hexdigest(),
            "inside": self.inside,
            "border": self.blocks.border,
        }

    def __str__(self) -> str:
        return "in the blocks for tests" if self.inside else "far enough from the blocks for tests"
