"""How trees get their rows: through the buckets of top trees, or as a subset for each tree.

The stages ask the strategy of a fit for whatever differs between the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from ..forest.forest import Forest
from ..plan import Plan
from ..planning.execution import refuse_large_bucket
from ..reporting.progress import StageProgress
from ..storage.grown_trees import GrownTrees
from ..storage.votes import OobInMemory, OobOnDisk, OobRows, OutOfBag
from .context import FitContext, Prepared
from .rounds import Round, distribute_round
from .subsets import add_rows_outside, subset_round
from .top_trees import TopTree


class Strategy(Protocol):
    def rounds(
        self, context: FitContext, prepared: Prepared, tops: list[TopTree], trees: GrownTrees
    ) -> Iterator[Round]:
        """Some top trees at a time, with their buckets."""

    def check_buckets(self, prepared: Prepared, done: Round, tops: dict[int, TopTree]) -> None:
        """Refuse buckets that turned out too large for memory."""

    def new_votes(self, context: FitContext, prepared: Prepared) -> OutOfBag:
        """Where out-of-bag votes go."""

    def out_of_bag(
        self, votes: OutOfBag, prepared: Prepared, forest: Forest, progress: StageProgress
    ) -> Iterator[OobRows]:
        """The means over the trees that did not see each row, some rows at a time. They are kept if the plan
        says so."""


def strategy_of(plan: Plan) -> Strategy:
    return SubsetStrategy() if plan.subsets else TopTreeStrategy()


class TopTreeStrategy:
    """All rows are distributed to the buckets of the top trees."""

    def rounds(
        self, context: FitContext, prepared: Prepared, tops: list[TopTree], trees: GrownTrees
    ) -> Iterator[Round]:
        step = prepared.execution.tops_per_round
        for first in range(0, len(tops), step):
            numbered = {i: tops[i] for i in range(first, min(first + step, len(tops)))}
            nbytes = prepared.sampled.rows.nbytes if prepared.on_disk else None
            with context.recorder.stage("distribute", prepared.n_rows, nbytes) as progress:
                done = distribute_round(numbered, context, prepared, progress, trees)
            yield done

    def check_buckets(self, prepared: Prepared, done: Round, tops: dict[int, TopTree]) -> None:
        for i in tops:
            for bucket in np.flatnonzero(done.sizes[i] > prepared.model.largest_bucket).tolist():
                rows = int(done.sizes[i][bucket])
                if not done.store.is_single_leaf(i, bucket, rows):
                    refuse_large_bucket(prepared.model, rows, in_memory=not prepared.on_disk)

    def new_votes(self, context: FitContext, prepared: Prepared) -> OutOfBag:
        most_bytes = prepared.execution.oob_bytes
        if not prepared.on_disk and prepared.model.votes <= most_bytes:
            return OobInMemory(prepared.n_rows, prepared.plan)
        return OobOnDisk(prepared.n_rows, prepared.plan, context.workspace.get(), most_bytes)

    def out_of_bag(
        self, votes: OutOfBag, prepared: Prepared, forest: Forest, progress: StageProgress
    ) -> Iterator[OobRows]:
        for part in votes.means(prepared.plan.keep_votes):
            yield part
            progress.advance(len(part.mean))


class SubsetStrategy:
    """The baseline: each tree is grown on the rows of its own sample, and nothing is distributed."""

    def rounds(
        self, context: FitContext, prepared: Prepared, tops: list[TopTree], trees: GrownTrees
    ) -> Iterator[Round]:
        yield subset_round(prepared, tops)

    def check_buckets(self, prepared: Prepared, done: Round, tops: dict[int, TopTree]) -> None:
        """The size of a subset is known beforehand."""

    def new_votes(self, context: FitContext, prepared: Prepared) -> OobInMemory:
        return OobInMemory(prepared.n_rows, prepared.plan)

    def out_of_bag(
        self, votes: OutOfBag, prepared: Prepared, forest: Forest, progress: StageProgress
    ) -> Iterator[OobRows]:
        assert isinstance(votes, OobInMemory)
        add_rows_outside(votes, prepared, forest, progress)
        yield from votes.means(prepared.plan.keep_votes)
