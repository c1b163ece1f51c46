"""Tasks of growth, and their results: plain values that can be sent to other processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..plan import Plan
from ..storage.bucket_store import Buckets
from ..storage.grown_trees import BottomTree, GrownTrees
from ..storage.votes import Votes
from .top_trees import TopTree


@dataclass(frozen=True)
class Task:
    """Consecutive trees of one bucket, numbered within their top tree."""

    top: int
    bucket: int
    depth: int  # of the bucket in its top tree
    first_tree: int  # number in the forest of the top tree's first tree
    trees: range
    rows: int
    leaf: bool  # trees cannot split it

    def cut(self, most_trees: int) -> Iterator[Task]:
        """The same in tasks of at most `most_trees` trees."""
        for first in range(0, len(self.trees), most_trees):
            yield replace(self, trees=self.trees[first : first + most_trees])


@dataclass(frozen=True)
class GrowthRules:
    """What all tasks of a round have in common."""

    plan: Plan
    n_features: int
    class_weights: list[list[float]]  # for each tree of the forest
    vote_bytes: int  # most bytes of votes in one result

    @property
    def bootstrapped_votes(self) -> bool:
        """Whether trees must return which rows they drew: the others are out of bag."""
        return self.plan.oob and self.plan.bootstrap


@dataclass(frozen=True)
class Grown:
    """The result of a task: its trees, and their votes on the bucket's rows that they did not see.

    Votes of many bytes come in several results, in the order of the rows; the last one has the trees.
    """

    votes: tuple[Votes, ...] = ()
    trees: tuple[BottomTree, ...] | None = None


@dataclass(frozen=True)
class TopTasks:
    """The tasks of one top tree. They are generated on demand: there may be millions."""

    top: int
    depths: npt.NDArray[np.uint32]
    first_tree: int
    n_trees: int
    sizes: npt.NDArray[np.int64]
    left: npt.NDArray[np.bool_]  # buckets x trees that are to be grown

    @staticmethod
    def of(
        store: Buckets,
        top: int,
        tree: TopTree,
        trees_of_tops: list[int],
        trees: GrownTrees,
        first_tree: int = 0,
    ) -> TopTasks:
        """The tasks on the buckets whose rows are in the store; `first_tree` is the number of the first tree
        of all."""
        left = ~trees.grown(top, tree.n_buckets, trees_of_tops[top])
        left &= (store.sizes(top) > 0)[:, None]
        first = first_tree + sum(trees_of_tops[:top])
        return TopTasks(top, tree.bucket_depths, first, trees_of_tops[top], store.sizes(top), left)

    @property
    def trees_left(self) -> int:
        """Number of bottom trees that remain to be grown."""
        return int(self.left.sum())

    @property
    def rows_done(self) -> int:
        return int(((~self.left).sum(axis=1) * self.sizes).sum())

    def tasks(self, store: Buckets, all_trees: bool = False) -> Iterator[Task]:
        """Tasks for the remaining trees, or for all of them; the largest bucket first."""
        for bucket in np.argsort(-self.sizes, kind="stable").tolist():
            trees = range(self.n_trees) if all_trees else np.flatnonzero(self.left[bucket]).tolist()
            if trees:
                rows = int(self.sizes[bucket])
                leaf = store.is_single_leaf(self.top, bucket, rows)
                depth = int(self.depths[bucket])
                for run in _runs(trees):
                    yield Task(self.top, bucket, depth, self.first_tree, run, rows, leaf)


def _runs(trees: range | list[int]) -> Iterator[range]:
    """Consecutive numbers together."""
    start = 0
    for i in range(1, len(trees) + 1):
        if i == len(trees) or trees[i] != trees[i - 1] + 1:
            yield range(trees[start], trees[i - 1] + 1)
            start = i
