"""Trees for formats that compare with a threshold: a split by a set of levels is a chain of nodes, two for
each run of consecutive levels in the set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..forest.whole_trees import WholeTree

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ChainedTree:
    """Nodes that send values up to a threshold one way; several may lead to the same node."""

    is_leaf: Bools
    feature: Ints
    threshold: npt.NDArray[np.float64]
    below: Ints  # 0 for leaves
    above: Ints
    missing_below: Bools
    value: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.is_leaf)


def chained(tree: WholeTree) -> ChainedTree:
    """A tree with a chain in place of each node that splits by a set. It asks, in ascending order, whether a
    value is before the first run, in it, before the second run, and so on."""
    runs = _Runs.of(tree)
    links = runs.links
    of = np.repeat(np.arange(len(tree)), links)  # the node that each new one stands for
    first = np.cumsum(links) - links
    by_set, leaf = tree.by_set[of], tree.is_leaf[of]
    in_set = np.where(tree.missing_left, tree.right, tree.left)
    outside = np.where(tree.missing_left, tree.left, tree.right)
    link = np.arange(len(of)) - first[of]
    last = np.append(of[1:] != of[:-1], True)
    below = first[np.where(by_set, np.where(link % 2, in_set[of], outside[of]), tree.left[of])]
    above = first[np.where(by_set, outside[of], tree.right[of])]
    threshold = tree.threshold.astype(np.float64)[of]
    threshold[by_set] = runs.thresholds
    return ChainedTree(
        is_leaf=leaf,
        feature=tree.feature[of],
        threshold=threshold,
        below=np.where(leaf, 0, below),
        above=np.where(leaf, 0, np.where(by_set & ~last, np.arange(1, len(of) + 1), above)),
        missing_below=np.where(by_set, link == 0, tree.missing_left[of]),
        value=tree.value[of] * leaf[:, None],
    )


def chained_sizes(trees: Iterable[WholeTree]) -> Ints:
    """The number of nodes of each tree with its chains."""
    return np.array([int(_Runs.of(tree).links.sum()) for tree in trees], dtype=np.int64)


@dataclass(frozen=True)
class _Runs:
    """How many nodes each node becomes, and the thresholds of those that stand for a set: before and at the
    end of each run of consecutive levels."""

    links: Ints
    thresholds: npt.NDArray[np.float64]

    @staticmethod
    def of(tree: WholeTree) -> _Runs:
        levels, start = tree.levels_in_sets, tree.set_start
        begins = np.ones(len(levels) + 1, dtype=bool)
        begins[1:-1] = np.diff(levels) != 1
        begins[start] = True
        run = np.flatnonzero(begins[:-1])
        end = np.flatnonzero(begins[1:])
        thresholds = np.stack([levels[run] - 0.5, levels[end] + 0.5], axis=1).ravel()
        of_node = np.searchsorted(run, start)
        return _Runs(np.where(tree.by_set, 2 * np.diff(of_node), 1), thresholds)
