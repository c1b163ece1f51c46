"""Bottom trees between growth and assembly: in memory, or in a log on disk."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .. import _core
from ..plan import Plan
from .task_log import Entry, Run, TaskLog
from .workspace import Workspace

if TYPE_CHECKING:
    from .votes import OobOnDisk

_TREE = struct.Struct("<QQQII")  # nodes, floats of the table, words of the sets, depth, checksum of these

NO_SETS = np.empty(0, dtype=np.uint16)


# Where a tree is in the log, and how long.
_PLACE = np.dtype(
    [("bucket", "<u4"), ("tree", "<u4"), ("depth", "<u4"), ("crc", "<u4"),
     ("offset", "<u8"), ("nodes", "<u4"), ("table", "<u8"), ("sets", "<u4")]
)  # fmt: skip
_PACKED_PLACE = struct.Struct("<IIIIQIQI")


@dataclass(frozen=True)
class BottomTree:
    """One grown tree: nodes, shares of the classes in mixed leaves, gain by feature, depth, sets of
    levels."""

    nodes: npt.NDArray[np.uint64]
    table: npt.NDArray[np.float32]
    importances: npt.NDArray[np.float64]
    depth: int
    sets: npt.NDArray[np.uint16]


@dataclass(frozen=True)
class TreeSizes:
    """For each of some trees: its nodes, the floats of its table, its depth, the words of its sets."""

    nodes: npt.NDArray[np.generic]
    table: npt.NDArray[np.generic]
    depth: npt.NDArray[np.generic]
    sets: npt.NDArray[np.generic]


class GrownTrees(ABC):
    """Bottom trees by top tree, bucket and number within the top tree."""

    @abstractmethod
    def add(self, top: int, bucket: int, first_tree: int, trees: list[BottomTree]) -> None:
        """Add trees of one bucket; the first is the `first_tree`-th of its top tree."""

    def sync(self) -> None:  # noqa: B027 - memory does not outlive the process
        """Make sure that all trees added outlive the process."""

    @abstractmethod
    def grown(self, top: int, n_buckets: int, n_trees: int) -> npt.NDArray[np.bool_]:
        """Which trees of which buckets were added: buckets x trees."""

    @abstractmethod
    def sizes(self, top: int, n_buckets: int, n_trees: int) -> TreeSizes:
        """Of all trees of a top tree, bucket by bucket."""

    @abstractmethod
    def pop_all(self, top: int, n_buckets: int, n_trees: int) -> Iterator[BottomTree]:
        """Remove and return all trees of a top tree, in the same order."""


class TreesInMemory(GrownTrees):
    def __init__(self) -> None:
        self._trees: dict[int, dict[tuple[int, int], BottomTree]] = {}

    def add(self, top: int, bucket: int, first_tree: int, trees: list[BottomTree]) -> None:
        mine = self._trees.setdefault(top, {})
        for i, tree in enumerate(trees):
            mine[bucket, first_tree + i] = tree

    def grown(self, top: int, n_buckets: int, n_trees: int) -> npt.NDArray[np.bool_]:
        found = np.zeros((n_buckets, n_trees), dtype=np.bool_)
        for key in self._trees.get(top, {}):
            found[key] = True
        return found

    def sizes(self, top: int, n_buckets: int, n_trees: int) -> TreeSizes:
        trees = [self._trees[top][divmod(i, n_trees)] for i in range(n_buckets * n_trees)]
        lengths = [(len(tree.nodes), len(tree.table), tree.depth, len(tree.sets)) for tree in trees]
        return TreeSizes(*np.array(lengths, dtype=np.int64).reshape(-1, 4).T)

    def pop_all(self, top: int, n_buckets: int, n_trees: int) -> Iterator[BottomTree]:
        for i in range(n_buckets * n_trees):
            yield self._trees[top].pop(divmod(i, n_trees))


class TreesOnDisk(GrownTrees):
    """Starts with the trees that an interrupted fit logged; with `votes`, only those whose votes are logged,
    too."""

    def __init__(
        self, workspace: Workspace, n_features: int, plan: Plan, votes: OobOnDisk | None = None
    ) -> None:
        self._log = TaskLog(workspace, "trees.log", None if votes is None else votes.log)
        self._n_features, self._n_classes, self._levels = n_features, plan.n_classes, plan.levels
        self._places: dict[int, bytearray] = {}  # of each top tree; there may be millions
        # The trees that are there, as they were grown together, if there are votes of an interrupted fit.
        self.runs: set[Run] | None = None if votes is None or not votes.resumed_bytes else set()
        with_votes = None if votes is None else votes.runs()
        for entry in self._log.entries():
            if with_votes is None or entry.run in with_votes:
                self._resume(entry)
        self._resumed_bytes = self._log.size  # what lies before was written by another process

    def _resume(self, entry: Entry) -> None:
        offset, end = entry.offset, entry.offset + entry.size
        head = np.empty(_TREE.size, dtype=np.uint8)
        for i in range(entry.trees):
            if offset + _TREE.size > end:
                raise self._log.impossible(entry.offset, "it does not hold its trees")
            self._log.read(offset, head)
            n_nodes, n_table, n_sets, *_ = _TREE.unpack(head.tobytes())
            if offset + _TREE.size + 8 * n_nodes + 4 * n_table + 2 * n_sets > end:
                raise self._log.impossible(entry.offset, "it does not hold its trees")
            offset = self._remember(entry.top, entry.bucket, entry.first_tree + i, offset, head.tobytes())
        if offset != end:
            raise self._log.impossible(entry.offset, "it does not hold its trees")
        self._add_run(entry)

    def _add_run(self, entry: Entry) -> None:
        if self.runs is not None:
            self.runs.add(entry.run)

    def add(self, top: int, bucket: int, first_tree: int, trees: list[BottomTree]) -> None:
        parts, heads = [], []
        for tree in trees:
            bits = [array.view(np.uint8) for array in (tree.importances, tree.nodes, tree.table, tree.sets)]
            crc = 0
            for part in bits:
                crc = _core.crc32c(part, crc)
            heads.append(_TREE.pack(len(tree.nodes), len(tree.table), len(tree.sets), tree.depth, crc))
            parts += [np.frombuffer(heads[-1], dtype=np.uint8), *bits]
        size = sum(len(part) for part in parts)
        entry = self._log.append(top, bucket, first_tree, len(trees), parts, size)
        self._add_run(entry)
        offset = entry.offset
        for i, head in enumerate(heads):
            offset = self._remember(top, bucket, first_tree + i, offset, head)

    def _remember(self, top: int, bucket: int, tree: int, offset: int, head: bytes) -> int:
        nodes, table, sets, depth, crc = _TREE.unpack(head)
        place = _PACKED_PLACE.pack(bucket, tree, depth, crc, offset + _TREE.size, nodes, table, sets)
        self._places.setdefault(top, bytearray()).extend(place)
        return int(offset + _TREE.size + 8 * (self._n_features + nodes) + 4 * table + 2 * sets)

    def sync(self) -> None:
        self._log.sync()

    def grown(self, top: int, n_buckets: int, n_trees: int) -> npt.NDArray[np.bool_]:
        return (self._index(top, n_buckets, n_trees) >= 0).reshape(n_buckets, n_trees)

    def sizes(self, top: int, n_buckets: int, n_trees: int) -> TreeSizes:
        places = self._in_order(top, n_buckets, n_trees)
        return TreeSizes(places["nodes"], places["table"], places["depth"], places["sets"])

    def pop_all(self, top: int, n_buckets: int, n_trees: int) -> Iterator[BottomTree]:
        places = self._in_order(top, n_buckets, n_trees)
        del self._places[top]
        for place in places:
            offset = int(place["offset"])
            nodes = 8 * self._n_features
            table = nodes + 8 * int(place["nodes"])
            sets = table + 4 * int(place["table"])
            data = np.empty(sets + 2 * int(place["sets"]), dtype=np.uint8)
            self._log.read(offset, data)
            if _core.crc32c(data) != place["crc"]:
                raise self._log.damaged(offset, "its checksum does not match")
            tree = BottomTree(
                data[nodes:table].view(np.uint64),
                data[table:sets].view(np.float32),
                data[:nodes].view(np.float64),
                int(place["depth"]),
                data[sets:].view(np.uint16),
            )
            if offset < self._resumed_bytes and not self._possible(tree):
                raise self._log.impossible(offset, "this is no tree of the forest")
            yield tree

    def _possible(self, tree: BottomTree) -> bool:
        """Whether nothing in a tree leads outside of it, as with those of a model file."""
        rows, rest = divmod(len(tree.table), max(self._n_classes, 1))
        whole = rest == 0 and (self._n_classes > 0 or rows == 0)
        whole = whole and (bool(self._levels) or len(tree.sets) == 0)
        gains = bool(np.isfinite(tree.importances).all() and (tree.importances >= 0).all())
        sound = _core.check_bottom_tree(
            tree.nodes, self._n_features, self._n_classes, rows, tree.sets, self._levels
        )
        return whole and gains and sound

    def _index(self, top: int, n_buckets: int, n_trees: int) -> npt.NDArray[np.int64]:
        """Where each tree's place is, bucket by bucket; -1 for a tree that is not there."""
        places = np.frombuffer(bytes(self._places.get(top, b"")), dtype=_PLACE)
        index = np.full(n_buckets * n_trees, -1, dtype=np.int64)
        known = np.flatnonzero((places["bucket"] < n_buckets) & (places["tree"] < n_trees))
        slots = places["bucket"][known].astype(np.int64) * n_trees + places["tree"][known]
        index[slots] = known
        if (places["crc"][known] != places["crc"][index[slots]]).any():  # grown twice, it is the same
            raise self._log.impossible(0, "two of its trees are in one place")
        return index

    def _in_order(self, top: int, n_buckets: int, n_trees: int) -> npt.NDArray[np.void]:
        index = self._index(top, n_buckets, n_trees)
        if (index < 0).any():
            raise self._log.impossible(0, "trees of an earlier run are missing")
        return np.frombuffer(bytes(self._places[top]), dtype=_PLACE)[index]
