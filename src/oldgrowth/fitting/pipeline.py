"""How a forest is fitted: sample, top trees, distribute, grow, assemble."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..forest.forest import Assembled, Forest, assemble
from ..messages.counts import warn
from ..messages.warnings import SpillsToMemoryWarning
from ..plan import Plan
from ..planning.execution import (
    GrowingRoom,
    Means,
    Outlook,
    choose_means,
    chunk_rows_for,
    expected_disk,
    largest_model,
    refuse_at_start,
    refuse_large_bucket,
    with_rounds,
)
from ..planning.memory_model import FIRST_PASS_SHARE, MemoryModel, Sizes, Widths
from ..planning.planner import Planner
from ..reporting.progress import Observers, StoppedByCallback
from ..reporting.report import FitReport, Recorder
from ..rows.training_rows import LabelLimit, TrainingRows
from ..storage.bucket_store import BucketStore, MemoryStore
from ..storage.fit_workspace import Space
from ..storage.grown_trees import GrownTrees, TreesInMemory, TreesOnDisk
from ..storage.leaf_buckets import LeafMemory
from ..storage.votes import OobInMemory, OobOnDisk, OobRows, OutOfBag
from ..system.limits import Limits
from ..system.memory import return_memory_when_freed
from ..system.signals import ended_by_signals
from ..system.threads import Workers, workers
from .distribute import distribute
from .grow import grow
from .resplit import split_large_buckets
from .rounds import as_begun, distribute_round
from .sample import Sampled, sample
from .subsets import SubsetStore
from .top_trees import TopTree, grow_top_trees

BucketSizes = list[npt.NDArray[np.int64]]


@dataclass(frozen=True)
class Fitted:
    """What a fit leaves behind."""

    forest: Forest
    report: FitReport
    importances: npt.NDArray[np.float64]
    oob: Any  # what the caller made of the out-of-bag predictions


def fit_forest(
    rows: TrainingRows,
    planner: Planner,
    limits: Limits,
    observers: Observers,
    use_oob: Callable[[Iterator[OobRows]], Any],
    keep_checkpoint: bool = False,
) -> Fitted:
    """All stages. What is in the checkpoint directory goes when all is done, unless `keep_checkpoint`."""
    # What is not possible is refused before any work is done.
    expected = planner.expect(rows.n_rows, rows.n_features, rows.n_classes)
    refuse_at_start(planner, rows, limits)
    if limits.memory_given:
        return_memory_when_freed()
    first_pass = largest_model(expected, rows, rows.n_rows or 1, limits)
    chunk_rows = chunk_rows_for(first_pass)
    kept_bytes = max(0, first_pass.room(limits.resident)) // FIRST_PASS_SHARE
    work = kept_bytes + first_pass.chunks(chunk_rows, 1) + first_pass.slack
    outlook = Outlook(planner, rows, limits, work)
    if limits.memory_given:
        left = first_pass.room(limits.resident) - kept_bytes - first_pass.sampling(chunk_rows)
        rows.limit_labels(LabelLimit(max(2**20, left), outlook.limit_for_labels))
    recorder = Recorder(observers, limits.memory)
    with (
        ended_by_signals(),
        _told_how_to_resume(recorder, limits.checkpoint_dir),
        Space(limits.spill_dir, limits.checkpoint_dir, keep_checkpoint) as space,
        workers(expected.n_jobs) as pool,
    ):
        space.stop, space.limit = pool.stop, limits.spill_limit
        recorder.space = space
        checkpoint = space.checkpoint()
        begun = checkpoint.begin(planner.identity() | {"data": rows.fingerprint() if space.lasting else {}})
        if rows.n_rows is not None and (disk := expected_disk(first_pass)).needed:
            recorder.say(f"may need up to about {disk}")
        if checkpoint.taken_up:
            recorder.say(f"goes on with the fit that {limits.checkpoint_dir} holds")
        planner.seed = begun["seed"]
        rows.checked |= space.lasting  # arrays too may be others when a fit is taken up again
        expected = replace(expected, seed=planner.seed, chunk_size=chunk_rows)
        with recorder.stage("sample", rows.n_rows, rows.nbytes) as progress:
            sampled = sample(rows, expected, pool, progress, space, kept_bytes, outlook.look)
        n = sampled.facts.n_rows
        plan = planner.plan(sampled.facts, rows.classes)
        widths = Widths.of(sampled.codec.widths, codec=sampled.codec.bytes)
        sizes = Sizes.of(plan, rows, n, widths, sampled.facts.weighted)
        model = MemoryModel(plan, sizes, limits)
        means = choose_means(model, recorder.report.stages[0].peak_memory)
        plan = replace(plan, chunk_size=means.chunk_rows)
        recorder.say(f"store: {means.store} ({means.why})")
        if means.store == "disk" and limits.spills_to_memory:
            warn(SpillsToMemoryWarning(limits.directory))
        if (disk := expected_disk(model)).needed:
            recorder.say(f"needs about {disk}")
        with recorder.stage("top trees", plan.top_sample * len(plan.trees_of_tops(n))) as progress:
            tops = grow_top_trees(sampled, plan, pool, progress, space.checkpoint(), means.tops_at_once)
        means = as_begun(with_rounds(means, model, tops), space.checkpoint())
        fitting = _Fitting(sampled, plan, means, space, pool, recorder, model)
        tops, bucket_sizes = fitting.grow_bottom_trees(tops)
        with recorder.stage("assemble", n) as progress:
            spilled = space.get() if fitting.on_disk else None
            made = assemble(
                rows.n_features, plan.n_classes, tops, plan.trees_of_tops(n), fitting.trees, spilled
            )
            progress.advance(n)
        oob = use_oob(fitting.out_of_bag(made.forest)) if plan.oob else None
        _complete(recorder.report, sampled, plan, means, made, bucket_sizes)
    return Fitted(made.forest, recorder.report, made.importances, oob)


class _Fitting:
    """Distributing and growing, by the means chosen."""

    def __init__(
        self,
        sampled: Sampled,
        plan: Plan,
        means: Means,
        space: Space,
        pool: Workers,
        recorder: Recorder,
        model: MemoryModel,
    ) -> None:
        self._sampled, self._plan, self._means, self._model = sampled, plan, means, model
        self._space, self._pool, self._recorder = space, pool, recorder
        self._n = sampled.facts.n_rows
        self._trees_of_tops = plan.trees_of_tops(self._n)
        self.on_disk = means.store == "disk"
        self._oob = self._make_oob() if plan.oob else None
        self.trees: GrownTrees = TreesInMemory()
        if self.on_disk:
            votes = self._oob if isinstance(self._oob, OobOnDisk) else None
            self.trees = TreesOnDisk(space.get(), sampled.facts.n_features, plan.n_classes, votes)

    def grow_bottom_trees(self, tops: list[TopTree]) -> tuple[list[TopTree], BucketSizes]:
        """The top trees, split further where buckets were too large, and the rows of their buckets."""
        if self._plan.subsets:
            store = SubsetStore(self._sampled, self._plan)
            self._grow(store, dict(enumerate(tops)))
            return tops, [store.sizes(i) for i in range(len(tops))]
        if self._means.store == "memory":
            return self._in_memory(tops)
        return self._in_rounds(tops)

    def _in_memory(self, tops: list[TopTree]) -> tuple[list[TopTree], BucketSizes]:
        numbered = dict(enumerate(tops))
        with self._recorder.stage("distribute", self._n) as progress:
            store = MemoryStore(self._sampled, {i: top.n_buckets for i, top in numbered.items()}, self._plan)
            distribute(self._sampled, numbered, store, self._plan, self._pool, progress)
            for task in [self._pool.submit(store.seal, i) for i in numbered]:
                task.result()
            for i in numbered:
                numbered[i] = self._split(store, i, numbered[i])
                store.set_depths(i, numbered[i].bucket_depths)
        sizes = [store.sizes(i) for i in numbered]
        self._check_buckets(store, numbered)
        self._grow(store, numbered)
        return list(numbered.values()), sizes

    def _in_rounds(self, tops: list[TopTree]) -> tuple[list[TopTree], BucketSizes]:
        tops, sizes = list(tops), []
        space, step = self._space.get(), self._means.tops_per_round
        for first in range(0, len(tops), step):
            numbers = range(first, min(first + step, len(tops)))
            with self._recorder.stage("distribute", self._n, self._sampled.rows.nbytes) as progress:
                done = distribute_round(
                    numbers,
                    self._sampled,
                    tops,
                    self._plan,
                    self._means,
                    space,
                    self._pool,
                    progress,
                    self.trees,
                )
            self._recorder.report.buckets_split += done.n_split
            for i in numbers:
                tops[i] = done.tops[i]
                sizes.append(done.sizes[i])
            left = done.unfinished(self.trees, self._trees_of_tops)
            self._check_buckets(done.store, left)
            grown = sum(self._n * self._trees_of_tops[i] for i in numbers if i not in left)
            self._grow(done.store, left, grown)
        return tops, sizes

    def _check_buckets(self, store: BucketStore, tops: Iterable[int]) -> None:
        """Refuse those that came out too large for memory, if trees split them."""
        for i in tops:
            sizes = store.sizes(i)
            for bucket in np.flatnonzero(sizes > self._model.largest_bucket).tolist():
                rows = int(sizes[bucket])
                if not store.only_leaf(i, bucket, rows):
                    refuse_large_bucket(self._model, rows, in_memory=not self.on_disk)

    def _split(self, store: MemoryStore, top: int, tree: TopTree) -> TopTree:
        if not self._plan.needs_top_trees(self._n):
            return tree
        tree, n_split = split_large_buckets(store, top, tree, self._plan, self._pool)
        self._recorder.report.buckets_split += n_split
        return tree

    def _grow(self, store: Any, tops: dict[int, TopTree], grown: int = 0) -> None:
        """Trees on these top trees; those on others of the round, with so many rows, are grown already."""
        rows = sum(int(store.sizes(i).sum()) * self._trees_of_tops[i] for i in tops)
        room = GrowingRoom.now(self._model, in_memory=not self.on_disk)
        leaf_memory = LeafMemory(room.most_keys, lambda: self._space.get().nameless())
        with self._recorder.stage("grow", grown + rows) as progress:
            progress.skip(grown)
            grow(
                store, tops, self._plan, self._trees_of_tops, self.trees, self._oob, self._pool, progress,
                room, leaf_memory,
            )  # fmt: skip

    def _make_oob(self) -> OutOfBag:
        n, plan = self._n, self._plan
        if plan.subsets or (not self.on_disk and self._model.votes <= self._means.oob_bytes):
            return OobInMemory(n, plan)
        return OobOnDisk(n, plan, self._space.get(), self._means.oob_bytes)

    def out_of_bag(self, forest: Forest) -> Iterator[OobRows]:
        assert self._oob is not None
        with self._recorder.stage("out of bag", self._n) as progress:
            if self._plan.subsets:
                assert isinstance(self._oob, OobInMemory)
                self._oob.add_rows_outside(self._sampled, forest, progress)
            if isinstance(self._oob, OobOnDisk) and isinstance(self.trees, TreesOnDisk):
                self._oob.keep(self.trees.runs)
            for part in self._oob.means():
                yield part
                if not self._plan.subsets:
                    progress.advance(len(part.mean))


def _complete(
    report: FitReport, sampled: Sampled, plan: Plan, means: Means, made: Assembled, sizes: BucketSizes
) -> None:
    facts = sampled.facts
    report.rows, report.features, report.record_bytes = facts.n_rows, facts.n_features, facts.record_bytes
    report.top_trees = len(sizes) if plan.needs_top_trees(facts.n_rows) else 0
    report.trees, report.nodes, report.depth = plan.n_estimators, made.forest.n_nodes, made.depth
    report.bucket_size, report.top_sample = plan.bucket_size, plan.top_sample
    report.store, report.store_reason = means.store, means.why
    report.rounds = -(-len(sizes) // means.tops_per_round)
    report.count_buckets(sizes)


@contextmanager
def _told_how_to_resume(recorder: Recorder, checkpoint_dir: Path | None) -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, StoppedByCallback) as stop:
        way = "nothing was kept; with a checkpoint_dir a fit can go on where it was."
        if checkpoint_dir is not None:
            same = f"the same data and parameters and checkpoint_dir={str(checkpoint_dir)!r}"
            way = f"call fit again with {same} to go on."
        told = stop.raised if isinstance(stop, StoppedByCallback) else stop
        told.add_note(f"The fit was interrupted: {way}")
        recorder.say(f"interrupted: {way}")
        raise
