"""The bits of a node, as defined in cpp/base/node.hpp. No other Python module knows them.

All functions take arrays of nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core

Nodes = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]

_LEAF = np.uint64(_core.LEAF_BIT)
_LEVEL_LIST = 0x8000
_MIXED = np.uint64(_core.MIXED_BIT)


def is_leaf(nodes: Nodes) -> npt.NDArray[np.bool_]:
    return nodes >= _LEAF


def payload(leaves: Nodes) -> Ints:
    """The contents of a leaf; in a top tree, the number of its bucket."""
    return (leaves & ~_LEAF).astype(np.int64)


def bucket_leaves(buckets: npt.ArrayLike) -> Nodes:
    """Leaves of a top tree for these buckets."""
    return np.asarray(buckets, dtype=np.uint64) | _LEAF


def with_classes(nodes: Nodes, numbers: Ints) -> Nodes:
    """The nodes of classification trees with other numbers of classes: class k becomes `numbers[k]`."""
    pure = is_leaf(nodes) & ((nodes & _MIXED) == 0)
    renumbered = nodes.copy()
    renumbered[pure] = numbers[payload(nodes[pure])].astype(np.uint64) | _LEAF
    return renumbered


def threshold(nodes: Nodes) -> npt.NDArray[np.float32]:
    return (nodes & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32)


class NodeFormat:
    """The fields whose position depends on the number of features."""

    def __init__(self, n_features: int) -> None:
        self._right_shift = np.uint64(_core.right_shift(n_features))
        self._missing_shift = self._right_shift - np.uint64(1)
        self._feature_mask = (np.uint64(1) << (self._missing_shift - np.uint64(32))) - np.uint64(1)

    def right(self, splits: Nodes) -> Ints:
        """Distance of the right child, in nodes."""
        return (splits >> self._right_shift).astype(np.int64)

    def moved_right(self, splits: Nodes, by: int) -> Nodes:
        """The same splits with right children that are farther away."""
        return splits + (np.uint64(by) << self._right_shift)

    def feature(self, splits: Nodes) -> Ints:
        return (splits >> np.uint64(32) & self._feature_mask).astype(np.int64)

    def missing_left(self, splits: Nodes) -> npt.NDArray[np.bool_]:
        return (splits >> self._missing_shift & np.uint64(1)).astype(bool)


def with_moved_sets(nodes: Nodes, levels: tuple[int, ...], by: int) -> Nodes:
    """A copy of a tree whose sets of levels come after `by` other words."""
    moved = nodes.copy()
    if levels and by:
        splits = np.flatnonzero(~is_leaf(nodes))
        features = NodeFormat(len(levels)).feature(nodes[splits])
        apart = splits[np.array(levels)[features] > _core.INLINE_LEVELS]  # their sets are beside the nodes
        moved[apart] += np.uint64(by)
    return moved


def levels_of_set(bits: int, n_levels: int, words: npt.NDArray[np.uint16]) -> list[int]:
    """The levels of the set of a node, whose 32 threshold bits are `bits`, as in cpp/base/level_set.hpp."""
    if n_levels <= _core.INLINE_LEVELS:
        return [level for level in range(n_levels) if bits >> level & 1]
    n = int(words[bits]) & ~_LEVEL_LIST
    if int(words[bits]) & _LEVEL_LIST:
        return words[bits + 1 : bits + 1 + n].tolist()
    first, bitmap = 16 * int(words[bits + 1]), words[bits + 2 : bits + 2 + n]
    return (first + np.flatnonzero(np.unpackbits(bitmap.view(np.uint8), bitorder="little"))).tolist()


def leaf_values(leaves: Nodes) -> npt.NDArray[np.float64]:
    """The values of the leaves of a regression tree."""
    return (leaves << np.uint64(1)).view(np.float64)


def leaf_shares(
    leaves: Nodes, table: npt.NDArray[Any], first_row: Ints | int, hard: bool
) -> npt.NDArray[np.float64]:
    """The share of each class in the leaves of a classification tree; if `hard`, 1 for the largest class.

    `table` has a column for each class; the rows of the leaves' trees begin at `first_row`.
    """
    held = leaves & ~_LEAF
    mixed = (held & _MIXED) != 0
    shares = np.zeros((len(leaves), table.shape[1]))
    shares[~mixed, held[~mixed].astype(np.intp)] = 1.0
    row = np.broadcast_to(np.asarray(first_row), leaves.shape)[mixed]
    of_mixed = table[row + (held[mixed] & ~_MIXED).astype(np.int64)]
    if hard:
        shares[np.flatnonzero(mixed), of_mixed.argmax(axis=1)] = 1.0
    else:
        shares[mixed] = of_mixed
    return shares
