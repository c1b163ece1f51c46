"""A fit on a cluster: the same stages as on one machine, with partitions and ranges of buckets as jobs.

The driver merges what workers learn, and stores the trees that they return. Rows never come to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..datasets.base import Dataset
from ..datasets.level_counts import LearnedLevels, LevelLimit
from ..errors import ChangedSourceError
from ..fitting.assemble import assemble
from ..fitting.context import FitContext, Prepared
from ..fitting.grow import Sinks
from ..fitting.learned import Learned
from ..fitting.pipeline import Fitted, completed
from ..fitting.resplit import split_large_buckets
from ..fitting.top_trees import TopTree, only_bucket
from ..plan import Plan
from ..planning.execution import execution_of_part
from ..planning.memory_model import FIRST_PASS_SHARE, MemoryModel
from ..planning.planner import Planner
from ..planning.sizes import Sizes, Widths
from ..reporting.progress import StageProgress
from ..rows.streamed_rows import StreamedRows
from ..rows.training_rows import Place
from ..storage.grown_trees import TreesOnDisk
from ..storage.sampled import Sampled
from ..storage.votes import OobOnDisk, OobRows
from ..system.limits import Limits
from . import work
from .fleet import Fleet, Job
from .handshake import tops_per_round
from .held_rows import HeldRows
from .row_parts import RowParts, number_of
from .values import CandidatePart, GrownBucket, Held, Known, PartEnd

# Bytes of rows in a range of buckets.
RANGE_BYTES = 64 * 2**20
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
    ends: list[PartEnd] = field(default_factory=list)
    candidates: dict[int, CandidatePart] = field(default_factory=dict)

    @property
    def dataset(self) -> Dataset:
        return self.rows.dataset

    def run(self, use_oob: Callable[[Iterator[OobRows]], Any]) -> Fitted:
        """All stages."""
        self.parts.number(self.dataset, self.context.recorder)
        self._learn_levels()
        sampled = self._sample(self.parts.used)
        prepared = self._prepared(sampled)
        known = self._known(prepared)
        shared = self.fleet.share(known)
        tops = self._top_trees(prepared, shared)
        sinks = self._sinks(prepared)
        rows = HeldRows(shared, prepared, self.parts, self.ends)
        split, sizes = self._grow_rounds(prepared, rows, tops, sinks)
        spilled = self.context.workspace.get()
        with self.context.recorder.stage("assemble", prepared.n_rows) as progress:
            made = assemble(
                sampled.summary.n_features,
                prepared.plan,
                split,
                prepared.trees_of_tops,
                sinks.trees,
                spilled,
            )
            progress.advance(prepared.n_rows)
        oob = use_oob(self._out_of_bag(sinks, prepared)) if prepared.plan.oob else None
        report = completed(self.context.recorder.report, prepared, sizes, made)
        return Fitted(made.forest, report, made.importances, oob)

    def _learn_levels(self) -> None:
        """The levels of categorical features, merged in the order of the rows."""
        features = self.rows.categorical
        if not features:
            return
        found: dict[int, LearnedLevels] = {}

        def done(job: Job, learned: LearnedLevels, worker: str) -> None:
            found[number_of(job)] = learned
            progress.advance(learned.end - (self.parts[number_of(job)].partition.first_row or 0))

        def learning(number: int) -> Job:
            arguments = partial(lambda i: (self.parts[i], features), number)
            return Job(f"levels-{number}", work.learn_levels, arguments, only=self.parts.home(number))

        with self.context.recorder.stage("levels", self.dataset.n_rows) as progress:
            self.parts.run([learning(i) for i in range(len(self.parts))], done)
        whole = LearnedLevels(self.dataset, features)
        room = self.limits.memory - self.limits.resident
        whole.limit = LevelLimit(room // FIRST_PASS_SHARE, self.limits.memory)
        for number in range(len(self.parts)):
            whole.merge(found[number])
        self.parts.levels = whole.finish(self.rows.n_features)
        self.rows.use_levels(self.parts.levels)

    def _sample(self, of: int) -> Sampled:
        """What workers learn of their partitions, merged in the order of the rows."""
        rows = self.rows
        plan = replace(self.planner.expect(of, rows.n_features, 0), levels=rows.levels)
        whole = Learned(rows, Place(), None)
        waiting: dict[int, Learned] = {}
        learned_here: list[Learned] = []  # without what was merged

        def done(job: Job, learned: Learned, worker: str) -> None:
            number = number_of(job)
            self.candidates[number] = CandidatePart(Held(f"part-{number}", worker), None)
            progress.advance(learned.end.row - learned.start.row)
            waiting[number] = learned
            while len(learned_here) in waiting:
                following = waiting.pop(len(learned_here))
                whole.merge(following)
                learned_here.append(following)

        with self.context.recorder.stage("sample", of, self.dataset.nbytes) as progress:
            self.parts.run([self._learning(i, plan, of) for i in range(len(self.parts))], done)
            sampled = whole.finish(rows)
        for number, learned in enumerate(learned_here):
            codes = None
            if rows.labels is not None and learned.labels is not None:
                codes = rows.labels.codes_of(learned.labels)
            self.candidates[number] = replace(self.candidates[number], codes=codes)
            self.ends.append(PartEnd(learned.end, learned.trail, _class_rows(learned, codes, rows.n_classes)))
        return sampled

    def _learning(self, number: int, plan: Plan, of: int) -> Job:
        def arguments() -> tuple[Any, ...]:
            return self.parts[number], self.rows.classification, plan, of

        return Job(f"learn-{number}", work.learn_part, arguments, only=self.parts.home(number))

    def _prepared(self, sampled: Sampled) -> Prepared:
        summary = sampled.summary
        plan = replace(self.planner.plan(summary, sampled.rows.classes), levels=sampled.rows.levels)
        widths = Widths.of(sampled.codec.widths, codec=sampled.codec.bytes)
        sizes = Sizes.of(plan, sampled.rows, summary.n_rows, widths, summary.weighted)
        model = MemoryModel(plan, sizes, self.limits)
        n_tops = len(plan.trees_of_tops(summary.n_rows))
        execution = execution_of_part(model, summary.n_rows, n_tops)
        n = len(self.fleet.workers())
        why = f"on a cluster of {n} {'worker' if n == 1 else 'workers'}"
        return Prepared(sampled, plan, replace(execution, why=why), model)

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

    def _top_trees(self, prepared: Prepared, shared: Any) -> list[TopTree]:
        plan, n_tops = prepared.plan, len(prepared.trees_of_tops)
        if not plan.needs_top_trees(prepared.n_rows):
            return [only_bucket(prepared.sampled.summary.n_features)] * n_tops
        tops: dict[int, TopTree] = {}

        def done(job: Job, result: Any, worker: str) -> None:
            number = number_of(job)
            if job.name.startswith("learn-"):
                if result.end != self.ends[number].end:
                    raise ChangedSourceError("the data", f"partition {number} is not what it was before")
                held = Held(f"part-{number}", worker)
                self.candidates[number] = replace(self.candidates[number], held=held)
            else:
                tops[number] = result
                progress.advance(plan.top_sample)

        def restore(workers: set[str]) -> list[Job]:
            lost = [i for i, part in self.candidates.items() if part.held.worker not in workers]
            return [self._learning(i, plan, prepared.n_rows) for i in lost]

        def arguments(top: int) -> tuple[Any, ...]:
            return shared, top, tuple(self.candidates[i] for i in range(len(self.parts)))

        with self.context.recorder.stage("top trees", plan.top_sample * n_tops) as progress:
            jobs = [Job(f"top-tree-{i}", work.grow_top, partial(arguments, i)) for i in range(n_tops)]
            self.parts.run(jobs, done, restore)
        return [tops[i] for i in range(n_tops)]

    def _sinks(self, prepared: Prepared) -> Sinks:
        workspace, plan = self.context.workspace.get(), prepared.plan
        votes = OobOnDisk(prepared.n_rows, plan, workspace, _VOTE_BYTES) if plan.oob else None
        trees = TreesOnDisk(workspace, prepared.sampled.summary.n_features, plan, votes)
        return Sinks(trees, votes)

    def _grow_rounds(
        self, prepared: Prepared, rows: HeldRows, tops: list[TopTree], sinks: Sinks
    ) -> tuple[list[TopTree], list[npt.NDArray[np.int64]]]:
        recorder, plan = self.context.recorder, prepared.plan
        summary = prepared.sampled.summary
        step = tops_per_round(self.fleet.facts(), summary.n_rows, prepared.model.sizes.row, len(tops))
        recorder.report.rounds = -(-len(tops) // step)
        split, sizes = list(tops), []
        for first in range(0, len(tops), step):
            numbered_tops = {i: tops[i] for i in range(first, min(first + step, len(tops)))}
            with recorder.stage("distribute", prepared.n_rows, self.dataset.nbytes) as progress:
                rows.route(numbered_tops, progress)
                for i, top in numbered_tops.items():
                    split[i], more = split_large_buckets(rows, i, top, plan)
                    rows.set_tree(i, split[i])
                    recorder.report.buckets_split += more
            grown = prepared.n_rows * sum(prepared.trees_of_tops[i] for i in numbered_tops)
            with recorder.stage("grow", grown) as progress:
                rows.grow(RANGE_BYTES, partial(_store, sinks, progress))
            sizes += [rows.sizes(i) for i in numbered_tops]
            recorder.report.moved += rows.moved()
            rows.drop()
        return split, sizes

    def _out_of_bag(self, sinks: Sinks, prepared: Prepared) -> Iterator[OobRows]:
        assert sinks.votes is not None
        with self.context.recorder.stage("out of bag", prepared.n_rows) as progress:
            for part in sinks.votes.means():
                yield part
                progress.advance(len(part.mean))


def _class_rows(
    learned: Learned, codes: npt.NDArray[np.int64] | None, n_classes: int
) -> npt.NDArray[np.int64]:
    """The rows of each class in a partition, by the numbers that classes have in the whole data."""
    rows = np.zeros(n_classes, dtype=np.int64)
    if codes is not None:
        found = learned.summary.class_rows
        rows[codes[: len(found)]] = found
    return rows


def _store(sinks: Sinks, progress: StageProgress, top: int, grown: list[GrownBucket], rows: int) -> None:
    """Store what came of a range of buckets."""
    for bucket in grown:
        trees = range(bucket.first_tree, bucket.first_tree + len(bucket.trees))
        if sinks.votes is not None:
            sinks.votes.add(top, bucket.bucket, trees, bucket.rows, bucket.votes)
        sinks.trees.add(top, bucket.bucket, bucket.first_tree, list(bucket.trees))
    progress.advance(rows)
