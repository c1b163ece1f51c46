"""Stage 4: grow the bottom trees of every bucket, in parallel over buckets and, in large ones, over trees.

Workers return trees and votes (`grow_task.py`); the thread that handed out the tasks stores them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import Enum
from itertools import islice

import numpy as np
import numpy.typing as npt

from .. import _core
from ..plan import Plan
from ..planning.execution import GrowingRoom
from ..reporting.progress import StageProgress
from ..storage.bucket_store import Buckets
from ..storage.grown_trees import BottomTree, GrownTrees
from ..storage.leaf_buckets import LeafMemory
from ..storage.votes import OutOfBag, Votes
from ..system.memory import freed_memory_kept
from .context import FitContext, Prepared
from .engine import Engine
from .grow_task import Site, class_totals, grow_in_parts, grow_task
from .tasks import Grown, GrowthRules, Task, TopTasks
from .top_trees import TopTree

# A bucket with more than this share of a worker's rows has its trees grown by several workers.
_LARGE_SHARE = 0.25
# Tasks that are handed out for each worker: one that runs, and one that waits or whose result does.
_TASKS_PER_WORKER = 2


@dataclass(frozen=True)
class Sinks:
    """Where grown trees and their votes go."""

    trees: GrownTrees
    votes: OutOfBag | None

    def add(self, task: Task, results: Iterator[Grown]) -> None:
        """Store what came of a task, part by part."""
        trees: list[BottomTree] = []

        def votes() -> Iterator[Votes]:
            for result in results:
                yield from result.votes
                trees.extend(result.trees or ())
                del result  # before the next one is made

        if self.votes is None:
            for _ in votes():
                pass
        else:  # before the trees: they say that all is done
            self.votes.add(task.top, task.bucket, task.trees, task.rows, votes())
        self.trees.add(task.top, task.bucket, task.trees.start, trees)

    def sync(self) -> None:
        """Make sure that all that was added outlives the process."""
        if self.votes is not None:
            self.votes.sync()
        self.trees.sync()


def grow(
    store: Buckets,
    tops: dict[int, TopTree],
    context: FitContext,
    prepared: Prepared,
    sinks: Sinks,
    grown_rows: int = 0,
) -> None:
    """Grow all bottom trees on these top trees that are not grown yet.

    As many buckets are in memory at a time as there is room for, but at least one. Top trees of the same
    round with `grown_rows` rows of trees are grown already.
    """
    rows = sum(int(store.sizes(i).sum()) * prepared.trees_of_tops[i] for i in tops)
    with context.recorder.stage("grow", grown_rows + rows) as progress:
        progress.skip(grown_rows)
        of_tops = [
            TopTasks.of(store, i, top, prepared.trees_of_tops, sinks.trees, prepared.plan.first_tree)
            for i, top in tops.items()
        ]
        progress.skip(sum(top.rows_done for top in of_tops))
        growing = _Growing.on(store, of_tops, context, prepared, sinks)
        with growing.freed_memory(of_tops):
            _grow_all(of_tops, growing, progress)


def _grow_all(tops: list[TopTasks], growing: _Growing, progress: StageProgress) -> None:
    """Trees of large buckets first, then of those whose votes come in parts, then all others."""
    trees_left = {top.top: top.trees_left for top in tops}
    for way in _Way:
        run = growing.by_trees if way is _Way.BY_TREES else growing.by_buckets
        for task in run(growing.tasks(tops, way)):
            progress.advance(task.rows * len(task.trees))
            trees_left[task.top] -= len(task.trees)
            if trees_left[task.top] == 0:
                growing.sinks.sync()
                growing.site.store.drop(task.top)


class _Way(Enum):
    """How a task is done: its bucket is loaded once for several workers; by one worker that returns the votes
    in parts; or by one worker that returns all at once."""

    BY_TREES = 1
    IN_PARTS = 2
    WHOLE = 3


@dataclass
class _Running:
    """A task that was handed out, and the source of the further parts of its result, if there are several."""

    task: Task
    future: Future[Grown]
    parts: Iterator[Grown] | None
    bucket_bytes: int  # while it runs
    result_bytes: int  # from its beginning until its result is stored


@dataclass(frozen=True)
class _Growing:
    """Hands out tasks and stores their results, within the available memory."""

    engine: Engine
    rules: GrowthRules
    site: Site
    memory: GrowingRoom
    sinks: Sinks
    large: float  # rows of a bucket whose trees are grown by several workers

    @staticmethod
    def on(
        store: Buckets, tops: list[TopTasks], context: FitContext, prepared: Prepared, sinks: Sinks
    ) -> _Growing:
        plan, engine = prepared.plan, context.engine
        memory = GrowingRoom.now(prepared.model, in_memory=not prepared.on_disk)
        site = site_of(store, context, memory)
        weights = prepared.class_weights
        if weights is None:
            weights = _class_weights([top for top in tops if top.trees_left], plan, site, engine, memory)
        rules = GrowthRules(plan, prepared.sampled.summary.n_features, weights, memory.vote_bytes)
        large = _LARGE_SHARE * sum(int(top.sizes.sum()) for top in tops) / engine.workers
        return _Growing(engine, rules, site, memory, sinks, large)

    def freed_memory(self, tops: list[TopTasks]) -> AbstractContextManager[None]:
        """Keeps the memory of one bucket for the next under a limit that leaves room for it."""
        largest = max((int(top.sizes.max()) for top in tops), default=0)
        limits = self.memory.model.limits
        keeps = limits.memory_given and self.memory.may_keep_freed(self.engine.workers, largest)
        return freed_memory_kept(limits.memory) if keeps else nullcontext()

    def tasks(self, tops: list[TopTasks], way: _Way) -> Iterator[Task]:
        """The tasks to be done in this way; those of large buckets first."""
        fewest = {_Way.BY_TREES: self.large, _Way.IN_PARTS: self._rows_of_one_result, _Way.WHOLE: -1}[way]
        for top in tops:
            if top.trees_left and (top.sizes > fewest).any():
                for task in top.tasks(self.site.store):
                    if task.rows <= fewest:
                        break
                    if self._way(task) is way:
                        at_once = len(task.trees)
                        if way is not _Way.BY_TREES:
                            at_once = self.memory.most_trees(task.rows, task.leaf)
                        yield from task.cut(at_once)

    def _way(self, task: Task) -> _Way:
        trees = min(len(task.trees), self.engine.workers)
        large = trees > 1 and not task.leaf and task.rows > self.large
        if large and self._bytes_by_trees(task) <= self.memory.room:
            return _Way.BY_TREES
        return _Way.IN_PARTS if task.rows > self._rows_of_one_result else _Way.WHOLE

    @property
    def _rows_of_one_result(self) -> float:
        """Rows whose votes are returned at once."""
        row = self.memory.of_votes(1)
        return self.memory.vote_bytes / row if row else float("inf")

    def _bytes_by_trees(self, task: Task) -> int:
        """A bucket on which several workers grow trees, and the results that are on their way."""
        workers = self.engine.workers
        bucket = self.memory.of_bucket(task.rows, task.leaf, min(len(task.trees), workers))
        results = min(len(task.trees), _TASKS_PER_WORKER * workers)
        return bucket + results * self.memory.of_result(task.rows, 1, task.leaf)

    def by_trees(self, tasks: Iterator[Task]) -> Iterator[Task]:
        """Tasks whose bucket is loaded once; yields a task for each tree when it is stored."""
        workers = self.engine.workers
        buckets: deque[tuple[Task, int]] = deque()  # that are in memory, and what each takes
        running: deque[_Running] = deque()  # a tree each, in the same order

        def store_oldest() -> Task:
            stored = self._store(running.popleft())
            if stored.trees.stop == buckets[0][0].trees.stop:
                buckets.popleft()
            return stored

        for task in tasks:
            needed = self._bytes_by_trees(task)
            while buckets and (
                len(buckets) == workers or sum(n for _, n in buckets) + needed > self.memory.room
            ):
                yield store_oldest()
            buckets.append((task, needed))
            bucket = self.site.store.load(task.top, task.bucket)
            for part in task.cut(1):
                if len(running) == _TASKS_PER_WORKER * workers:
                    yield store_oldest()
                running.append(self._start(part, bucket))
            del bucket
        while running:
            yield store_oldest()

    def by_buckets(self, tasks: Iterator[Task]) -> Iterator[Task]:
        """Tasks done by one worker each; yields them when they are stored."""
        running: dict[Future[Grown], _Running] = {}
        coming = next(tasks, None)
        while coming is not None or running:
            while coming is not None and self._has_room(list(running.values()), coming):
                started = self._start(coming)
                running[started.future] = started
                coming = next(tasks, None)
                if coming is not None:
                    self.site.store.expect(coming.top, coming.bucket)
            for future in self.engine.wait(running):
                yield self._store(running.pop(future))
            del future  # its result is stored

    def _has_room(self, running: list[_Running], task: Task) -> bool:
        """Whether a task may be handed out: it takes memory when it runs, and so does its result until it is
        stored. Of one whose result comes in parts the next part is made when the last one is stored: such
        tasks do not wait for a worker."""
        if not running:
            return True
        workers = self.engine.workers
        if len(running) >= (1 if running[0].parts else _TASKS_PER_WORKER) * workers:
            return False
        buckets = [r.bucket_bytes for r in running]
        buckets.append(self.memory.of_bucket(task.rows, task.leaf))
        results = sum(r.result_bytes for r in running)
        results += self.memory.of_result(task.rows, len(task.trees), task.leaf)
        return sum(sorted(buckets)[-workers:]) + results <= self.memory.room

    def _start(self, task: Task, bucket: _core.Bucket | None = None) -> _Running:
        parts: Iterator[Grown] | None = None
        if task.rows > self._rows_of_one_result:
            parts = grow_in_parts(task, self.rules, self.site, bucket)
            future = self.engine.submit(next, parts)
        else:
            future = self.engine.submit(grow_task, task, self.rules, self.site, bucket)
        bucket_bytes = self.memory.of_bucket(task.rows, task.leaf)
        result_bytes = self.memory.of_result(task.rows, len(task.trees), task.leaf)
        return _Running(task, future, parts, bucket_bytes, result_bytes)

    def _store(self, running: _Running) -> Task:
        """Store the result of a task, and have its further parts made."""

        def results() -> Iterator[Grown]:
            yield running.future.result()
            last = running.parts is None
            while running.parts is not None and not last:
                grown = self.engine.submit(next, running.parts).result()
                last = grown.trees is not None
                yield grown
                del grown  # before the next one is made

        self.sinks.add(running.task, results())
        return running.task


def site_of(store: Buckets, context: FitContext, memory: GrowingRoom) -> Site:
    """The resources that tasks use in this process."""
    leaf_memory = LeafMemory(memory.most_keys, lambda: context.workspace.get().unnamed())
    return Site(store, leaf_memory, context.engine.stop)


def _class_weights(
    tops: list[TopTasks], plan: Plan, site: Site, engine: Engine, memory: GrowingRoom
) -> list[list[float]]:
    """The weight of each class in each tree."""
    if not plan.balanced_subsample:
        return [list(plan.class_weights)] * plan.n_estimators
    counts = np.zeros((plan.n_estimators, plan.n_classes))
    for top in tops:
        tasks = top.tasks(site.store, all_trees=True)
        largest = memory.of_bucket(int(top.sizes.max()), leaf=True)
        at_once = max(1, min(_TASKS_PER_WORKER * engine.workers, memory.room // largest))
        running = deque(
            (task, engine.submit(class_totals, task, plan, site)) for task in islice(tasks, at_once)
        )
        while running:
            task, future = running.popleft()
            for tree, classes in zip(task.trees, future.result(), strict=True):
                counts[task.first_tree + tree] += classes
            running.extend((task, engine.submit(class_totals, task, plan, site)) for task in islice(tasks, 1))
    return balanced(counts)


def balanced(counts: npt.NDArray[np.float64]) -> list[list[float]]:
    """The weights of the classes in each tree, by the weight of the rows that it draws of each."""
    drawn, present = counts.sum(axis=1, keepdims=True), (counts > 0).sum(axis=1, keepdims=True)
    # A class that a tree did not draw has no weight in it; neither has one in a tree of another round.
    return np.divide(drawn, present * counts, out=np.zeros_like(counts), where=counts > 0).tolist()
