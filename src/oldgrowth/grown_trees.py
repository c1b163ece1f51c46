"""Bottom trees between growth and assembly: in memory, or in a log on disk."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from . import _core
from .task_log import Entry, Run, TaskLog
from .workspace import Workspace

if TYPE_CHECKING:
    from .oob import OobOnDisk

_TREE = struct.Struct("<QQII")  # nodes, floats of the table, depth, checksum of these


@dataclass(frozen=True)
class BottomTree:
    """One grown tree: nodes, shares of the classes in mixed leaves, gain by feature, depth."""

    nodes: npt.NDArray[np.uint64]
    table: npt.NDArray[np.float32]
    importances: npt.NDArray[np.float64]
    depth: int


@dataclass(frozen=True)
class TreeSize:
    nodes: int
    table: int
    depth: int


Key = tuple[int, int, int]  # top tree, bucket, tree within the top tree


class GrownTrees(ABC):
    @abstractmethod
    def add(self, top: int, bucket: int, first_tree: int, trees: list[BottomTree]) -> None:
        """Trees of one bucket, the first of which is the `first_tree`-th of its top tree."""

    def sync(self) -> None:  # noqa: B027 - memory does not outlive the process
        """Make sure that all trees added outlive the process."""

    @abstractmethod
    def has(self, key: Key) -> bool: ...

    @abstractmethod
    def size(self, key: Key) -> TreeSize: ...

    @abstractmethod
    def pop(self, key: Key) -> BottomTree:
        """A tree, for the last time."""


class TreesInMemory(GrownTrees):
    def __init__(self) -> None:
        self._trees: dict[Key, BottomTree] = {}

    def add(self, top: int, bucket: int, first_tree: int, trees: list[BottomTree]) -> None:
        for i, tree in enumerate(trees):
            self._trees[top, bucket, first_tree + i] = tree

    def has(self, key: Key) -> bool:
        return key in self._trees

    def size(self, key: Key) -> TreeSize:
        tree = self._trees[key]
        return TreeSize(len(tree.nodes), len(tree.table), tree.depth)

    def pop(self, key: Key) -> BottomTree:
        return self._trees.pop(key)


class TreesOnDisk(GrownTrees):
    """Takes up the trees that an interrupted fit has logged; with `votes`, those that have theirs."""

    def __init__(
        self, space: Workspace, n_features: int, n_classes: int, votes: OobOnDisk | None = None
    ) -> None:
        self._log = TaskLog(space, "trees.log", None if votes is None else votes.log)
        self._n_features, self._n_classes = n_features, n_classes
        self._places: dict[Key, tuple[int, TreeSize, int]] = {}
        self.runs: set[Run] = set()
        for entry in self._log.entries():
            if votes is None or entry.run in votes.runs:
                self._take_up(entry)
        self._taken_up = self._log.size  # what lies before was written by another process

    def _take_up(self, entry: Entry) -> None:
        offset, end = entry.offset, entry.offset + entry.size
        head = np.empty(_TREE.size, dtype=np.uint8)
        for i in range(entry.trees):
            if offset + _TREE.size > end:
                raise self._log.damaged(entry.offset, "it does not hold its trees")
            self._log.read(offset, head)
            offset = self._remember((entry.top, entry.bucket, entry.first_tree + i), offset, head.tobytes())
        if offset != end:
            raise self._log.damaged(entry.offset, "it does not hold its trees")
        self.runs.add(entry.run)

    def add(self, top: int, bucket: int, first_tree: int, trees: list[BottomTree]) -> None:
        parts, heads = [], []
        for tree in trees:
            bits = [array.view(np.uint8) for array in (tree.importances, tree.nodes, tree.table)]
            crc = 0
            for part in bits:
                crc = _core.crc32c(part, crc)
            heads.append(_TREE.pack(len(tree.nodes), len(tree.table), tree.depth, crc))
            parts += [np.frombuffer(heads[-1], dtype=np.uint8), *bits]
        entry = self._log.append(top, bucket, first_tree, len(trees), parts)
        self.runs.add(entry.run)
        offset = entry.offset
        for i, head in enumerate(heads):
            offset = self._remember((top, bucket, first_tree + i), offset, head)

    def _remember(self, key: Key, offset: int, head: bytes) -> int:
        *numbers, crc = _TREE.unpack(head)
        size = TreeSize(*numbers)
        self._places[key] = offset + _TREE.size, size, crc
        return offset + _TREE.size + 8 * (self._n_features + size.nodes) + 4 * size.table

    def sync(self) -> None:
        self._log.sync()

    def has(self, key: Key) -> bool:
        return key in self._places

    def size(self, key: Key) -> TreeSize:
        return self._places[key][1]

    def pop(self, key: Key) -> BottomTree:
        offset, size, crc = self._places.pop(key)
        data = np.empty(8 * (self._n_features + size.nodes) + 4 * size.table, dtype=np.uint8)
        self._log.read(offset, data)
        if _core.crc32c(data) != crc:
            raise self._log.damaged(offset, "its checksum does not match")
        nodes = 8 * self._n_features
        table = nodes + 8 * size.nodes
        tree = BottomTree(
            data[nodes:table].view(np.uint64),
            data[table:].view(np.float32),
            data[:nodes].view(np.float64),
            size.depth,
        )
        if offset < self._taken_up and not self._possible(tree):
            raise self._log.damaged(offset, "this is no tree of the forest")
        return tree

    def _possible(self, tree: BottomTree) -> bool:
        """Whether nothing in a tree leads outside of it, as with those of a model file."""
        rows, rest = divmod(len(tree.table), max(self._n_classes, 1))
        whole = rest == 0 and (self._n_classes > 0 or rows == 0)
        gains = bool(np.isfinite(tree.importances).all() and (tree.importances >= 0).all())
        sound = _core.check_bottom_tree(tree.nodes, self._n_features, self._n_classes, rows)
        return whole and gains and sound
