"""Between stages 3 and 4: a bucket that came out too large is split again, by a top tree of its own."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from . import _core
from .bucket_store import BucketStore
from .plan import TOO_LARGE, Plan, auto_top_sample
from .top_tree import TopTree, grow_on_sample

# Rows routed at a time.
_ROWS_AT_A_TIME = 65_536


@dataclass(frozen=True)
class _Large:
    top: int
    bucket: int
    rows: int
    depth: int
    number: int  # keys the randomness: no other tree has it


def split_large_buckets(
    store: BucketStore, tops: list[TopTree], plan: Plan, pool: Executor
) -> tuple[list[TopTree], int]:
    """The top trees with large buckets split, as far as rows can be told apart, and how many were."""
    tops = list(tops)
    whole: set[tuple[int, int]] = set()  # first rows of buckets that cannot be split
    n_split = 0
    for step in range(1, 256):
        large = [
            bucket
            for bucket in _large_buckets(store, tops, plan, step)
            if (bucket.top, int(store.rows(bucket.top, bucket.bucket)[0])) not in whole
        ]
        if not large:
            break
        trees = list(pool.map(partial(_grow, store, plan), large))
        for bucket, tree in reversed(list(zip(large, trees, strict=True))):  # later ones first: they move up
            if tree.n_buckets == 1:
                whole.add((bucket.top, int(store.rows(bucket.top, bucket.bucket)[0])))
                continue
            parts = pool.map(partial(_route, store, bucket, tree), range(0, bucket.rows, _ROWS_AT_A_TIME))
            store.split(bucket.top, bucket.bucket, np.concatenate(list(parts)), tree.n_buckets)
            tops[bucket.top] = tops[bucket.top].grafted(bucket.bucket, tree)
            n_split += 1
    return tops, n_split


def _large_buckets(store: BucketStore, tops: list[TopTree], plan: Plan, step: int) -> list[_Large]:
    found = []
    for top, tree in enumerate(tops):
        sizes = store.sizes(top)
        for bucket in np.flatnonzero(sizes > TOO_LARGE * plan.bucket_size).tolist():
            number = step << 56 | (bucket + 1) << 24 | top
            found.append(_Large(top, bucket, int(sizes[bucket]), int(tree.bucket_depths[bucket]), number))
    return found


def _grow(store: BucketStore, plan: Plan, bucket: _Large) -> TopTree:
    sample = _core.TopSample(auto_top_sample(bucket.rows, plan.bucket_size), plan.seed, bucket.number)
    sample.add(0, bucket.rows)
    rows = store.load(bucket.top, bucket.bucket, sample.rows())
    return grow_on_sample(rows, bucket.rows, plan, bucket.number, bucket.depth)


def _route(store: BucketStore, bucket: _Large, tree: TopTree, first: int) -> npt.NDArray[np.uint32]:
    last = min(first + _ROWS_AT_A_TIME, bucket.rows)
    return _core.route(tree.nodes, store.values(bucket.top, bucket.bucket, first, last))
