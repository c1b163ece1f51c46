"""Stage 4: grow the bottom trees of every bucket, in parallel over buckets and, in large ones, over trees."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from . import _core
from .grown_trees import BottomTree, GrownTrees
from .oob import OutOfBag
from .plan import Plan
from .progress import StageProgress
from .top_tree import TopTree
from .workers import Workers

# A bucket with more than this share of a worker's rows has its trees grown by several workers.
_LARGE_SHARE = 0.25


class Buckets(Protocol):
    """What growing asks of a store."""

    def sizes(self, top: int) -> npt.NDArray[np.int64]: ...
    def numbers(self, top: int, bucket: int) -> npt.NDArray[np.uint32]: ...
    def load(self, top: int, bucket: int) -> _core.Bucket: ...
    def expect(self, top: int, bucket: int) -> None: ...
    def drop(self, top: int) -> None: ...


@dataclass(frozen=True)
class Task:
    """Some trees of one bucket, numbered within their top tree; `first_tree` is the first one's number in
    the forest, less its number in the top tree."""

    top: int
    bucket: int
    depth: int
    first_tree: int
    trees: tuple[int, ...]
    rows: int = field(compare=False)


def tasks_of(store: Buckets, tops: dict[int, TopTree], trees_of_tops: list[int]) -> list[Task]:
    """One task for each bucket, by top trees, the largest first."""
    tasks = []
    for i, top in tops.items():
        sizes, first_tree, trees = store.sizes(i), sum(trees_of_tops[:i]), tuple(range(trees_of_tops[i]))
        tasks += [
            Task(i, bucket, int(top.bucket_depths[bucket]), first_tree, trees, int(sizes[bucket]))
            for bucket in range(top.n_buckets)
        ]
    return sorted(tasks, key=lambda task: (task.top, -task.rows))


def grow(
    store: Buckets,
    tops: dict[int, TopTree],
    plan: Plan,
    trees_of_tops: list[int],
    trees: GrownTrees,
    oob: OutOfBag | None,
    pool: Workers,
    progress: StageProgress,
    rows_at_once: int = 2**62,
) -> None:
    """Grow all bottom trees on these top trees that are not grown yet.

    Buckets of `rows_at_once` rows together are in memory at a time, or a single larger one.
    """
    tasks = tasks_of(store, tops, trees_of_tops)
    n_features = max((len(top.importances) for top in tops.values()), default=0)
    large = _LARGE_SHARE * sum(task.rows for task in tasks) / plan.n_jobs
    left = [part for task in tasks if (part := _not_grown(task, trees)) is not None]
    unfinished = {task.top for task in left}
    weights = _class_weights(store, [t for t in tasks if t.top in unfinished], plan, pool)
    growing = _Growing(store, plan, trees, oob, weights, n_features, pool.stop)
    progress.skip(_rows_of_trees(tasks) - _rows_of_trees(left))
    shared = [t for t in left if t.rows > large and len(t.trees) > 1 and plan.n_jobs > 1]
    open_tasks = Counter(task.top for task in left)
    alone = [task for task in left if task not in set(shared)]

    def done(task: Task) -> None:
        progress.advance(task.rows * len(task.trees))

    def finished(task: Task) -> None:
        open_tasks[task.top] -= 1
        if open_tasks[task.top] == 0:
            if oob is not None:
                oob.sync()
            trees.sync()
            store.drop(task.top)

    for task in _by_trees(shared, growing, pool, rows_at_once, done):
        finished(task)
    for task in _by_buckets(alone, growing, pool, rows_at_once):
        done(task)
        finished(task)


def _by_trees(
    tasks: list[Task], growing: _Growing, pool: Executor, rows_at_once: int, done: Callable[[Task], None]
) -> Iterator[Task]:
    """Tasks whose bucket is loaded once and grown on by several workers; yields them when they are done."""
    alive: deque[tuple[Task, list[tuple[Task, Future[None]]]]] = deque()

    def end_oldest() -> Task:
        task, parts = alive.popleft()
        for part, future in parts:
            future.result()
            done(part)
        return task

    for task in tasks:
        while alive and (
            len(alive) == growing.plan.n_jobs or _rows(t for t, _ in alive) + task.rows > rows_at_once
        ):
            yield end_oldest()
        bucket = growing.store.load(task.top, task.bucket)
        parts = [replace(task, trees=(tree,)) for tree in task.trees]
        alive.append((task, [(part, pool.submit(growing.grow, part, bucket)) for part in parts]))
        del bucket
    while alive:
        yield end_oldest()


def _by_buckets(tasks: list[Task], growing: _Growing, pool: Executor, rows_at_once: int) -> Iterator[Task]:
    """Tasks done whole by one worker each; yields them when they are done."""
    coming = deque(tasks)
    running: dict[Future[None], Task] = {}
    workers = growing.plan.n_jobs

    def room() -> bool:
        """A task that waits for a worker takes no memory yet, but it must have room when its turn comes."""
        if not running:
            return True
        largest = sorted([*(t.rows for t in running.values()), coming[0].rows])[-workers:]
        return len(running) < 2 * workers and sum(largest) <= rows_at_once

    while coming or running:
        while coming and room():
            task = coming.popleft()
            running[pool.submit(growing.grow, task, None)] = task
            if coming:
                growing.store.expect(coming[0].top, coming[0].bucket)
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            future.result()
            yield running.pop(future)


def _rows(tasks: Iterable[Task]) -> int:
    return sum(task.rows for task in tasks)


def _rows_of_trees(tasks: list[Task]) -> int:
    return sum(task.rows * len(task.trees) for task in tasks)


def _not_grown(task: Task, trees: GrownTrees) -> Task | None:
    """What is left of a task."""
    left = tuple(tree for tree in task.trees if not trees.has((task.top, task.bucket, tree)))
    return replace(task, trees=left) if left else None


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

    def grow(self, task: Task, bucket: _core.Bucket | None) -> None:
        plan = self.plan
        if bucket is None:
            bucket = self.store.load(task.top, task.bucket)
        rules = plan.bottom_rules()
        rules.stop_by(self.stop)
        bootstrap = _core.Bootstrap(plan.bootstrap, plan.sample_mean, plan.seed)
        for run in _runs(task.trees):
            votes = self.oob.votes(bucket) if self.oob is not None else None
            core = None if votes is None else votes.core
            grown = []
            for tree in run:
                number = task.first_tree + tree
                weights = self.class_weights[number]
                found = _core.grow_bottom(
                    bucket, rules, bootstrap, number, task.bucket, task.depth, weights, core
                )
                grown.append(BottomTree(*found) if len(found[2]) else self._only_leaf(*found))
            if self.oob is not None and votes is not None:  # before the trees: they say that all is done
                numbers = self.store.numbers(task.top, task.bucket)
                self.oob.add(task.top, task.bucket, run, numbers, votes)
            self.trees.add(task.top, task.bucket, run.start, grown)

    def _only_leaf(
        self, nodes: npt.NDArray[np.uint64], table: npt.NDArray[np.float32], _: object, depth: int
    ) -> BottomTree:
        """A tree on rows that were loaded without their features, since they are all equal."""
        return BottomTree(nodes, table, np.zeros(self.n_features), depth)


def _runs(trees: tuple[int, ...]) -> Iterator[range]:
    """Consecutive numbers together."""
    start = 0
    for i in range(1, len(trees) + 1):
        if i == len(trees) or trees[i] != trees[i - 1] + 1:
            yield range(trees[start], trees[i - 1] + 1)
            start = i


def _class_weights(store: Buckets, tasks: list[Task], plan: Plan, pool: Executor) -> list[list[float]]:
    """The weight of each class in each tree."""
    if not plan.balanced_subsample:
        return [list(plan.class_weights)] * plan.n_estimators
    bootstrap = _core.Bootstrap(plan.bootstrap, plan.sample_mean, plan.seed)
    counts = np.zeros((plan.n_estimators, plan.n_classes))

    def count(task: Task) -> tuple[Task, list[npt.NDArray[np.float64]]]:
        bucket = store.load(task.top, task.bucket)
        numbers = (task.first_tree + tree for tree in task.trees)
        return task, [_core.class_counts(bucket, bootstrap, number, plan.n_classes) for number in numbers]

    for task, found in pool.map(count, tasks):
        for tree, classes in zip(task.trees, found, strict=True):
            counts[task.first_tree + tree] += classes
    drawn, present = counts.sum(axis=1, keepdims=True), (counts > 0).sum(axis=1, keepdims=True)
    # A class that a tree did not draw has no weight in it; neither has one in a tree of another round.
    return np.divide(drawn, present * counts, out=np.zeros_like(counts), where=counts > 0).tolist()
