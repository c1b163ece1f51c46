"""A fit on a cluster: the same stages as on one machine, with partitions and ranges of buckets as jobs.

The driver merges what workers learn, and stores the trees that they return. Rows never come to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..datasets.base import Dataset
from ..fitting.assemble import Assembled, assemble
from ..fitting.context import FitContext, Prepared
from ..fitting.grow import Sinks
from ..fitting.pipeline import Fitted, completed
from ..fitting.resplit import split_large_buckets
from ..fitting.rounds import with_saved_rounds
from ..fitting.top_trees import TopTree
from ..planning.disk_plan import DiskNeeds
from ..planning.execution import execution_of_part
from ..planning.planner import Planner
from ..planning.sizes import Sizes, Widths
from ..planning.subset_memory import memory_model_of
from ..reporting.progress import StageProgress
from ..rows.streamed_rows import StreamedRows
from ..storage.grown_trees import TreesOnDisk
from ..storage.sampled import Sampled
from ..storage.votes import OobOnDisk, OobRows
from ..system.limits import Limits
from . import work
from .client_disk import check_client_disk
from .fleet import Fleet
from .handshake import check_memory, tops_per_round
from .held_rows import HeldRows
from .job_progress import JobProgress
from .journal import Journal, SplitRound
from .learning_levels import learn_levels
from .row_parts import RowParts
from .sampling import Sampling
from .values import GrownBucket, Known, Shared

# The most bytes of rows in a range of buckets, and how many ranges there are for each worker if they have
# fewer bytes; and the fewest bytes that are worth a job.
RANGE_BYTES, _RANGES_PER_WORKER, _FEWEST_BYTES = 2**30, 8, 64 * 2**20
# The trees of a range are in the memory of a worker that has so many times the bytes of its rows.
_MEMORY_OF_RANGES = 8
_VOTE_BYTES = 256 * 2**20


@dataclass
class ClusterFit:
    """A fit that is under way."""

    fleet: Fleet
    context: FitContext
    planner: Planner
    limits: Limits
    rows: StreamedRows
    parts: RowParts
    journal: Journal

    @property
    def dataset(self) -> Dataset:
        return self.rows.dataset

    def run(self, use_oob: Callable[[Iterator[OobRows]], Any]) -> Fitted:
        """All stages."""
        self.parts.number(self.dataset, self.context.recorder, self.journal)
        learn_levels(self.rows, self.parts, self.context.recorder, self.limits)
        sampling = Sampling(self.rows, self.parts, self.journal)
        sampled = self._sample(sampling)
        prepared = self._prepared(sampled)
        shared = self.fleet.share(self._known(prepared))
        with self._stage("top trees", prepared.plan.top_sample * len(prepared.trees_of_tops)) as progress:
            tops = sampling.top_trees(prepared, shared, progress)
        sinks = self._sinks(prepared)
        if prepared.plan.subsets:
            split, sizes = self._grow_subsets(prepared, sampling, shared, tops, sinks)
        else:
            self.fleet.everywhere(work.drop_candidates)
            rows = HeldRows(shared, prepared, self.parts, sampling, self._range_bytes(prepared))
            split, sizes = self._grow_rounds(prepared, rows, tops, sinks)
        made = self._assemble(prepared, split, sinks)
        oob = use_oob(self._out_of_bag(sinks, prepared)) if prepared.plan.oob else None
        report = completed(self.context.recorder.report, prepared, sizes, made)
        report.moved, report.redone = sum(self.fleet.counted.received.values()), len(self.fleet.redone)
        return Fitted(made.forest, report, made.importances, oob)

    @contextmanager
    def _stage(self, name: str, total: int, source_bytes: int | None = None) -> Iterator[StageProgress]:
        """A stage, with what its jobs took of each worker."""
        counted, report = self.fleet.counted, self.context.recorder.report
        before = dict(counted.received), dict(counted.written)
        with self.context.recorder.stage(name, total, source_bytes) as progress:
            yield progress
        received, written = (
            {worker: n - was.get(worker, 0) for worker, n in now.items() if n > was.get(worker, 0)}
            for now, was in zip((counted.received, counted.written), before, strict=True)
        )
        report.stages[-1] = replace(report.stages[-1], received=received, written=written)

    def _sample(self, sampling: Sampling) -> Sampled:
        of = self.parts.used
        plan = replace(self.planner.expect(of, self.rows.n_features, 0), levels=self.rows.levels)
        with self._stage("sample", of, self.dataset.nbytes) as progress:
            sampled = sampling.sample(plan, progress)
        self.journal.checkpoint.build_on(sampled.checksum)
        return sampled

    def _prepared(self, sampled: Sampled) -> Prepared:
        summary = sampled.summary
        plan = replace(self.planner.plan(summary, sampled.rows.classes), levels=sampled.rows.levels)
        widths = Widths.of(sampled.codec.widths, codec=sampled.codec.bytes)
        sizes = Sizes.of(plan, sampled.rows, summary.n_rows, widths, summary.weighted)
        model = memory_model_of(plan, sizes, self.limits)
        check_client_disk(model)
        n_tops = len(plan.trees_of_tops(summary.n_rows))
        execution = execution_of_part(model, summary.n_rows, n_tops)
        n = len(self.fleet.workers())
        why = f"on a cluster of {n} {'worker' if n == 1 else 'workers'}"
        step = n_tops
        if not plan.subsets:
            facts = self.fleet.facts()
            check_memory(facts, model)
            step = tops_per_round(facts, DiskNeeds.of(plan, sizes).one_copy, n_tops)
        execution = with_saved_rounds(
            replace(execution, why=why, tops_per_round=step), self.journal.checkpoint
        )
        return Prepared(sampled, plan, execution, model)

    def _known(self, prepared: Prepared) -> Known:
        sampled = prepared.sampled
        return Known(
            prepared.plan,
            sampled.summary,
            sampled.codec,
            sampled.rows.labels,
            self.rows.classification,
            self.dataset,
        )

    def _sinks(self, prepared: Prepared) -> Sinks:
        workspace, plan = self.context.workspace.get(), prepared.plan
        votes = OobOnDisk(prepared.n_rows, plan, workspace, _VOTE_BYTES) if plan.oob else None
        trees = TreesOnDisk(workspace, prepared.sampled.summary.n_features, plan, votes)
        return Sinks(trees, votes)

    def _grow_rounds(
        self, prepared: Prepared, rows: HeldRows, tops: list[TopTree], sinks: Sinks
    ) -> tuple[list[TopTree], list[npt.NDArray[np.int64]]]:
        step = prepared.execution.tops_per_round
        split, sizes = list(tops), []
        for first in range(0, len(tops), step):
            numbered_tops = {i: tops[i] for i in range(first, min(first + step, len(tops)))}
            done = self._round(prepared, rows, numbered_tops, sinks)
            for i, top in done.tops.items():
                split[i] = top
            sizes += list(done.sizes.values())
            self.context.recorder.report.buckets_split += done.n_split
        return split, sizes

    def _round(
        self, prepared: Prepared, rows: HeldRows, tops: dict[int, TopTree], sinks: Sinks
    ) -> SplitRound:
        """Grow all trees on these top trees that are not grown yet."""
        saved = self.journal.split(tops, prepared.n_rows, prepared.plan.levels)
        grown = prepared.n_rows * sum(prepared.trees_of_tops[i] for i in tops)
        if saved is not None and _all_grown(saved, sinks, prepared.trees_of_tops):
            with self._stage("grow", grown) as progress:
                progress.skip(grown)
            return saved
        with self._stage("distribute", prepared.n_rows, self.dataset.nbytes) as progress:
            done = self._distributed(prepared, rows, tops, progress)
        if saved is None:
            self.journal.save_split(done)
        with self._stage("grow", grown) as progress:
            following = JobProgress(progress, self.fleet, "grow")
            rows.grow(sinks.trees, partial(_store, sinks), following)
        sinks.sync()
        rows.drop()
        return done

    def _range_bytes(self, prepared: Prepared) -> int:
        """Bytes of rows that a job grows trees on: so many that there are few jobs, and several a worker."""
        workers = self.fleet.facts().values()
        of_all = prepared.n_rows * prepared.model.sizes.row * len(prepared.trees_of_tops)
        wanted = max(_FEWEST_BYTES, of_all // (_RANGES_PER_WORKER * len(workers)))
        return min(RANGE_BYTES, wanted, min(worker.memory for worker in workers) // _MEMORY_OF_RANGES)

    def _distributed(
        self, prepared: Prepared, rows: HeldRows, tops: dict[int, TopTree], progress: StageProgress
    ) -> SplitRound:
        rows.route(tops, JobProgress(progress, self.fleet, "route"))
        split, n_split = {}, 0
        for i, top in tops.items():
            split[i], more = split_large_buckets(rows, i, top, prepared.plan)
            rows.set_tree(i, split[i])
            n_split += more
        return SplitRound(split, {i: rows.sizes(i) for i in tops}, n_split)

    def _grow_subsets(
        self, prepared: Prepared, sampling: Sampling, shared: Shared, tops: list[TopTree], sinks: Sinks
    ) -> tuple[list[TopTree], list[npt.NDArray[np.int64]]]:
        """The trees of the baseline, each on its own rows."""
        rows = prepared.plan.tree_rows(prepared.n_rows)
        left = [i for i in range(len(tops)) if not sinks.trees.grown(i, 1, 1).all()]
        with self._stage("grow", rows * len(tops)) as progress:
            progress.skip(rows * (len(tops) - len(left)))

            def store(tree: int, grown: list[GrownBucket]) -> None:
                _store(sinks, tree, grown)
                progress.advance(rows)

            sampling.subsets(left, shared, store)
        return tops, [np.array([rows])] * len(tops)

    def _assemble(self, prepared: Prepared, tops: list[TopTree], sinks: Sinks) -> Assembled:
        with self._stage("assemble", prepared.n_rows) as progress:
            made = assemble(
                prepared.sampled.summary.n_features,
                prepared.plan,
                tops,
                prepared.trees_of_tops,
                sinks.trees,
                self.context.workspace.get(),
            )
            progress.advance(prepared.n_rows)
        return made

    def _out_of_bag(self, sinks: Sinks, prepared: Prepared) -> Iterator[OobRows]:
        votes, trees = sinks.votes, sinks.trees
        assert isinstance(votes, OobOnDisk) and isinstance(trees, TreesOnDisk)
        votes.keep(trees.runs)
        with self._stage("out of bag", prepared.n_rows) as progress:
            for part in votes.means():
                yield part
                progress.advance(len(part.mean))


def _all_grown(done: SplitRound, sinks: Sinks, trees_of_tops: list[int]) -> bool:
    return all(sinks.trees.grown(i, top.n_buckets, trees_of_tops[i]).all() for i, top in done.tops.items())


def _store(sinks: Sinks, top: int, grown: list[GrownBucket]) -> None:
    """Store what came of a range of buckets."""
    for bucket in grown:
        trees = range(bucket.first_tree, bucket.first_tree + len(bucket.trees))
        if sinks.votes is not None:
            sinks.votes.add(top, bucket.bucket, trees, bucket.rows, bucket.votes)
        sinks.trees.add(top, bucket.bucket, bucket.first_tree, list(bucket.trees))
