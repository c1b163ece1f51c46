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

    def grafted(self, bucket: int, tree: TopTree) -> TopTree:
        """This tree with another in place of a bucket; the buckets behind it move up."""
        shift = np.uint64(_core.right_shift(len(self.importances)))
        nodes, leaf_bit, more = self.nodes.copy(), np.uint64(2**63), np.uint64(tree.n_buckets - 1)
        leaves = nodes >= leaf_bit
        at = int(np.flatnonzero(nodes == leaf_bit + np.uint64(bucket))[0])
        nodes[leaves & (nodes > leaf_bit + np.uint64(bucket))] += more
        before = np.arange(at)[~leaves[:at]]
        over = before[before + (nodes[before] >> shift).astype(np.intp) > at]
        nodes[over] += np.uint64(len(tree.nodes) - 1) << shift
        grafted = tree.nodes.copy()
        grafted[grafted >= leaf_bit] += np.uint64(bucket)
        return TopTree(
            np.concatenate([nodes[:at], grafted, nodes[at + 1 :]]),
            np.concatenate(
                [self.bucket_depths[:bucket], tree.bucket_depths, self.bucket_depths[bucket + 1 :]]
            ),
            self.importances + tree.importances,
        )


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
    return grow_on_sample(bucket, data.n_rows, plan, top)


def grow_on_sample(bucket: _core.Bucket, n_rows: int, plan: Plan, number: int, depth: int = 0) -> TopTree:
    """A tree on a sample of n_rows; `number` keys its randomness, its root is `depth` deep already."""
    rules = plan.top_rules(bucket.rows / n_rows)
    nodes, depths, importances = _core.grow_top(
        bucket, rules, plan.seed, number, depth, list(plan.class_weights)
    )
    return TopTree(nodes, depths, importances * (n_rows / bucket.rows))
