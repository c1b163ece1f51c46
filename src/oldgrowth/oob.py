"""Out-of-bag predictions: what the trees that did not see a row say of it."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from . import _core
from .forest import Forest
from .plan import Plan
from .progress import StageProgress
from .sample import Sampled
from .task_log import Entry, Run, TaskLog
from .training_rows import Pass, Place
from .workspace import Workspace

# Sums are whole numbers of this size, so that the order in which trees are grown does not matter.
_UNIT = 2.0**40

# Rows whose votes are added up at a time, if memory is short.
_FEWEST_ROWS = 1024
# Rows whose means are made at a time, of votes that are in memory.
_ROWS_AT_A_TIME = 65_536

_LEAF_BIT, _MIXED_BIT = np.uint64(1 << 63), np.uint64(1 << 62)


@dataclass(frozen=True)
class Votes:
    """Sums over some trees for each of a bucket's rows, and how many trees did not see it."""

    sums: npt.NDArray[np.int64]
    trees: npt.NDArray[np.uint32]
    targets: npt.NDArray[np.float64]
    core: _core.Oob


@dataclass(frozen=True)
class OobRows:
    """The mean over the trees for consecutive rows; NaN for a row that every tree has seen."""

    mean: npt.NDArray[np.float64]
    targets: npt.NDArray[np.float64]


class OutOfBag(ABC):
    """Adds up what buckets say while they are grown."""

    def __init__(self, n_rows: int, plan: Plan) -> None:
        self._n_rows = n_rows
        self._plan = plan
        self._outputs = plan.n_classes or 1
        self._scale = _UNIT / plan.target_scale

    def votes(self, bucket: _core.Bucket) -> Votes:
        """Room for the votes of trees that are grown on a bucket."""
        n, plan = bucket.rows, self._plan
        sums, trees = np.zeros((n, self._outputs), dtype=np.int64), np.zeros(n, dtype=np.uint32)
        core = _core.Oob(sums, trees, self._scale, plan.target_offset, plan.hard_votes)
        return Votes(sums, trees, bucket.targets(plan.target_scale), core)

    @abstractmethod
    def add(self, top: int, bucket: int, trees: range, numbers: npt.NDArray[np.uint32], votes: Votes) -> None:
        """What these trees of a bucket say of its rows, which have these numbers."""

    def sync(self) -> None:  # noqa: B027 - memory does not outlive the process
        """Make sure that all votes added outlive the process."""

    @abstractmethod
    def means(self) -> Iterator[OobRows]:
        """All rows in order, some at a time."""

    def _mean(self, sums: npt.NDArray[np.int64], trees: npt.NDArray[np.uint32]) -> npt.NDArray[np.float64]:
        seen_by = np.where(trees == 0, np.nan, trees)[:, None]
        return sums / (seen_by * self._scale) + self._plan.target_offset


class OobInMemory(OutOfBag):
    def __init__(self, n_rows: int, plan: Plan) -> None:
        super().__init__(n_rows, plan)
        self._sums = np.zeros((n_rows, self._outputs), dtype=np.int64)
        self._trees = np.zeros(n_rows, dtype=np.uint32)
        self._targets = np.zeros(n_rows)
        self._lock = threading.Lock()

    def add(self, top: int, bucket: int, trees: range, numbers: npt.NDArray[np.uint32], votes: Votes) -> None:
        with self._lock:  # buckets of other top trees have the same rows
            self._sums[numbers] += votes.sums
            self._trees[numbers] += votes.trees
            self._targets[numbers] = votes.targets

    def means(self) -> Iterator[OobRows]:
        for first in range(0, len(self._trees), _ROWS_AT_A_TIME):
            part = slice(first, first + _ROWS_AT_A_TIME)
            yield OobRows(self._mean(self._sums[part], self._trees[part]), self._targets[part])

    def add_rows_outside(self, sampled: Sampled, forest: Forest, progress: StageProgress) -> None:
        """Add the rows outside each tree's subset: they are in no bucket, so growing did not meet them."""
        samples = [sampled.top_sample(self._plan, tree) for tree in range(forest.n_trees)]
        reading = Pass(sampled.rows, Place(), sampled.trail)
        for chunk, _ in reading.chunks(self._plan.chunk_size):
            leaves = np.empty((chunk.rows, forest.n_trees), dtype=np.int64)
            with forest.unchanged():  # `apply` checks the trees that are then read
                forest.apply(chunk.x.astype(np.float32, copy=False), True, False, leaves)
                for tree, sample in enumerate(samples):
                    seen = sample[slice(*np.searchsorted(sample, (chunk.first_row, chunk.end)))]
                    outside = np.ones(chunk.rows, dtype=bool)
                    outside[seen - chunk.first_row] = False
                    nodes = forest.nodes[int(forest.node_start[tree]) + leaves[outside, tree]]
                    rows = chunk.first_row + np.flatnonzero(outside)
                    values = self._values(nodes, forest, tree) * self._scale
                    self._sums[rows] += np.rint(values).astype(np.int64)
                    self._trees[rows] += np.uint32(1)
            self._targets[chunk.first_row : chunk.end] = chunk.targets
            progress.advance(chunk.rows)
        if sampled.rows.checked:
            reading.compare(sampled.end)

    def _values(self, nodes: npt.NDArray[np.uint64], forest: Forest, tree: int) -> npt.NDArray[np.float64]:
        """What leaves say: a value, or the share of each class."""
        if not self._plan.classification:
            return ((nodes << np.uint64(1)).view(np.float64) - self._plan.target_offset)[:, None]
        payload = nodes & ~_LEAF_BIT
        mixed = (payload & _MIXED_BIT) != 0
        shares = np.zeros((len(nodes), self._plan.n_classes))
        shares[~mixed, payload[~mixed].astype(np.intp)] = 1.0
        table = forest.table.reshape(-1, self._plan.n_classes)[int(forest.table_start[tree]) :]
        shares[mixed] = table[(payload[mixed] & ~_MIXED_BIT).astype(np.intp)]
        if self._plan.hard_votes:
            return np.eye(self._plan.n_classes)[shares.argmax(axis=1)]
        return shares


