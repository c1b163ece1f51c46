"""Out-of-bag predictions: the mean of the trees that did not see a row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .. import _core
from ..plan import Plan
from .spill_file import SpillFile
from .task_log import Entry, EntryTable, Run, TaskLog
from .workspace import Workspace

# Sums are whole numbers of this size, so that the order in which trees are grown does not matter.
_UNIT = 2.0**40
# The most by which the shares of a leaf, of single precision, miss 1 together.
_ROUNDING = 1e-3

# Rows whose votes are added up at a time, if memory is short.
_FEWEST_ROWS = 64
# Sums, means and what is made of them: arrays of the size of the votes that are added up.
MEANS_COPIES = 6
# Bytes of votes in memory for each worker, if memory is short: as they are made, returned and stored.
VOTES_AT_WORK = 8 * 2**20
# Bytes of an entry that are read at a time.
_READ_BYTES = 2**17
# Bytes of votes that are added up at a time while a bucket is grown.
VOTES_BYTES = 2**20
# Bytes of votes that a worker returns at a time, if memory is short.
FEWEST_VOTE_BYTES = 3 * 2**20


@dataclass(frozen=True)
class Votes:
    """Sums over some trees for consecutive rows of a bucket, and how many of the trees did not see each; the
    rows' numbers in the data and their targets."""

    numbers: npt.NDArray[np.uint32 | np.uint64]
    targets: npt.NDArray[np.float64]
    sums: npt.NDArray[np.int64]
    trees: npt.NDArray[np.uint32]

    @staticmethod
    def none(
        numbers: npt.NDArray[np.uint32 | np.uint64], targets: npt.NDArray[np.float64], plan: Plan
    ) -> Votes:
        """Empty votes on these rows."""
        n = len(numbers)
        return Votes(
            numbers, targets, np.zeros((n, _outputs(plan)), dtype=np.int64), np.zeros(n, dtype=np.uint32)
        )

    def counter(self, plan: Plan) -> _core.Oob:
        """Adds the votes of trees to these."""
        return _core.Oob(self.sums, self.trees, _scale(plan), plan.target_offset, plan.hard_votes)

    @property
    def nbytes(self) -> int:
        return self.numbers.nbytes + self.targets.nbytes + self.sums.nbytes + self.trees.nbytes


@dataclass(frozen=True)
class AllVotes:
    """The sums over all trees for all rows, and how many trees did not see each; arrays or mapped from a
    file. A later fit that adds trees begins with them."""

    data: tuple[int, bool]  # checksum of the rows, and whether trees vote for one class
    sums: npt.NDArray[np.int64]
    trees: npt.NDArray[np.uint32]


@dataclass(frozen=True)
class OobRows:
    """The mean over the trees for consecutive rows; NaN for a row that every tree has seen."""

    mean: npt.NDArray[np.float64]
    targets: npt.NDArray[np.float64]
    first: int  # number of the first row
    of: int  # rows that there are


def _outputs(plan: Plan) -> int:
    return plan.n_classes or 1


def _scale(plan: Plan) -> float:
    return _UNIT / plan.target_scale


