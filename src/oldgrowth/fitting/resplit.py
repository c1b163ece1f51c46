"""Between stages 3 and 4: a bucket that is too large is split again, by a top tree of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt

from .. import _core
from ..plan import Plan
from ..storage.bucket_store import BucketStore
from .engine import Engine
from .top_trees import Root, TopTree, grow_on_sample

# Rows unlike all others of a bucket that are looked for, when a sample of it has none.
_FEW = 1000


@dataclass(frozen=True)
class Large:
    """A bucket that is too large."""

    bucket: int
    rows: int
    depth: int
    number: int  # keys the randomness: no other tree has it


class Splitter(Protocol):
    """Splits the buckets of a store, in this process or on workers."""

    def sizes(self, top: int) -> npt.NDArray[np.int64]:
        """The number of rows in each bucket."""

    def trees(self, top: int, large: list[Large]) -> list[TopTree]:
        """For each of these buckets, the tree that splits it: a single leaf if it cannot be split."""

    def split(self, top: int, trees: list[tuple[int, TopTree]]) -> None:
        """Replace each of these buckets by several, in ascending order. The numbers of later buckets grow
        accordingly."""


@dataclass(frozen=True)
class StoreSplitter:
    """Splits the buckets of a store in this process; `at_once` samples of buckets are in memory at a time."""

    store: BucketStore
    plan: Plan
    engine: Engine
    at_once: int = 2**31

    def sizes(self, top: int) -> npt.NDArray[np.int64]:
        return self.store.sizes(top)

    def trees(self, top: int, large: list[Large]) -> list[TopTree]:
        trees: list[TopTree] = []
        for first in range(0, len(large), self.at_once):
            some = large[first : first + self.at_once]
            stop = self.engine.stop
            tasks = [self.engine.submit(tree_of_large, self.store, top, self.plan, stop, b) for b in some]
            trees += [task.result() for task in tasks]
        return trees

    def split(self, top: int, trees: list[tuple[int, TopTree]]) -> None:
        for bucket, tree in trees:
            self.store.split(top, bucket, partial(tree.route, levels=self.plan.levels), tree.n_buckets)


def split_large_buckets(splitter: Splitter, top: int, tree: TopTree, plan: Plan) -> tuple[TopTree, int]:
    """Split the large buckets of a top tree, as far as their rows differ. Returns the tree and the number of
    buckets that were split."""
    n_split, number = 0, plan.first_top + top
    candidates = list(range(tree.n_buckets))
    for step in range(1, 256):
        sizes = splitter.sizes(top)
        large = [
            Large(b, int(sizes[b]), int(tree.bucket_depths[b]), step << 56 | (b + 1) << 24 | number)
            for b in candidates
            if sizes[b] > plan.bucket_size
            and (plan.max_depth is None or tree.bucket_depths[b] < plan.max_depth)
        ]
        if not large:
            break
        candidates, moved = [], 0  # parts of a bucket may be large again; buckets behind it have moved up
        splits: list[tuple[int, TopTree]] = []
        for bucket, own in zip(large, splitter.trees(top, large), strict=True):
            if own.n_buckets == 1:
                continue
            at = bucket.bucket + moved
            splits.append((at, own))
            tree = tree.grafted(at, own, plan.levels)
            candidates += range(at, at + own.n_buckets)
            moved += own.n_buckets - 1
            n_split += 1
        splitter.split(top, splits)
    return tree, n_split


def tree_of_large(store: BucketStore, top: int, plan: Plan, stop: _core.Stop, bucket: Large) -> TopTree:
    """The tree that splits a large bucket, on a sample of its rows."""
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
