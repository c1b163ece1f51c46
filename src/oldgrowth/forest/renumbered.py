"""A forest in the numbers of a union of forests: what a forest numbers on its own is renumbered here, and
nowhere else. That is its classes and the levels of its categorical features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .forest import ARRAYS, CATEGORY_ARRAYS, Forest
from .nodes import with_classes

Ints = npt.NDArray[np.int64]

NO_LEVEL = _core.NO_LEVEL
_STARTS = {"nodes": "node_start", "table": "table_start", "sets": "set_start"}
_TYPES = {"nodes": np.uint64, "sets": np.uint16}
_NO_WORDS = np.zeros(0, dtype=np.uint16)


@dataclass(frozen=True)
class Renumbered:
    """A forest, the number in the union of each of its classes, and its code, or NO_LEVEL, of each level of
    the union: for each feature, empty for numbers; without features if none is categorical."""

    forest: Forest
    classes: Ints
    n_classes: int
    codes: tuple[npt.NDArray[np.uint32], ...] = ()

    @property
    def array_names(self) -> tuple[str, ...]:
        """The names of the arrays of the union."""
        return ARRAYS + CATEGORY_ARRAYS if self.codes else ARRAYS

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of levels of each feature of the union."""
        return tuple(map(len, self.codes))

    @property
    def unchanged(self) -> bool:
        """Whether all numbers, and so the bytes of all trees, stay as they are."""
        return self._map is None and np.array_equal(self.classes, np.arange(self.n_classes))

    @cached_property
    def _map(self) -> _core.LevelMap | None:
        """Recodes the sets of levels; None if they stay as they are."""
        own = self.forest.levels
        if own == self.levels and all(np.array_equal(of, np.arange(len(of))) for of in self.codes):
            return None
        if not own:  # no node splits by levels
            return None
        return _core.LevelMap(list(own), [of.tolist() for of in self.codes])

    def top_trees(self) -> Iterator[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint16]]]:
        """The nodes and sets of each top tree."""
        forest = self.forest
        ends = forest.top_start.astype(np.int64).tolist()
        for top, (first, last) in enumerate(pairwise(ends)):
            nodes, words = forest.top_nodes[first:last], _NO_WORDS
            if forest.levels:
                words = forest.top_sets[int(forest.top_set_start[top]) : int(forest.top_set_start[top + 1])]
            yield (nodes, words) if self._map is None else self._map.recoded(nodes, words)

    def lengths(self, name: str) -> Ints:
        """The nodes, the rows of the table or the words of the sets of each bottom tree."""
        if name == "sets" and self._map is not None:
            return self._new_set_lengths
        if name == "sets" and not self.forest.levels:
            return np.zeros(len(self.forest.tree_crc), dtype=np.int64)
        return np.diff(getattr(self.forest, _STARTS[name]).astype(np.int64))

    @cached_property
    def _new_set_lengths(self) -> Ints:
        return np.array([len(words) for _, words in self._recoded()], dtype=np.int64)

    def parts(self, name: str) -> Iterator[npt.NDArray[Any]]:
        """The parts of an array of the bottom trees."""
        if name == "nodes":
            yield from self._nodes()
        elif name == "table":
            yield from self._table()
        elif self._map is not None:
            yield from (words for _, words in self._recoded())
        elif self.forest.levels:
            yield from self.forest.parts(name)

    def _nodes(self) -> Iterator[npt.NDArray[np.uint64]]:
        same_classes = np.array_equal(self.classes, np.arange(self.n_classes))
        parts = self.forest.parts("nodes") if self._map is None else (nodes for nodes, _ in self._recoded())
        for part in parts:
            yield part if same_classes else with_classes(part, self.classes)

    def _recoded(self) -> Iterator[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint16]]]:
        """The nodes and sets of each bottom tree, by the levels of the union."""
        assert self._map is not None
        own = zip(*(self._of_each_tree(name) for name in ("nodes", "sets")), strict=True)
        for nodes, words in own:
            yield self._map.recoded(nodes, words)

    def _of_each_tree(self, name: str) -> Iterator[npt.NDArray[Any]]:
        """An array of the forest, tree by tree."""
        parts, rest = self.forest.parts(name), np.zeros(0, dtype=np.uint8)
        for length in np.diff(getattr(self.forest, _STARTS[name]).astype(np.int64)).tolist():
            waiting = [rest] if len(rest) else []
            n = len(rest)
            while n < length:
                waiting.append(next(parts))
                n += len(waiting[-1])
            whole = np.concatenate(waiting) if len(waiting) > 1 else waiting[0] if waiting else rest
            rest = whole[length:]
            yield whole[:length] if length else np.zeros(0, dtype=_TYPES[name])
        for _ in parts:  # to the end, where its checksum is compared
            pass

    def _table(self) -> Iterator[npt.NDArray[np.float32]]:
        """The leaf table, with a column for each class of the union."""
        if np.array_equal(self.classes, np.arange(self.n_classes)):
            yield from self.forest.parts("table")
            return
        width = self.forest.n_classes
        rest = np.zeros(0, dtype=np.float32)
        for part in self.forest.parts("table"):
            values = np.concatenate([rest, part])
            whole = len(values) // width * width
            rest = values[whole:].copy()
            wide = np.zeros((whole // width, self.n_classes), dtype=np.float32)
            wide[:, self.classes] = values[:whole].reshape(-1, width)
            yield wide.ravel()
