"""Out-of-bag predictions: what the trees that did not see a row say of it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from . import _core
from .datasets import ArrayDataset
from .forest import Forest
from .plan import Plan
from .progress import StageProgress

# Sums are whole numbers of this size, so that the order in which trees are grown does not matter.
_UNIT = 2.0**40

_LEAF_BIT, _MIXED_BIT = np.uint64(1 << 63), np.uint64(1 << 62)


class OutOfBag:
    """Sums over trees for each row, filled while buckets are grown."""

    def __init__(self, n_rows: int, plan: Plan) -> None:
        self._plan = plan
        self._sums = np.zeros((n_rows, plan.n_classes or 1), dtype=np.int64)
        self._trees = np.zeros(n_rows, dtype=np.uint32)
        self._scale = _UNIT / plan.target_scale
        self.core = _core.Oob(self._sums, self._trees, self._scale, plan.target_offset, plan.hard_votes)

    def mean(self) -> npt.NDArray[np.float64]:
        """The mean over the trees; NaN for a row that every tree has seen."""
        trees = np.where(self._trees == 0, np.nan, self._trees)[:, None]
        return self._sums / (trees * self._scale) + self._plan.target_offset

    def add_rows_outside(
        self,
        samples: list[npt.NDArray[np.uint32]],
        forest: Forest,
        data: ArrayDataset,
        progress: StageProgress,
    ) -> None:
        """Add the rows outside each tree's subset: they are in no bucket, so growing did not meet them."""
        for chunk in data.chunks(self._plan.chunk_size):
            leaves = np.empty((chunk.rows, forest.n_trees), dtype=np.int64)
            forest.apply(chunk.x, True, leaves)
            for tree, sample in enumerate(samples):
                seen = sample[np.searchsorted(sample, chunk.first_row) : np.searchsorted(sample, chunk.end)]
                outside = np.ones(chunk.rows, dtype=bool)
                outside[seen - chunk.first_row] = False
                nodes = forest.nodes[int(forest.node_start[tree]) + leaves[outside, tree]]
                rows = chunk.first_row + np.flatnonzero(outside)
                self._sums[rows] += np.rint(self._values(nodes, forest, tree) * self._scale).astype(np.int64)
                self._trees[rows] += np.uint32(1)
            progress.advance(chunk.rows)

    def _values(self, nodes: npt.NDArray[np.uint64], forest: Forest, tree: int) -> npt.NDArray[np.float64]:
        """What leaves say: a value, or the share of each class."""
        if not self._plan.classification:
            return ((nodes << np.uint64(1)).view(np.float64) - self._plan.target_offset)[:, None]
        payload = nodes & ~_LEAF_BIT
        mixed = (payload & _MIXED_BIT) != 0
        shares = np.zeros((len(nodes), self._plan.n_classes))
        shares[~mixed, payload[~mixed].astype(np.intp)] = 1.0
        table = forest.table.reshape(-1, self._plan.n_classes)[int(forest.table_start[tree]) :]
        shares[mixed] = table[(payload[mixed] & ~_MIXED_BIT).astype(np.intp)]
        if self._plan.hard_votes:
            return np.eye(self._plan.n_classes)[shares.argmax(axis=1)]
        return shares
