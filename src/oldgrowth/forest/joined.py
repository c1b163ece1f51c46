"""The trees of several forests as one forest, part by part: nothing but small arrays is in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .renumbered import Renumbered

Ints = npt.NDArray[np.int64]

_NODES, _TABLE, _SETS, _CRC = "nodes", "table", "sets", "tree_crc"
_OF_TREES = (_NODES, _TABLE, _SETS)
_START_OF = {_NODES: "node_start", _TABLE: "table_start", _SETS: "set_start"}


class JoinedForests:
    """Several forests over the same features, one after the other, as the arrays of one.

    If they are `continued`, a forest may go on with the last top tree of the one before: the trees of each of
    its buckets then come together. The parts of `nodes`, `table` and `tree_crc` are made in this order, once.
    """

    def __init__(self, forests: Sequence[Renumbered], continued: bool = False) -> None:
        self._forests = forests
        first = forests[0]
        self.n_features, self.n_classes = first.forest.n_features, first.n_classes
        self.levels = first.levels
        self.saved_to: Path | None = None
        self.array_names = first.array_names
        shared = [continued and _same_top(a, b) for a, b in pairwise(forests)]
        self._arrays = self._small_arrays([False, *shared])
        self._order = _order(forests, [False, *shared])
        for name in _OF_TREES:
            lengths = np.concatenate([one.lengths(name) for one in forests])
            self._arrays[_START_OF[name]] = _starts(lengths[self._order])
        self._crcs = np.concatenate(
            [one.forest.tree_crc if one.unchanged else np.zeros_like(one.forest.tree_crc) for one in forests]
        )

    def _small_arrays(self, shared: list[bool]) -> dict[str, npt.NDArray[Any]]:
        """Top trees, and how many buckets and trees each has; `shared` tells which forests go on with the top
        tree of the one before."""
        tops, sets = [], []
        buckets: list[int] = []
        trees: list[int] = []
        for one, goes_on in zip(self._forests, shared, strict=True):
            counts = np.diff(one.forest.bucket_start.astype(np.int64)).tolist()
            for top, (nodes, words) in enumerate(one.top_trees()):
                n_trees = int(one.forest.trees_of_top[top])
                if goes_on and top == 0:
                    trees[-1] += n_trees
                    continue
                tops.append(nodes)
                sets.append(words)
                buckets.append(counts[top])
                trees.append(n_trees)
        return {
            "top_nodes": np.concatenate(tops),
            "top_start": _starts(list(map(len, tops))),
            "bucket_start": _starts(buckets),
            "trees_of_top": np.array(trees, dtype=np.uint64),
            "bottom_start": _starts([n * b for n, b in zip(trees, buckets, strict=True)]),
            "levels": np.array(self.levels, dtype=np.uint32),
            "top_sets": np.concatenate(sets),
            "top_set_start": _starts(list(map(len, sets))),
        }

    @property
    def trees_of_top(self) -> npt.NDArray[np.uint64]:
        return self._arrays["trees_of_top"]

    @property
    def n_trees(self) -> int:
        return int(self.trees_of_top.sum())

    @property
    def n_nodes(self) -> int:
        return self.length(_NODES) + len(self._arrays["top_nodes"])

    def length(self, name: str) -> int:
        """The number of items of an array."""
        if name in _OF_TREES:
            width = max(1, self.n_classes) if name == _TABLE else 1
            return int(self._arrays[_START_OF[name]][-1]) * width
        return len(self._crcs) if name == _CRC else len(self._arrays[name])

    def parts(self, name: str) -> Iterator[npt.NDArray[Any]]:
        """The parts of an array, in order. What is read from files is checked, as by `Forest.parts`."""
        if name in (_NODES, _TABLE):
            yield from self._in_order(name, add_checksums=True)
        elif name == _SETS:
            yield from self._in_order(name)
        elif name == _CRC:
            if self.levels:
                for _ in self._in_order(name=_SETS, add_checksums=True):
                    pass
            yield self._crcs[self._order]
        else:
            yield self._arrays[name]

    def _in_order(self, name: str, add_checksums: bool = False) -> Iterator[npt.NDArray[Any]]:
        """The arrays of trees in the numbers of the union; their part of the checksums that are made anew."""
        readers, lengths, first_trees = [], [], [0]
        for one in self._forests:
            readers.append(_Reader(one.parts(name)))
            width = one.n_classes if name == _TABLE and one.n_classes else 1
            lengths.append(one.lengths(name) * width)
            first_trees.append(first_trees[-1] + len(lengths[-1]))
        for first, last in _runs(self._order, first_trees):
            of = int(np.searchsorted(first_trees, first, side="right")) - 1
            one, begin = self._forests[of], first_trees[of]
            mine = lengths[of][first - begin : last - begin]
            starts, at = np.concatenate([[0], np.cumsum(mine)]), 0
            for part in readers[of].take(int(starts[-1])):
                if add_checksums and not one.unchanged:
                    _add_checksums(self._crcs[first:last], starts, at, part)
                at += len(part)
                yield part
        for reader in readers:
            reader.finish()


class _Reader:
    """Takes any number of items from the parts of an array."""

    def __init__(self, parts: Iterator[npt.NDArray[Any]]) -> None:
        self._parts = parts
        self._rest: npt.NDArray[Any] = np.zeros(0)

    def take(self, n: int) -> Iterator[npt.NDArray[Any]]:
        while n:
            if not len(self._rest):
                self._rest = next(self._parts)
            part, self._rest = self._rest[:n], self._rest[n:]
            n -= len(part)
            yield part

    def finish(self) -> None:
        """Read to the end, where checksums are compared."""
        for _ in self._parts:
            pass


def _same_top(before: Renumbered, after: Renumbered) -> bool:
    """Whether the last top tree of a forest is the first one of another."""
    (nodes, words), (others, other_words) = [*before.top_trees()][-1], next(after.top_trees())
    return np.array_equal(nodes, others) and np.array_equal(words, other_words)


def _order(forests: Sequence[Renumbered], shared: list[bool]) -> Ints:
    """The numbers of all bottom trees, counted over the forests, in the order of the joined forest."""
    order: list[Ints] = []
    n_trees = 0
    for one, goes_on in zip(forests, shared, strict=True):
        ends = one.forest.bottom_start.astype(np.int64)
        of_tops = [np.arange(a, b) + n_trees for a, b in pairwise(ends.tolist())]
        n_trees += int(ends[-1])
        if goes_on:
            buckets = int(one.forest.bucket_start[1])
            both = [trees.reshape(buckets, -1) for trees in (order.pop(), of_tops.pop(0))]
            of_tops.insert(0, np.concatenate(both, axis=1).ravel())
        order += of_tops
    return np.concatenate(order)


def _runs(order: Ints, first_trees: list[int]) -> Iterator[tuple[int, int]]:
    """Where consecutive numbers of trees of one forest begin and end."""
    forest = np.searchsorted(first_trees, order, side="right")
    breaks = np.flatnonzero((np.diff(order) != 1) | (np.diff(forest) != 0)) + 1
    for first, last in pairwise([0, *breaks.tolist(), len(order)]):
        yield int(order[first]), int(order[last - 1]) + 1


def _starts(lengths: list[int] | Ints) -> npt.NDArray[np.uint64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)


def _add_checksums(crcs: npt.NDArray[np.uint32], starts: Ints, at: int, part: npt.NDArray[Any]) -> None:
    """Add to the checksum of each tree those of its items that are in a part, which begins at item `at`."""
    tree = int(np.searchsorted(starts, at, side="right")) - 1
    done = 0
    while done < len(part):
        end = min(len(part), int(starts[tree + 1]) - at)
        crcs[tree] = _core.crc32c(part[done:end].view(np.uint8), int(crcs[tree]))
        done, tree = end, tree + 1
