"""The trees of a forest as single trees: a top tree with a bottom tree in place of each of its buckets.

Input: the 8-byte nodes of the forest. Output: flat arrays, tree by tree, for other formats.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..checks import hard_votes
from .forest import Forest
from .nodes import NodeFormat, is_leaf, leaf_shares, leaf_values, levels_of_set, payload, threshold

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class WholeTree:
    """Nodes in depth-first order: the left child follows its parent. A leaf is its own child.

    `value` has a row for each node, of class shares or of one number; rows of inner nodes are zero. Where a
    node is `by_set`, its set of levels takes the place of the threshold: those of node i are `levels_in_sets`
    from `set_start[i]` to `set_start[i + 1]`. They go to the other side than missing values, all other levels
    to the same.
    """

    is_leaf: Bools
    feature: Ints
    threshold: npt.NDArray[np.float32]
    missing_left: Bools
    left: Ints
    right: Ints
    value: npt.NDArray[np.float64]
    by_set: Bools
    levels_in_sets: Ints
    set_start: Ints

    def __len__(self) -> int:
        return len(self.is_leaf)

    @property
    def sound(self) -> bool:
        """Whether each node but the root is the child of exactly one node before it."""
        inner = np.flatnonzero(~self.is_leaf)
        left, right, last = self.left[inner], self.right[inner], len(self) - 1
        if not ((left > inner) & (left <= last) & (right > inner) & (right <= last)).all():
            return False
        parents = np.bincount(np.concatenate([left, right]), minlength=len(self))
        return bool((parents[1:] == 1).all())

    def levels(self) -> list[Ints]:
        """The nodes of each depth, from the root down."""
        found, level = [], np.zeros(1, dtype=np.int64)
        while len(level):
            found.append(level)
            inner = level[~self.is_leaf[level]]
            level = np.concatenate([self.left[inner], self.right[inner]])
        return found


def trees_of(estimator: Any) -> Iterator[WholeTree]:
    """Trees whose mean is what the estimator predicts, by shares or by votes."""
    return whole_trees(estimator.forest_, hard=hard_votes(estimator))


def whole_trees(forest: Forest, hard: bool = False) -> Iterator[WholeTree]:
    """The trees in the order of `apply`; if `hard`, a leaf has only its largest class."""
    with forest.checked() as confirm:
        for top, trees in enumerate(forest.trees_of_top.tolist()):
            plan = _Plan.of(forest, top)
            for tree in range(trees):
                joined = _sound(forest, plan, tree, hard)
                confirm()
                yield joined


def tree_of(estimator: Any, number: int) -> WholeTree:
    """One of the trees of `trees_of`."""
    forest, hard = estimator.forest_, hard_votes(estimator)
    first = np.cumsum(forest.trees_of_top) - forest.trees_of_top
    top = int(np.searchsorted(first, np.uint64(number), side="right")) - 1
    with forest.checked():
        return _sound(forest, _Plan.of(forest, top), number - int(first[top]), hard)


def _sound(forest: Forest, plan: _Plan, tree: int, hard: bool) -> WholeTree:
    joined = _join(forest, plan, tree, hard)
    if not joined.sound:  # the mapped nodes changed after they were checked
        raise forest.damage("nodes", "a tree has other nodes than when it was checked")
    return joined


def whole_sizes(forest: Forest) -> Ints:
    """The number of nodes of each whole tree."""
    sizes: list[int] = []
    for top, trees in enumerate(forest.trees_of_top.tolist()):
        plan = _Plan.of(forest, top)
        sizes += [len(plan.nodes) - len(plan.leaves) + int(plan.sizes(forest, t).sum()) for t in range(trees)]
    return np.array(sizes, dtype=np.int64)


@dataclass(frozen=True)
class _Plan:
    """A top tree, its leaves in order, and the first bottom tree in the bucket of each leaf."""

    nodes: npt.NDArray[np.uint64]
    leaves: Ints
    bottom: Ints
    first_word: int  # of the sets of the top tree

    @classmethod
    def of(cls, forest: Forest, top: int) -> _Plan:
        nodes = forest.top_nodes[int(forest.top_start[top]) : int(forest.top_start[top + 1])]
        leaves = np.flatnonzero(is_leaf(nodes))
        buckets = payload(nodes[leaves])
        bottom = int(forest.bottom_start[top]) + buckets * int(forest.trees_of_top[top])
        return cls(nodes, leaves, bottom, int(forest.top_set_start[top]) if forest.levels else 0)

    def sizes(self, forest: Forest, tree: int) -> Ints:
        """The number of nodes of the bottom tree in place of each leaf."""
        bottom = self.bottom + tree
        return (forest.node_start[bottom + 1] - forest.node_start[bottom]).astype(np.int64)


def _join(forest: Forest, plan: _Plan, tree: int, hard: bool) -> WholeTree:
    bottom = plan.bottom + tree
    sizes = np.ones(len(plan.nodes), dtype=np.int64)
    sizes[plan.leaves] = plan.sizes(forest, tree)
    place = np.cumsum(sizes) - sizes  # of each top node, or of the root that replaces it
    n = int(sizes.sum())
    in_bottom = np.ones(n, dtype=bool)
    inner_tops = np.flatnonzero(~is_leaf(plan.nodes))
    in_bottom[place[inner_tops]] = False
    # All nodes of a bottom tree move by the same distance as its root.
    moved = np.repeat(forest.node_start[bottom].astype(np.int64) - place[plan.leaves], sizes[plan.leaves])
    nodes = np.empty(n, dtype=np.uint64)
    nodes[in_bottom] = forest.nodes[np.flatnonzero(in_bottom) + moved]
    nodes[place[inner_tops]] = plan.nodes[inner_tops]
    node_format = NodeFormat(forest.n_features)
    right = np.arange(n) + np.where(is_leaf(nodes), 0, node_format.right(nodes))
    right[place[inner_tops]] = place[inner_tops + node_format.right(plan.nodes[inner_tops])]
    table_row = np.zeros(n, dtype=np.int64)
    table_row[in_bottom] = np.repeat(forest.table_start[bottom].astype(np.int64), sizes[plan.leaves])
    sets = _Sets.none(n)
    if forest.levels:
        first_word = np.full(n, plan.first_word)
        first_word[in_bottom] = np.repeat(forest.set_start[bottom].astype(np.int64), sizes[plan.leaves])
        sets = _Sets.of(forest, nodes, in_bottom, first_word)
    return _decoded(forest, nodes, right, _values(forest, nodes, table_row, hard), sets)


@dataclass(frozen=True)
class _Sets:
    """The sets of levels of all nodes, as in a `WholeTree`."""

    by_set: Bools
    levels: Ints
    start: Ints

    @staticmethod
    def none(n: int) -> _Sets:
        return _Sets(np.zeros(n, dtype=bool), np.zeros(0, dtype=np.int64), np.zeros(n + 1, dtype=np.int64))

    @staticmethod
    def of(forest: Forest, nodes: npt.NDArray[np.uint64], in_bottom: Bools, first_word: Ints) -> _Sets:
        """Sets beside the nodes are among the words of the bottom or the top trees, from `first_word` on."""
        inner = np.flatnonzero(~is_leaf(nodes))
        n_levels = np.zeros(len(nodes), dtype=np.int64)
        n_levels[inner] = np.array(forest.levels)[NodeFormat(forest.n_features).feature(nodes[inner])]
        bits = (nodes & np.uint64(0xFFFFFFFF)).astype(np.int64)
        bits[n_levels > _core.INLINE_LEVELS] += first_word[n_levels > _core.INLINE_LEVELS]
        found: list[list[int]] = [[] for _ in range(len(nodes))]
        for i in np.flatnonzero(n_levels).tolist():
            words = forest.sets if in_bottom[i] else forest.top_sets
            found[i] = levels_of_set(int(bits[i]), int(n_levels[i]), words)
        levels = np.fromiter(chain.from_iterable(found), dtype=np.int64)
        return _Sets(n_levels > 0, levels, np.concatenate([[0], np.cumsum([*map(len, found)])]))


def _decoded(
    forest: Forest, nodes: npt.NDArray[np.uint64], right: Ints, value: npt.NDArray[np.float64], sets: _Sets
) -> WholeTree:
    leaf, node_format = is_leaf(nodes), NodeFormat(forest.n_features)
    without = np.where(leaf | sets.by_set, np.uint64(0), nodes)
    return WholeTree(
        is_leaf=leaf,
        feature=np.where(leaf, 0, node_format.feature(nodes)),
        # Infinity sends all but missing values left; the largest float does so too, and every format has it.
        threshold=np.minimum(threshold(without), np.finfo(np.float32).max),
        missing_left=node_format.missing_left(nodes) & ~leaf,
        left=np.arange(len(nodes)) + ~leaf,
        right=right,
        value=value,
        by_set=sets.by_set,
        levels_in_sets=sets.levels,
        set_start=sets.start,
    )


def _values(
    forest: Forest, nodes: npt.NDArray[np.uint64], table_row: Ints, hard: bool
) -> npt.NDArray[np.float64]:
    leaves = np.flatnonzero(is_leaf(nodes))
    value = np.zeros((len(nodes), forest.n_outputs))
    if forest.n_classes:
        table = forest.table.reshape(-1, forest.n_classes)
        value[leaves] = leaf_shares(nodes[leaves], table, table_row[leaves], hard)
    else:
        value[leaves, 0] = leaf_values(nodes[leaves])
    return value
