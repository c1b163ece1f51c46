"""The depths of the trees of a forest, found level by level on a bounded number of nodes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .forest import Forest
from .nodes import NodeFormat, is_leaf, payload

_NODES_AT_A_TIME = 1 << 22

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Depths:
    """The depth of each tree, top tree included, and the number of leaves at each depth."""

    trees: Ints
    leaves: Ints

    def leaf_quantile(self, q: float) -> int:
        return int(np.searchsorted(np.cumsum(self.leaves), q * self.leaves.sum()))


def forest_depths(forest: Forest) -> Depths:
    bucket_depth = _bucket_depths(forest)
    trees_of_top, buckets = forest.trees_of_top.tolist(), np.diff(forest.bucket_start).astype(np.int64)
    # Bottom trees are ordered by top tree, bucket, tree: for each, its bucket and its tree.
    bucket_of = np.repeat(np.arange(len(bucket_depth)), np.repeat(np.array(trees_of_top), buckets))
    tree_of = np.concatenate(
        [
            sum(trees_of_top[:top]) + np.tile(np.arange(trees), int(buckets[top]))
            for top, trees in enumerate(trees_of_top)
        ]
    )
    deepest = np.zeros(forest.n_trees, dtype=np.int64)
    leaves = np.zeros(1, dtype=np.int64)
    for first, last in _parts(forest.node_start.astype(np.int64)):
        roots = forest.node_start[first:last].astype(np.int64)
        most = int(forest.node_start[last]) - int(forest.node_start[first])
        for _, trees, depth in _levels(forest, forest.nodes, roots, most):
            bottoms = first + trees
            whole = bucket_depth[bucket_of[bottoms]] + depth
            np.maximum.at(deepest, tree_of[bottoms], whole)
            leaves = _added(leaves, np.bincount(whole))
    return Depths(deepest, leaves)


def _bucket_depths(forest: Forest) -> Ints:
    """The depth of each bucket in its top tree."""
    depths = np.zeros(int(forest.bucket_start[-1]), dtype=np.int64)
    roots = forest.top_start[:-1].astype(np.int64)
    for leaves, tops, depth in _levels(forest, forest.top_nodes, roots, len(forest.top_nodes)):
        depths[forest.bucket_start[tops].astype(np.int64) + payload(forest.top_nodes[leaves])] = depth
    return depths


def _parts(starts: Ints) -> Iterator[tuple[int, int]]:
    """Ranges of consecutive trees that together have about _NODES_AT_A_TIME nodes, at least one tree each."""
    first = 0
    while first < len(starts) - 1:
        last = int(np.searchsorted(starts, starts[first] + _NODES_AT_A_TIME, side="right")) - 1
        last = max(first + 1, last)
        yield first, last
        first = last


def _levels(
    forest: Forest, nodes: npt.NDArray[np.uint64], roots: Ints, most: int
) -> Iterator[tuple[Ints, Ints, int]]:
    """For each depth: the positions of its leaves, the numbers of their trees, and the depth.

    Trees with more than `most` nodes together are an error: nodes that are mapped may change after they were
    checked, and then lead in circles.
    """
    node_format = NodeFormat(forest.n_features)
    at, trees, depth = roots, np.arange(len(roots)), 0
    while len(at):
        most -= len(at)
        if most < 0:
            raise forest.damage("nodes", "a tree has other nodes than when it was checked")
        here = nodes[at]
        leaf = is_leaf(here)
        yield at[leaf], trees[leaf], depth
        right = at[~leaf] + node_format.right(here[~leaf])
        at, trees = np.concatenate([at[~leaf] + 1, right]), np.tile(trees[~leaf], 2)
        depth += 1


def _added(a: Ints, b: Ints) -> Ints:
    total = np.zeros(max(len(a), len(b)), dtype=np.int64)
    total[: len(a)] += a
    total[: len(b)] += b
    return total
