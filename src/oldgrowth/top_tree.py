"""Stage 2: grow each top tree on its sample. A top tree only partitions; its leaves are the buckets."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from . import _core
from .bucket_store import encode
from .datasets import ArrayDataset
from .plan import Plan
from .progress import StageProgress
from .sample import Sampled


@dataclass(frozen=True)
class TopTree:
    """The nodes of a top tree, the depth of each bucket, and the gain by feature on its sample."""

    nodes: npt.NDArray[np.uint64]
    bucket_depths: npt.NDArray[np.uint32]
    importances: npt.NDArray[np.float64]

    @property
    def n_buckets(self) -> int:
        return len(self.bucket_depths)


def only_bucket(n_features: int) -> TopTree:
    """The top tree of data that fit one bucket: a single leaf."""
    leaf = np.array([2**63], dtype=np.uint64)
    return TopTree(leaf, np.zeros(1, dtype=np.uint32), np.zeros(n_features))


def grow_top_trees(
    data: ArrayDataset, sampled: Sampled, plan: Plan, pool: Executor, progress: StageProgress
) -> list[TopTree]:
    if not plan.needs_top_trees(data.n_rows):
        return [only_bucket(data.n_features) for _ in plan.trees_of_tops(data.n_rows)]
    tasks = [
        pool.submit(_grow_top_tree, data, sampled.codec, rows, plan, top)
        for top, rows in enumerate(sampled.top_samples)
    ]
    tops = []
    for task, rows in zip(tasks, sampled.top_samples, strict=True):
        tops.append(task.result())
        progress.advance(len(rows))
    return tops


def _grow_top_tree(
    data: ArrayDataset,
    codec: _core.RowCodec,
    rows: npt.NDArray[np.uint32],
    plan: Plan,
    top: int,
) -> TopTree:
    targets = data.targets[rows]
    records, keys = encode(codec, data.take(rows), targets, first_row=0)
    weights = None if data.weights is None else data.weights[rows]
    part = _core.Rows(records, keys, targets, weights, plan.target_scale)
    bucket = _core.make_bucket(codec, part, None, plan.classification)
    nodes, depths, importances = _core.grow_top(
        bucket, plan.top_rules(data.n_rows), plan.seed, top, list(plan.class_weights)
    )
    return TopTree(nodes, depths, importances * (data.n_rows / len(rows)))