class OobOnDisk(OutOfBag):
    """Each bucket's votes are logged in the order of its rows, then added up range of rows by range."""

    def __init__(self, n_rows: int, plan: Plan, space: Workspace, most_bytes: int) -> None:
        super().__init__(n_rows, plan)
        self._row_bytes = 8 * self._outputs + 16  # number, trees, target, sums
        self.log = TaskLog(space, "oob.log")
        self._entries = {entry.run: entry for entry in self.log.entries()}  # of an interrupted fit
        self._taken_up = self.log.size
        self._range = max(_FEWEST_ROWS, most_bytes // (4 * self._row_bytes))  # rows added up at a time
        self._edges = np.arange(0, n_rows + self._range, self._range)

    def add(self, top: int, bucket: int, trees: range, numbers: npt.NDArray[np.uint32], votes: Votes) -> None:
        packed = np.empty((len(numbers), self._row_bytes), dtype=np.uint8)
        packed[:, :4] = numbers.view(np.uint8).reshape(-1, 4)
        packed[:, 4:8] = votes.trees.view(np.uint8).reshape(-1, 4)
        packed[:, 8:16] = votes.targets.view(np.uint8).reshape(-1, 8)
        packed[:, 16:] = votes.sums.view(np.uint8).reshape(len(numbers), -1)
        entry = self.log.append(top, bucket, trees.start, len(trees), [packed.reshape(-1)])
        self._entries[entry.run] = entry

    def sync(self) -> None:
        self.log.sync()

    def means(self) -> Iterator[OobRows]:
        entries = list(self._entries.values())
        for entry in entries:
            self.log.check(entry)
            if entry.offset < self._taken_up:
                self._check_rows(entry)
        votes = sum(entry.size // self._row_bytes * entry.trees for entry in entries)
        if votes != self._n_rows * self._plan.n_estimators:
            raise self.log.damaged(0, "votes of an earlier run are missing")
        cuts = [self._cuts(entry.offset, entry.size // self._row_bytes) for entry in entries]
        for r in range(len(self._edges) - 1):
            first, last = int(self._edges[r]), min(int(self._edges[r + 1]), self._n_rows)
            sums = np.zeros((last - first, self._outputs), dtype=np.int64)
            trees, targets = np.zeros(last - first, dtype=np.uint32), np.zeros(last - first)
            for entry, cut in zip(entries, cuts, strict=True):
                packed = self._read(entry.offset, cut[r], cut[r + 1])
                places = np.ascontiguousarray(packed[:, :4]).view(np.uint32)[:, 0] - np.uint32(first)
                trees[places] += np.ascontiguousarray(packed[:, 4:8]).view(np.uint32)[:, 0]
                targets[places] = np.ascontiguousarray(packed[:, 8:16]).view(np.float64)[:, 0]
                sums[places] += np.ascontiguousarray(packed[:, 16:]).view(np.int64)
            yield OobRows(self._mean(sums, trees), targets)

    @property
    def runs(self) -> Set[Run]:
        """The trees that have their votes, as they were grown together."""
        return self._entries.keys()

    def keep(self, runs: Set[Run]) -> None:
        """Forget votes of all other trees: a later fit may have grown them again."""
        self._entries = {run: entry for run, entry in self._entries.items() if run in runs}

    def _check_rows(self, entry: Entry) -> None:
        """Refuse rows that there are not; those of an interrupted fit were written by another process."""
        before = -1
        if entry.size % self._row_bytes:
            raise self.log.damaged(entry.offset, "these are no votes")
        for first in range(0, entry.size // self._row_bytes, _ROWS_AT_A_TIME):
            last = min(first + _ROWS_AT_A_TIME, entry.size // self._row_bytes)
            packed = self._read(entry.offset, first, last)
            rows = np.ascontiguousarray(packed[:, :4]).view(np.uint32)[:, 0].astype(np.int64)
            trees = np.ascontiguousarray(packed[:, 4:8]).view(np.uint32)[:, 0]
            rising = rows[0] > before and bool((np.diff(rows) > 0).all()) and rows[-1] < self._n_rows
            if not rising or trees.max() > entry.trees:
                raise self.log.damaged(entry.offset, "these are no votes on its rows")
            before = int(rows[-1])

    def _read(self, offset: int, first: int, last: int) -> npt.NDArray[np.uint8]:
        packed = np.empty(((last - first), self._row_bytes), dtype=np.uint8)
        self.log.read(offset + first * self._row_bytes, packed.reshape(-1))
        return packed

    def _cuts(self, offset: int, n: int) -> list[int]:
        """Where in an entry each range of rows begins; its rows are in order."""
        cuts: list[int] = []
        for edge in self._edges.tolist():
            low, high = cuts[-1] if cuts else 0, n
            while low < high:
                middle = (low + high) // 2
                number = np.empty(4, dtype=np.uint8)
                self.log.read(offset + middle * self._row_bytes, number)
                low, high = (middle + 1, high) if number.view(np.uint32)[0] < edge else (low, middle)
            cuts.append(low)
        return cuts
