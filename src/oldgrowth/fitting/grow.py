"""Stage 4: grow the bottom trees of every bucket, in parallel over buckets and, in large ones, over trees."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import numpy.typing as npt

from .. import _core
from ..plan import Plan
from ..planning.execution import GrowingRoom
from ..reporting.progress import StageProgress
from ..storage.bucket_store import Buckets
from ..storage.grown_trees import BottomTree, GrownTrees
from ..storage.leaf_buckets import LeafBucket, LeafMemory, RowPart, add_all
from ..storage.votes import OutOfBag, Votes
from .context import FitContext, Prepared
from .top_trees import TopTree

# A bucket with more than this share of a worker's rows has its trees grown by several workers.
_LARGE_SHARE = 0.25


@dataclass(frozen=True)
class Sinks:
    """Where grown trees and their votes go."""

    trees: GrownTrees
    votes: OutOfBag | None


@dataclass(frozen=True)
class Task:
    """Some trees of one bucket, numbered within their top tree; `first_tree` is the first one's number in
    the forest, less its number in the top tree."""

    top: int
    bucket: int
    depth: int
    first_tree: int
    trees: tuple[int, ...]
    rows: int
    leaf: bool  # trees cannot split it


@dataclass(frozen=True)
class TopTasks:
    """The tasks of one top tree. They are made when their turn comes: there may be millions."""

    top: int
    depths: npt.NDArray[np.uint32]
    first_tree: int
    n_trees: int
    sizes: npt.NDArray[np.int64]
    left: npt.NDArray[np.bool_]  # buckets x trees that are to be grown

    @staticmethod
    def of(store: Buckets, top: int, tree: TopTree, trees_of_tops: list[int], trees: GrownTrees) -> TopTasks:
        left = ~trees.grown(top, tree.n_buckets, trees_of_tops[top])
        first = sum(trees_of_tops[:top])
        return TopTasks(top, tree.bucket_depths, first, trees_of_tops[top], store.sizes(top), left)

    @property
    def buckets_left(self) -> int:
        return int(self.left.any(axis=1).sum())

    @property
    def rows_done(self) -> int:
        return int(((~self.left).sum(axis=1) * self.sizes).sum())

    def tasks(self, store: Buckets, all_trees: bool = False) -> Iterator[Task]:
        """The largest first; those that are left, or all."""
        for bucket in np.argsort(-self.sizes, kind="stable").tolist():
            trees = range(self.n_trees) if all_trees else np.flatnonzero(self.left[bucket]).tolist()
            if trees:
                rows = int(self.sizes[bucket])
                leaf = store.only_leaf(self.top, bucket, rows)
                depth = int(self.depths[bucket])
                yield Task(self.top, bucket, depth, self.first_tree, tuple(trees), rows, leaf)


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
        _grow_all(store, tops, context, prepared, sinks, progress)


def _grow_all(
    store: Buckets,
    tops: dict[int, TopTree],
    context: FitContext,
    prepared: Prepared,
    sinks: Sinks,
    progress: StageProgress,
) -> None:
    plan, pool, trees, oob = prepared.plan, context.pool, sinks.trees, sinks.votes
    memory = GrowingRoom.now(prepared.model, in_memory=not prepared.on_disk)
    leaf_memory = LeafMemory(memory.most_keys, lambda: context.workspace.get().nameless())
    of_tops = {i: TopTasks.of(store, i, top, prepared.trees_of_tops, trees) for i, top in tops.items()}
    n_features = prepared.sampled.summary.n_features
    large = _LARGE_SHARE * sum(int(top.sizes.sum()) for top in of_tops.values()) / plan.n_jobs
    open_buckets = {i: top.buckets_left for i, top in of_tops.items()}
    unfinished = [top for i, top in of_tops.items() if open_buckets[i]]
    weights = _class_weights(store, unfinished, plan, pool, memory, leaf_memory)
    growing = _Growing(store, plan, trees, oob, weights, n_features, pool.stop, leaf_memory)
    progress.skip(sum(top.rows_done for top in of_tops.values()))

    def is_shared(task: Task) -> bool:
        workers = min(len(task.trees), plan.n_jobs)
        if workers == 1 or task.leaf or task.rows <= large:
            return False
        return memory.of_bucket(task.rows, workers) <= memory.room

    def tasks(shared: bool) -> Iterator[Task]:
        """Of the top trees that are left; the large ones come first."""
        for top in unfinished:
            if not shared or (top.sizes > large).any():
                for task in top.tasks(store):
                    if is_shared(task) == shared:
                        yield task
                    elif shared and task.rows <= large:
                        break

    def done(task: Task) -> None:
        progress.advance(task.rows * len(task.trees))

    def finished(task: Task) -> None:
        open_buckets[task.top] -= 1
        if open_buckets[task.top] == 0:
            if oob is not None:
                oob.sync()
            trees.sync()
            store.drop(task.top)

    for task in _by_trees(tasks(shared=True), growing, pool, memory, done):
        finished(task)
    for task in _by_buckets(tasks(shared=False), growing, pool, memory):
        done(task)
        finished(task)


def _by_trees(
    tasks: Iterator[Task],
    growing: _Growing,
    pool: Executor,
    memory: GrowingRoom,
    done: Callable[[Task], None],
) -> Iterator[Task]:
    """Tasks whose bucket is loaded once and grown on by several workers; yields them when they are done."""
    alive: deque[tuple[Task, int, list[tuple[Task, Future[None]]]]] = deque()
    workers = growing.plan.n_jobs

    def end_oldest() -> Task:
        task, _, parts = alive.popleft()
        for part, future in parts:
            future.result()
            done(part)
        return task

    for task in tasks:
        needed = memory.of_bucket(task.rows, min(len(task.trees), workers))
        while alive and (len(alive) == workers or sum(n for _, n, _ in alive) + needed > memory.room):
            yield end_oldest()
        bucket = growing.store.load(task.top, task.bucket)
        parts = [replace(task, trees=(tree,)) for tree in task.trees]
        alive.append((task, needed, [(part, pool.submit(growing.grow, part, bucket)) for part in parts]))
        del bucket
    while alive:
        yield end_oldest()


def _by_buckets(
    tasks: Iterator[Task], growing: _Growing, pool: Executor, memory: GrowingRoom
) -> Iterator[Task]:
    """Tasks done whole by one worker each; yields them when they are done."""
    running: dict[Future[None], tuple[Task, int]] = {}
    workers = growing.plan.n_jobs

    def needed(task: Task) -> int:
        return memory.of_leaf(task.rows) if task.leaf else memory.of_bucket(task.rows)

    def room(more: int) -> bool:
        """A task that waits for a worker takes no memory yet, but it must have room when its turn comes."""
        if not running:
            return True
        largest = sorted([*(n for _, n in running.values()), more])[-workers:]
        return len(running) < 2 * workers and sum(largest) <= memory.room

    coming = next(tasks, None)
    while coming is not None or running:
        while coming is not None and room(bytes_of := needed(coming)):
            running[pool.submit(growing.grow, coming, None)] = coming, bytes_of
            coming = next(tasks, None)
            if coming is not None:
                growing.store.expect(coming.top, coming.bucket)
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            future.result()
            yield running.pop(future)[0]


@dataclass(frozen=True)
class _Growing:
    """What every task needs."""

    store: Buckets
    plan: Plan
    trees: GrownTrees
    oob: OutOfBag | None
    class_weights: list[list[float]]
    n_features: int
    stop: _core.Stop
    leaf_memory: LeafMemory

    def grow(self, task: Task, bucket: _core.Bucket | None) -> None:
        if task.leaf:
            self._grow_leaf(task)
            return
        if bucket is None:
            bucket = self.store.load(task.top, task.bucket)
        rules = self._rules()
        bootstrap = _bootstrap(self.plan)
        tell_drawn = self.oob is not None and self.plan.bootstrap
        for run in _runs(task.trees):
            grown, drawn = [], []
            for tree in run:
                number = task.first_tree + tree
                weights = self.class_weights[number]
                *found, seen = _core.grow_bottom(
                    bucket, rules, bootstrap, number, task.bucket, task.depth, weights, tell_drawn
                )
                grown.append(BottomTree(*found))
                drawn.append(seen)
            if self.oob is not None:  # before the trees: they say that all is done
                self._vote(task, run, bucket, grown, drawn)
            self.trees.add(task.top, task.bucket, run.start, grown)

    def _rules(self) -> _core.TreeRules:
        rules = self.plan.bottom_rules()
        rules.stop_by(self.stop)
        return rules

    def _vote(
        self,
        task: Task,
        run: range,
        bucket: _core.Bucket,
        grown: list[BottomTree],
        drawn: list[npt.NDArray[np.uint8]],
    ) -> None:
        """What trees say of the rows of their bucket that they did not see."""
        assert self.oob is not None
        oob, numbers = self.oob, self.store.numbers(task.top, task.bucket)
        targets = bucket.targets(self.plan.target_scale)

        def all_votes() -> Iterator[Votes]:
            for part in oob.ranges(bucket.rows):
                votes = oob.votes(numbers[part], targets[part])
                if self.plan.bootstrap:
                    for tree, seen in zip(grown, drawn, strict=True):
                        _core.add_oob_votes(bucket, seen, tree.nodes, tree.table, part.start, votes.core)
                yield votes

        oob.add(task.top, task.bucket, run, bucket.rows, all_votes())

    def _grow_leaf(self, task: Task) -> None:
        """Trees on a bucket that they cannot split."""
        with LeafBucket(self.store, task.top, task.bucket, task.rows, self.leaf_memory) as bucket:
            for run in _runs(task.trees):
                leaves = [self._leaf(task.first_tree + tree) for tree in run]
                add_all(leaves, bucket)
                grown = [
                    BottomTree(nodes, table, np.zeros(self.n_features), task.depth)
                    for nodes, table in (leaf.finish() for leaf in leaves)
                ]
                if self.oob is not None:
                    self._vote_as_leaves(task, run, bucket, leaves)
                self.trees.add(task.top, task.bucket, run.start, grown)

    def _leaf(self, number: int) -> _core.Leaf:
        return _core.Leaf(self._rules(), _bootstrap(self.plan), number, self.class_weights[number])

    def _vote_as_leaves(self, task: Task, run: range, bucket: LeafBucket, leaves: list[_core.Leaf]) -> None:
        assert self.oob is not None
        oob = self.oob

        def all_votes() -> Iterator[Votes]:
            first = 0
            for rows, copies in _recut(bucket, oob):
                assert rows.numbers is not None
                votes = oob.votes(rows.numbers, rows.targets)
                for leaf in leaves:
                    leaf.vote(rows.keys, copies, rows.targets, rows.weights, first, votes.core)
                yield votes
                first += len(copies)

        oob.add(task.top, task.bucket, run, task.rows, all_votes())


def _recut(bucket: LeafBucket, oob: OutOfBag) -> Iterator[tuple[RowPart, npt.NDArray[np.uint64]]]:
    """The parts of a bucket, cut into ranges that votes are added up for."""
    for part, copies in bucket.parts():
        for some in oob.ranges(len(copies)):
            weights = None if part.weights is None else part.weights[some]
            numbers = None if part.numbers is None else part.numbers[some]
            yield RowPart(part.keys[some], part.targets[some], weights, numbers), copies[some]


def _bootstrap(plan: Plan) -> _core.Bootstrap:
    return _core.Bootstrap(plan.bootstrap, plan.sample_mean, plan.seed)


def _runs(trees: tuple[int, ...]) -> Iterator[range]:
    """Consecutive numbers together."""
    start = 0
    for i in range(1, len(trees) + 1):
        if i == len(trees) or trees[i] != trees[i - 1] + 1:
            yield range(trees[start], trees[i - 1] + 1)
            start = i


def _class_weights(
    store: Buckets,
    tops: list[TopTasks],
    plan: Plan,
    pool: Executor,
    memory: GrowingRoom,
    leaf_memory: LeafMemory,
) -> list[list[float]]:
    """The weight of each class in each tree."""
    if not plan.balanced_subsample:
        return [list(plan.class_weights)] * plan.n_estimators
    bootstrap = _bootstrap(plan)
    counts = np.zeros((plan.n_estimators, plan.n_classes))

    def count(task: Task) -> list[npt.NDArray[np.float64]]:
        leaves = [
            _core.Leaf(plan.bottom_rules(), bootstrap, task.first_tree + tree, []) for tree in task.trees
        ]
        with LeafBucket(store, task.top, task.bucket, task.rows, leaf_memory) as bucket:
            add_all(leaves, bucket)
        for leaf in leaves:
            leaf.finish()
        return [leaf.class_totals() for leaf in leaves]

    for top in tops:
        tasks = top.tasks(store, all_trees=True)
        largest = memory.of_leaf(int(top.sizes.max()))
        at_once = max(1, min(2 * plan.n_jobs, memory.room // largest))
        running = deque((task, pool.submit(count, task)) for task in islice(tasks, at_once))
        while running:
            task, future = running.popleft()
            for tree, classes in zip(task.trees, future.result(), strict=True):
                counts[task.first_tree + tree] += classes
            running.extend((task, pool.submit(count, task)) for task in islice(tasks, 1))
    drawn, present = counts.sum(axis=1, keepdims=True), (counts > 0).sum(axis=1, keepdims=True)
    # A class that a tree did not draw has no weight in it; neither has one in a tree of another round.
    return np.divide(drawn, present * counts, out=np.zeros_like(counts), where=counts > 0).tolist()
