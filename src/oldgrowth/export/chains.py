"""Trees for formats that compare with one number at a time: a split by a set of levels is a chain of nodes, one for
each level of the set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..forest.whole_trees import WholeTree

LEAF, LESS_OR_EQUAL, EQUAL = range(3)  # kinds of nodes
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ChainedTree:
    """Nodes that compare a feature with a number; `value` has a row for each leaf."""

    mode: Ints
    feature: Ints
    number: npt.NDArray[np.float64]
    if_true: Ints  # 0 for leaves
    if_false: Ints
    missing_is_true: npt.NDArray[np.bool_]
    value: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.mode)


def chained(tree: WholeTree) -> ChainedTree:
    """A tree with a chain in place of each node that splits by a set. A value that equals none of its levels, such as
    a missing one, leaves the chain at its end."""
    links = _links(tree)
    of = np.repeat(np.arange(len(tree)), links)  # the node that each new one stands for
    first = np.cumsum(links) - links
    by_set, leaf = tree.by_set[of], tree.is_leaf[of]
    set_side = np.where(tree.missing_left, tree.right, tree.left)
    other_side = np.where(tree.missing_left, tree.left, tree.right)
    if_true = first[np.where(tree.by_set, set_side, tree.left)][of]
    if_false = first[np.where(tree.by_set, other_side, tree.right)][of]
    last = np.append(of[1:] != of[:-1], True)
    if_false = np.where(by_set & ~last, np.arange(1, len(of) + 1), if_false)
    number = tree.threshold.astype(np.float64)[of]
    number[by_set] = tree.levels_in_sets
    return ChainedTree(
        mode=np.where(leaf, LEAF, np.where(by_set, EQUAL, LESS_OR_EQUAL)),
        feature=tree.feature[of],
        number=number,
        if_true=np.where(leaf, 0, if_true),
        if_false=np.where(leaf, 0, if_false),
        missing_is_true=tree.missing_left[of] & ~by_set,
        value=tree.value[tree.is_leaf],
    )


def chained_sizes(trees: Iterable[WholeTree]) -> Ints:
    """The number of nodes of each tree with its chains."""
    return np.array([int(_links(tree).sum()) for tree in trees], dtype=np.int64)


def _links(tree: WholeTree) -> Ints:
    """How many nodes each one becomes. No set is empty: all levels of a node would go where missing values go."""
    return np.where(tree.by_set, np.diff(tree.set_start), 1)
