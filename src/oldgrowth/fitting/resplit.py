"""Between stages 3 and 4: a bucket that came out too large is split again, by a top tree of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from .. import _core
from ..plan import Plan
from ..storage.bucket_store import BucketStore
from .engine import Engine
from .top_trees import Root, TopTree, grow_on_sample

# Rows unlike all others of a bucket that are looked for, when a sample of it has none.
_FEW = 1000


@dataclass(frozen=True)
class _Large:
    bucket: int
    rows: int
    depth: int
    number: int  # keys the randomness: no other tree has it


def split_large_buckets(
    store: BucketStore, top: int, tree: TopTree, plan: Plan, engine: Engine, at_once: int = 2**31
) -> tuple[TopTree, int]:
    """A top tree with its large buckets split, as far as rows can be told apart, and how many were.

    `at_once` samples of buckets are in memory at a time.
    """
    n_split = 0
    candidates = list(range(tree.n_buckets))
    for step in range(1, 256):
        sizes = store.sizes(top)
        large = [
            _Large(b, int(sizes[b]), int(tree.bucket_depths[b]), step << 56 | (b + 1) << 24 | top)
            for b in candidates
            if sizes[b] > plan.bucket_size
            and (plan.max_depth is None or tree.bucket_depths[b] < plan.max_depth)
        ]
        if not large:
            break
        trees: list[TopTree] = []
        for first in range(0, len(large), at_once):
            some = large[first : first + at_once]
            tasks = [engine.submit(_grow, store, top, plan, engine.stop, bucket) for bucket in some]
            trees += [task.result() for task in tasks]
        candidates, moved = [], 0  # parts of a bucket may be large again; buckets behind it have moved up
        for bucket, own in zip(large, trees, strict=True):
            if own.n_buckets == 1:
                continue
            at = bucket.bucket + moved
            store.split(top, at, partial(_core.route, own.nodes), own.n_buckets)
            tree = tree.grafted(at, own)
            candidates += range(at, at + own.n_buckets)
            moved += own.n_buckets - 1
            n_split += 1
    return tree, n_split


def _grow(store: BucketStore, top: int, plan: Plan, stop: _core.Stop, bucket: _Large) -> TopTree:
    size = plan.sample_of_bucket(bucket.rows)
    places = _core.draw_sample(size, plan.seed, bucket.number, bucket.rows)

    def grown() -> TopTree:
        rows = store.load(top, bucket.bucket, places)
        return grow_on_sample(rows, bucket.rows, plan, stop, Root(bucket.number, bucket.depth))

    tree = grown()
    if tree.n_buckets == 1:  # a few rows unlike all others may not have been drawn
        others = store.different_rows(top, bucket.bucket, _FEW)
        if len(others) > plan.min_samples_leaf:
            places = np.union1d(places, others)
            tree = grown()
    return tree
