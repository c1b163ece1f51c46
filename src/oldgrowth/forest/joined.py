"""The trees of several forests as one forest, part by part: nothing but small arrays is in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .forest import Forest
from .nodes import with_classes

Ints = npt.NDArray[np.int64]

_NODES, _TABLE, _SETS, _CRC = "nodes", "table", "sets", "tree_crc"
_TREES = (_NODES, _TABLE, _SETS)
# Arrays whose items are positions: those of a forest go on from the last one of the forest before.
_STARTS = (
    "top_start",
    "bucket_start",
    "bottom_start",
    "node_start",
    "table_start",
    "top_set_start",
    "set_start",
)


@dataclass(frozen=True)
class Renumbered:
    """A forest in the numbers of the union: what a forest numbers on its own is renumbered here, and nowhere
    else. That is its classes: `classes` has the number in the union of each."""

    forest: Forest
    classes: Ints
    n_classes: int

    @property
    def unchanged(self) -> bool:
        """Whether all numbers, and so the bytes of all trees, stay as they are."""
        return np.array_equal(self.classes, np.arange(self.n_classes))

    def nodes(self) -> Iterator[npt.NDArray[np.uint64]]:
        for part in self.forest.parts(_NODES):
            yield part if self.unchanged else with_classes(part, self.classes)

    def table(self) -> Iterator[npt.NDArray[np.float32]]:
        """The leaf table, with a column for each class of the union."""
        if self.unchanged:
            yield from self.forest.parts(_TABLE)
            return
        width = self.forest.n_classes
        rest = np.zeros(0, dtype=np.float32)
        for part in self.forest.parts(_TABLE):
            values = np.concatenate([rest, part])
            whole = len(values) // width * width
            rest = values[whole:].copy()
            wide = np.zeros((whole // width, self.n_classes), dtype=np.float32)
            wide[:, self.classes] = values[:whole].reshape(-1, width)
            yield wide.ravel()


class JoinedForests:
    """Several forests over the same features and levels, one after the other, as the arrays of one.

    The parts of `nodes`, `table` and `tree_crc` are made in this order, once.
    """

    def __init__(self, forests: Sequence[Renumbered]) -> None:
        self._forests = forests
        first = forests[0]
        self.n_features, self.n_classes = first.forest.n_features, first.n_classes
        self.saved_to: Path | None = None
        self.array_names, self.levels = first.forest.array_names, first.forest.levels
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        for name in self.array_names:
            if name in _TREES:
                continue
            of_each = [np.concatenate([*one.forest.parts(name)]) for one in forests]
            if name == "levels":
                self._arrays[name] = of_each[0]
            elif name in _STARTS:
                self._arrays[name] = _one_after_the_other(of_each)
            else:
                self._arrays[name] = np.concatenate(of_each)
        self._arrays[_CRC] = np.concatenate(
            [one.forest.tree_crc if one.unchanged else np.zeros_like(one.forest.tree_crc) for one in forests]
        )

    @property
    def n_trees(self) -> int:
        return int(self._arrays["trees_of_top"].sum())

    @property
    def n_nodes(self) -> int:
        return self.length(_NODES) + len(self._arrays["top_nodes"])

    def length(self, name: str) -> int:
        """The number of items of an array."""
        if name == _NODES:
            return int(self._arrays["node_start"][-1])
        if name == _TABLE:
            return int(self._arrays["table_start"][-1]) * max(1, self.n_classes)
        if name == _SETS:
            return int(self._arrays["set_start"][-1])
        return len(self._arrays[name])

    def parts(self, name: str) -> Iterator[npt.NDArray[Any]]:
        """The parts of an array, in order. What is read from files is checked, as by `Forest.parts`."""
        if name == _CRC and self.levels:
            self._add_sets()
        if name in (_NODES, _TABLE):
            yield from self._renumbered(name)
        elif name == _SETS:
            for one in self._forests:
                yield from one.forest.parts(name)
        else:
            yield self._arrays[name]

    def _add_sets(self) -> None:
        """Add the sets of the trees to those checksums that are made anew."""
        first_tree = 0
        for one in self._forests:
            crcs = self._crcs(one, first_tree)
            first_tree += len(crcs)
            at = 0
            for part in one.forest.parts(_SETS) if not one.unchanged else ():
                _add_checksums(crcs, one.forest.set_start.astype(np.int64), at, part)
                at += len(part)

    def _crcs(self, one: Renumbered, first_tree: int) -> npt.NDArray[np.uint32]:
        """The checksums of the trees of a forest."""
        found: npt.NDArray[np.uint32] = self._arrays[_CRC][first_tree : first_tree + len(one.forest.tree_crc)]
        return found

    def _renumbered(self, name: str) -> Iterator[npt.NDArray[Any]]:
        """Nodes or table in the numbers of the union, and their part of the checksums."""
        first_tree = 0
        for one in self._forests:
            crcs = self._crcs(one, first_tree)
            first_tree += len(crcs)
            starts = one.forest.node_start.astype(np.int64)
            parts: Iterator[npt.NDArray[Any]] = one.nodes()
            if name == _TABLE:
                starts, parts = one.forest.table_start.astype(np.int64) * one.n_classes, one.table()
            at = 0
            for part in parts:
                if not one.unchanged:
                    _add_checksums(crcs, starts, at, part)
                at += len(part)
                yield part


def _one_after_the_other(starts: list[npt.NDArray[np.uint64]]) -> npt.NDArray[np.uint64]:
    moved = [np.zeros(1, dtype=np.uint64)]
    for start in starts:
        moved.append(start[1:] + moved[-1][-1])
    return np.concatenate(moved)


def _add_checksums(crcs: npt.NDArray[np.uint32], starts: Ints, at: int, part: npt.NDArray[Any]) -> None:
    """Add to the checksum of each tree those of its items that are in a part, which begins at item `at`."""
    tree = int(np.searchsorted(starts, at, side="right")) - 1
    done = 0
    while done < len(part):
        end = min(len(part), int(starts[tree + 1]) - at)
        crcs[tree] = _core.crc32c(part[done:end].view(np.uint8), int(crcs[tree]))
        done, tree = end, tree + 1
