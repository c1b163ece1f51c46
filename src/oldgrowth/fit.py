"""How a forest is fitted: sample, top trees, distribute, grow, assemble."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .datasets import ArrayDataset
from .distribute import distribute
from .forest import Forest, assemble
from .grow import BottomTree, grow
from .oob import OutOfBag
from .params import Planner
from .report import FitReport, Recorder
from .sample import sample
from .split_large import split_large_buckets
from .top_tree import TopTree, grow_top_trees


@dataclass(frozen=True)
class Fitted:
    """What a fit leaves behind."""

    forest: Forest
    report: FitReport
    importances: npt.NDArray[np.float64]
    oob: npt.NDArray[np.float64] | None  # mean prediction of each row by the trees that did not see it


def fit_forest(
    data: ArrayDataset, planner: Planner, classes: npt.NDArray[Any] | None, verbose: int
) -> Fitted:
    n = data.n_rows
    expected = planner.expect(n, data.n_features)  # refuses what is not possible before any work is done
    recorder = Recorder(verbose)
    with _pool(expected.n_jobs) as pool:
        with recorder.stage("sample", n) as progress:
            sampled = sample(data, expected, pool, progress)
        plan = planner.plan(sampled.facts, classes)
        trees_of_tops = plan.trees_of_tops(n)
        oob = OutOfBag(n, plan) if plan.oob else None
        with recorder.stage("top trees", sum(len(rows) for rows in sampled.top_samples)) as progress:
            tops = grow_top_trees(data, sampled, plan, pool, progress)
        with recorder.stage("distribute", n) as progress:
            store = distribute(data, sampled, tops, plan, pool, progress)
            if plan.needs_top_trees(n):
                tops, recorder.report.buckets_split = split_large_buckets(store, tops, plan, pool)
        sizes = [store.sizes(i) for i in range(len(tops))]
        grown_rows = sum(int(size.sum()) * trees for size, trees in zip(sizes, trees_of_tops, strict=True))
        with recorder.stage("grow", grown_rows) as progress:
            grown = grow(store, tops, plan, n, oob.core if oob else None, pool, progress)
        with recorder.stage("assemble", n) as progress:
            importances = _importances(tops, trees_of_tops, grown)
            depth = max(tree.depth for tree in grown.values())
            forest = assemble(data.n_features, plan.n_classes, tops, trees_of_tops, grown)
            progress.advance(n)
        if oob is not None and plan.subsets:
            with recorder.stage("out of bag", n) as progress:
                oob.add_rows_outside(sampled.top_samples, forest, data, progress)
    report = recorder.report
    report.rows, report.features, report.record_bytes = n, data.n_features, sampled.codec.record_bytes
    report.top_trees = len(tops) if plan.needs_top_trees(n) else 0
    report.trees, report.nodes, report.depth = plan.n_estimators, forest.n_nodes, depth
    report.bucket_size, report.top_sample = plan.bucket_size, plan.top_sample
    report.count_buckets(np.concatenate(sizes))
    return Fitted(forest, report, importances, None if oob is None else oob.mean())


@contextmanager
def _pool(n_jobs: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that, when interrupted, finish what they are at and nothing else."""
    pool = ThreadPoolExecutor(n_jobs)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _importances(
    tops: list[TopTree], trees_of_tops: list[int], grown: dict[tuple[int, int, int], BottomTree]
) -> npt.NDArray[np.float64]:
    """The impurity decrease by feature, normalised for each tree, as a mean over those that split at all."""
    trees = []
    for i, (top, n_trees) in enumerate(zip(tops, trees_of_tops, strict=True)):
        for tree in range(n_trees):
            total = top.importances.copy()
            for bucket in range(top.n_buckets):
                total += grown[i, bucket, tree].importances
            if total.sum() > 0:
                trees.append(total / total.sum())
    return np.mean(trees, axis=0) if trees else np.zeros_like(tops[0].importances)