def vote_ranges(n: int, plan: Plan) -> Iterator[slice]:
    """Rows of n whose votes are added up together."""
    step = max(1, VOTES_BYTES // (8 * _outputs(plan) + 16))
    for first in range(0, n, step):
        yield slice(first, min(first + step, n))


def fewest_rows_of_means(n_rows: int) -> int:
    """Rows whose votes are added up over all entries at a time, if memory is short."""
    return min(n_rows, _FEWEST_ROWS)


class OutOfBag(ABC):
    """Adds up the votes of the trees as they are grown."""

    def __init__(self, n_rows: int, plan: Plan) -> None:
        self._n_rows = n_rows
        self._plan = plan
        self._outputs = _outputs(plan)
        self._scale = _scale(plan)

    @abstractmethod
    def add(self, top: int, bucket: int, trees: range, n_rows: int, votes: Iterable[Votes]) -> None:
        """Add the votes of these trees of a bucket on its n_rows rows, which come in order, in parts."""

    def sync(self) -> None:  # noqa: B027 - memory does not outlive the process
        """Make sure that all votes added outlive the process."""

    @abstractmethod
    def begin_with(self, earlier: AllVotes) -> None:
        """Add the votes of trees that an earlier fit has grown."""

    @abstractmethod
    def kept(self, data: tuple[int, bool]) -> AllVotes:
        """The votes of all trees, after `means`, which was told to keep them."""

    @abstractmethod
    def means(self, keep: bool = False) -> Iterator[OobRows]:
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

    def add(self, top: int, bucket: int, trees: range, n_rows: int, votes: Iterable[Votes]) -> None:
        for some in votes:
            self._sums[some.numbers] += some.sums
            self._trees[some.numbers] += some.trees
            self._targets[some.numbers] = some.targets

    def begin_with(self, earlier: AllVotes) -> None:
        self._sums += earlier.sums
        self._trees += earlier.trees

    def kept(self, data: tuple[int, bool]) -> AllVotes:
        return AllVotes(data, self._sums, self._trees)

    def means(self, keep: bool = False) -> Iterator[OobRows]:
        for part in vote_ranges(self._n_rows, self._plan):
            mean = self._mean(self._sums[part], self._trees[part])
            yield OobRows(mean, self._targets[part], part.start, self._n_rows)

    def add_rows(self, rows: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> None:
        """Add the votes of one more tree on these rows, which are in no bucket."""
        self._sums[rows] += np.rint(values * self._scale).astype(np.int64)
        self._trees[rows] += np.uint32(1)

    def set_targets(self, first: int, targets: npt.NDArray[np.float64]) -> None:
        self._targets[first : first + len(targets)] = targets


class OobOnDisk(OutOfBag):
    """Each bucket's votes are logged in the order of its rows, then added up over all entries, some rows of
    the data at a time."""

    def __init__(self, n_rows: int, plan: Plan, workspace: Workspace, most_bytes: int) -> None:
        super().__init__(n_rows, plan)
        number = f"<u{_core.row_number_bytes(n_rows)}"
        self._row = np.dtype(
            [("number", number), ("trees", "<u4"), ("target", "<f8"), ("sums", "<i8", (self._outputs,))]
        )
        self._row_bytes = self._row.itemsize
        self.log = TaskLog(workspace, "oob.log")
        self._workspace = workspace
        self._earlier: AllVotes | None = None
        self._kept: SpillFile | None = None
        self._sum = np.dtype([("sums", "<i8", (self._outputs,)), ("trees", "<u4")])
        self._entries = EntryTable(self.log.entries())  # of an interrupted fit
        self.resumed_bytes = self.log.size  # what lies before was written by another process
        rows = most_bytes // (MEANS_COPIES * self._row_bytes)
        self._range = min(max(1, n_rows), max(_FEWEST_ROWS, rows))  # rows added up at a time

    def add(self, top: int, bucket: int, trees: range, n_rows: int, votes: Iterable[Votes]) -> None:
        size = n_rows * self._row_bytes
        packed = map(self._packed, votes)
        self._entries.append(self.log.append(top, bucket, trees.start, len(trees), packed, size))

    def _packed(self, votes: Votes) -> npt.NDArray[np.uint8]:
        packed = np.empty(len(votes.trees), dtype=self._row)
        packed["number"] = votes.numbers
        packed["trees"] = votes.trees
        packed["target"] = votes.targets
        packed["sums"] = votes.sums
        return packed.view(np.uint8)

    def sync(self) -> None:
        self.log.sync()

    def begin_with(self, earlier: AllVotes) -> None:
        self._earlier = earlier

    def kept(self, data: tuple[int, bool]) -> AllVotes:
        assert self._kept is not None
        mapped = self._kept.mapped()
        self._kept.close()
        rows = mapped.bytes.view(self._sum)
        return AllVotes(data, rows["sums"], rows["trees"])

    def _before(self, first: int, last: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
        """Sums and numbers of trees for these rows before the logged votes are added."""
        if self._earlier is None:
            n = last - first
            return np.zeros((n, self._outputs), dtype=np.int64), np.zeros(n, dtype=np.uint32)
        return self._earlier.sums[first:last].copy(), self._earlier.trees[first:last].copy()

    def _keep(self, sums: npt.NDArray[np.int64], trees: npt.NDArray[np.uint32]) -> None:
        rows = np.empty(len(trees), dtype=self._sum)
        rows["sums"], rows["trees"] = sums, trees
        self._kept = self._kept or self._workspace.unnamed()
        self._kept.append(rows.view(np.uint8))

    def means(self, keep: bool = False) -> Iterator[OobRows]:
        crcs = np.array([self._checked(entry) for entry in self._entries], dtype=np.uint32).reshape(-1, 2)
        votes = sum(entry.size // self._row_bytes * entry.trees for entry in self._entries)
        if votes != self._n_rows * self._plan.new_trees:
            raise self.log.impossible(0, "votes of an earlier run are missing")
        done = np.zeros(len(self._entries), dtype=np.int64)  # rows of each entry that are added up
        for first in range(0, self._n_rows, self._range):
            last = min(first + self._range, self._n_rows)
            sums, trees = self._before(first, last)
            targets = np.zeros(last - first)
            asked = np.zeros(last - first, dtype=np.uint32)  # trees that were grown on each row's bucket
            for i, entry in enumerate(self._entries):
                for packed in self._rows_before(entry, int(done[i]), last):
                    done[i] += len(packed)
                    crcs[i, 0] = _core.crc32c(packed.view(np.uint8), int(crcs[i, 0]))
                    places = packed["number"].astype(np.intp) - first
                    trees[places] += packed["trees"]
                    if self.resumed_bytes:
                        others = (asked[places] > 0) & (targets[places] != packed["target"])
                        if others.any():
                            raise self.log.impossible(entry.offset, "its targets are not those of the rows")
                        asked[places] += np.uint32(entry.trees)
                    targets[places] = packed["target"]
                    sums[places] += packed["sums"]
            if self.resumed_bytes and (asked != self._plan.new_trees).any():
                raise self.log.impossible(0, "its votes are not on all rows")
            if keep:
                self._keep(sums, trees)
            yield OobRows(self._mean(sums, trees), targets, first, self._n_rows)
        for i in np.flatnonzero(crcs[:, 0] != crcs[:, 1]).tolist():
            raise self.log.damaged(self._entries[i].offset, "it changed while it was read")

    def runs(self) -> set[Run]:
        """The trees that have their votes, as they were grown together."""
        return {entry.run for entry in self._entries}

    def keep(self, runs: set[Run] | None) -> None:
        """Drop the votes of all other trees, which a later fit may have grown again."""
        if runs is None:
            return
        newest = {entry.run: entry for entry in self._entries if entry.run in runs}
        self._entries = EntryTable(newest.values())

    def _checked(self, entry: Entry) -> tuple[int, int]:
        """The checksum of an entry before and behind its votes. Refused are votes that are not those logged,
        and those of an interrupted fit, which another process wrote, if they are not possible."""
        crcs = self.log.check(entry)
        if entry.size % self._row_bytes:
            raise self.log.impossible(entry.offset, "it does not contain votes")
        before = -1
        for packed in self._parts(entry, 0) if entry.offset < self.resumed_bytes else ():
            rows = packed["number"].astype(np.int64)
            rising = rows[0] > before and bool((np.diff(rows) > 0).all()) and rows[-1] < self._n_rows
            if not rising or not self._possible(packed, entry.trees):
                raise self.log.impossible(entry.offset, "its votes are not on the rows of its bucket")
            before = int(rows[-1])
        return crcs

    def _possible(self, votes: npt.NDArray[np.void], most: int) -> bool:
        """Whether this number of trees can have given these votes."""
        targets, sums = votes["target"], votes["sums"]
        unit, slack = votes["trees"] * _UNIT, votes["trees"] * (_UNIT * _ROUNDING)
        sound = bool((votes["trees"] <= most).all() and np.isfinite(targets).all())
        sound &= bool((np.abs(sums.astype(np.float64)) <= (unit + slack)[:, None]).all())
        if self._plan.n_classes:
            sound &= bool((sums >= 0).all() and (np.abs(sums.sum(axis=1) - unit) <= slack).all())
            sound &= bool(((targets >= 0) & (targets < self._plan.n_classes) & (targets % 1 == 0)).all())
        return sound

    def _rows_before(self, entry: Entry, first: int, end: int) -> Iterator[npt.NDArray[np.void]]:
        """An entry's rows from its row `first` on whose numbers are below `end`, some at a time."""
        for packed in self._parts(entry, first):
            below = int(np.searchsorted(packed["number"].astype(np.int64), end))
            if below:
                yield packed[:below]
            if below < len(packed):
                return

    def _parts(self, entry: Entry, first: int) -> Iterator[npt.NDArray[np.void]]:
        """An entry's rows from its row `first` on, some at a time."""
        n, step = entry.size // self._row_bytes, max(1, _READ_BYTES // self._row_bytes)
        for at in range(first, n, step):
            packed = np.empty(min(step, n - at), dtype=self._row)
            self.log.read(entry.offset + at * self._row_bytes, packed.view(np.uint8))
            yield packed
