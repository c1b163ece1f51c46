"""Stage 4: grow the bottom trees of every bucket, in parallel over buckets and, in large ones, over trees."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Executor, Future, as_completed, wait
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from . import _core
from .bucket_store import BucketStore
from .plan import Plan
from .progress import StageProgress
from .top_tree import TopTree

# A bucket with more than this share of a worker's rows has its trees grown by several workers.
_LARGE_SHARE = 0.25


@dataclass(frozen=True)
class BottomTree:
    """One grown tree: nodes, shares of the classes in mixed leaves, gain by feature, depth."""

    nodes: npt.NDArray[np.uint64]
    table: npt.NDArray[np.float32]
    importances: npt.NDArray[np.float64]
    depth: int


@dataclass(frozen=True)
class Task:
    """Some trees of one bucket; `first_tree` numbers them through the forest."""

    top: int
    bucket: int
    depth: int
    first_tree: int
    trees: tuple[int, ...]
    rows: int = field(compare=False)


def tasks_of(store: BucketStore, tops: list[TopTree], trees_of_tops: list[int]) -> list[Task]:
    """One task for each bucket, the largest first."""
    tasks = []
    first_tree = 0
    for i, (top, trees) in enumerate(zip(tops, trees_of_tops, strict=True)):
        sizes = store.sizes(i)
        tasks += [
            Task(
                i, bucket, int(top.bucket_depths[bucket]), first_tree, tuple(range(trees)), int(sizes[bucket])
            )
            for bucket in range(top.n_buckets)
        ]
        first_tree += trees
    return sorted(tasks, key=lambda task: -task.rows)


def grow(
    store: BucketStore,
    tops: list[TopTree],
    plan: Plan,
    n_rows: int,
    oob: _core.Oob | None,
    pool: Executor,
    progress: StageProgress,
) -> dict[tuple[int, int, int], BottomTree]:
    """All bottom trees, by top tree, bucket and tree within the top tree."""
    tasks = tasks_of(store, tops, plan.trees_of_tops(n_rows))
    weights = _class_weights(store, tasks, plan, pool)
    large = _LARGE_SHARE * sum(task.rows for task in tasks) / plan.n_jobs
    grown: dict[tuple[int, int, int], BottomTree] = {}
    running: dict[Future[list[BottomTree]], Task] = {}
    alive: deque[list[Future[list[BottomTree]]]] = deque()
    for task in tasks:
        if task.rows > large and len(task.trees) > 1 and plan.n_jobs > 1:
            if len(alive) == plan.n_jobs:  # so many large buckets are in memory: wait for the oldest
                wait(alive.popleft())
            bucket = store.load(task.top, task.bucket)
            parts = [replace(task, trees=(tree,)) for tree in task.trees]
            futures = [pool.submit(_grow_task, store, part, plan, weights, oob, bucket) for part in parts]
            running |= dict(zip(futures, parts, strict=True))
            alive.append(futures)
        else:
            running[pool.submit(_grow_task, store, task, plan, weights, oob, None)] = task
    for future in as_completed(running):
        task = running.pop(future)
        grown |= {
            (task.top, task.bucket, t): tree for t, tree in zip(task.trees, future.result(), strict=True)
        }
        progress.advance(task.rows * len(task.trees))
    return grown


def _grow_task(
    store: BucketStore,
    task: Task,
    plan: Plan,
    class_weights: list[list[float]],
    oob: _core.Oob | None,
    bucket: _core.Bucket | None,
) -> list[BottomTree]:
    if bucket is None:
        bucket = store.load(task.top, task.bucket)
    rules = plan.bottom_rules()
    bootstrap = _core.Bootstrap(plan.bootstrap, plan.sample_mean, plan.seed)
    rows = store.rows(task.top, task.bucket) if oob is not None else None
    trees = []
    for tree in task.trees:
        number = task.first_tree + tree
        nodes, table, importances, depth = _core.grow_bottom(
            bucket, rules, bootstrap, number, task.bucket, task.depth, class_weights[number], oob, rows
        )
        trees.append(BottomTree(nodes, table, importances, depth))
    return trees


def _class_weights(store: BucketStore, tasks: list[Task], plan: Plan, pool: Executor) -> list[list[float]]:
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
    counts[counts == 0] = np.inf  # a class that a tree did not draw has no weight in it
    drawn = np.where(np.isinf(counts), 0.0, counts).sum(axis=1, keepdims=True)
    present = np.isfinite(counts).sum(axis=1, keepdims=True)
    return (drawn / (present * counts)).tolist()
