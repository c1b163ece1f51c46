"""The buckets of the subsets baseline: each tree has one bucket, with the rows of its own sample."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from .. import _core
from ..forest.forest import Forest
from ..forest.nodes import leaf_shares, leaf_values
from ..plan import Plan
from ..reporting.progress import StageProgress
from ..rows.training_rows import Pass, Place
from ..storage.leaf_buckets import RowPart
from ..storage.sampled import Sampled
from ..storage.votes import VOTES_BYTES, OobInMemory
from .context import Prepared
from .rounds import Round
from .top_trees import SampleRows, TopTree


class SubsetStore:
    """The part of a store's interface that growing needs."""

    def __init__(self, sampled: Sampled, plan: Plan) -> None:
        self._sampled = sampled
        self._plan = plan

    def sizes(self, top: int) -> npt.NDArray[np.int64]:
        return np.array([min(self._plan.top_sample, self._sampled.summary.n_rows)])

    def numbers(self, top: int, bucket: int) -> npt.NDArray[np.uint64]:
        return self._sampled.top_sample(self._plan, top)

    def load(self, top: int, bucket: int) -> _core.Bucket:
        return SampleRows.of(self._sampled, self._plan, top).bucket(None, self._plan.bootstrap)

    def is_single_leaf(self, top: int, bucket: int, rows: int) -> bool:
        return False

    def parts(self, top: int, bucket: int) -> Iterator[RowPart]:
        rows = SampleRows.of(self._sampled, self._plan, top)
        yield RowPart(rows.keys, rows.targets, rows.weights, None)

    def expect(self, top: int, bucket: int) -> None:
        """Rows are taken as they are needed."""

    def drop(self, top: int) -> None:
        """Nothing is held."""


def subset_round(prepared: Prepared, tops: list[TopTree]) -> Round:
    """All trees at once: each has its own rows, and nothing is distributed."""
    store = SubsetStore(prepared.sampled, prepared.plan)
    return Round(store, dict(enumerate(tops)), {i: store.sizes(i) for i in range(len(tops))}, 0)


def add_rows_outside(votes: OobInMemory, prepared: Prepared, forest: Forest, progress: StageProgress) -> None:
    """Add the votes on rows outside of each tree's subset, which are in no bucket."""
    sampled, plan = prepared.sampled, prepared.plan
    samples = [sampled.top_sample(plan, tree) for tree in range(forest.n_trees)]
    reading = Pass(sampled.rows, Place(), sampled.trail)
    step = max(1, VOTES_BYTES // (8 * (forest.n_trees + 4 * max(1, plan.n_classes))))
    for chunk, _ in reading.chunks(plan.chunk_size):
        for first in range(0, chunk.rows, step):
            x, at = chunk.x[first : first + step], chunk.first_row + first
            _add_outside(votes, x.astype(np.float32, copy=False), at, samples, plan, forest)
        votes.set_targets(chunk.first_row, chunk.targets)
        progress.advance(chunk.rows)
    if sampled.rows.checked:
        reading.compare(sampled.end)


def _add_outside(
    votes: OobInMemory,
    x: npt.NDArray[np.float32],
    first: int,
    samples: list[npt.NDArray[np.uint64]],
    plan: Plan,
    forest: Forest,
) -> None:
    """Add votes on some rows, from number `first` on, that are outside of the subset of each tree."""
    leaves = np.empty((len(x), forest.n_trees), dtype=np.int64)
    with forest.unchanged():  # `apply` checks the trees that are then read
        forest.apply(x, True, False, leaves)
        for tree, sample in enumerate(samples):
            edges = np.searchsorted(sample, np.array([first, first + len(x)], dtype=np.uint64))
            outside = np.ones(len(x), dtype=bool)
            outside[sample[slice(*edges)] - np.uint64(first)] = False
            nodes = forest.nodes[int(forest.node_start[tree]) + leaves[outside, tree]]
            if plan.classification:
                table = forest.table.reshape(-1, plan.n_classes)
                values = leaf_shares(nodes, table, int(forest.table_start[tree]), plan.hard_votes)
            else:
                values = (leaf_values(nodes) - plan.target_offset)[:, None]
            votes.add_rows(first + np.flatnonzero(outside), values)
