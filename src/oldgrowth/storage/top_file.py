"""The file of one top tree on disk: blocks, each with rows of one bucket, and their positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .row_forms import RowForm
from .spill_file import SpillFile

# Bytes gathered for one write.
_WRITE_BYTES = 8 * 2**20
# Rows of a block: taken apart, short ones are several times as long.
_MOST_BLOCK_ROWS = 131_072


def block_rows(row_bytes: int) -> int:
    """Maximum number of rows of a block."""
    return max(1, min(_MOST_BLOCK_ROWS, _WRITE_BYTES // row_bytes))


@dataclass(frozen=True)
class Blocks:
    """Consecutive blocks of a top tree as they are in a file, with the owner and the rows of each."""

    data: npt.NDArray[np.uint8]
    owners: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]


@dataclass
class Extents:
    """The blocks of a top tree's file: position, owner and number of rows of each."""

    offset: npt.NDArray[np.int64]
    owner: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]

    @staticmethod
    def none() -> Extents:
        return Extents(*(np.zeros(0, dtype=np.int64) for _ in range(3)))

    def plus(self, other: Extents) -> Extents:
        return Extents.joined([self, other])

    @staticmethod
    def joined(parts: list[Extents]) -> Extents:
        columns = ([vars(part)[name] for part in parts] for name in ("offset", "owner", "rows"))
        return Extents(*(np.concatenate(column) for column in columns))


class TopFile:
    """The blocks of one top tree; `owners` has, for each bucket, the owner of its blocks."""

    def __init__(self, file: SpillFile, layout: _core.RowLayout, n_buckets: int) -> None:
        self.file = file
        self._layout = layout
        self._extents = Extents.none()
        self.owners = np.arange(n_buckets, dtype=np.int64)
        self._next_owner = n_buckets
        self._first: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def write(
        self,
        rows: npt.NDArray[np.uint8],
        buckets: npt.NDArray[np.uint32],
        owners: npt.NDArray[np.int64],
        sequence: int,
    ) -> None:
        """Append rows, grouped by bucket."""
        order, start = _core.group_by_bucket(buckets, len(owners))
        begin, owner = _cut(start.astype(np.int64), owners, self._most_rows)
        counts = begin[1:] - begin[:-1]
        sizes = _core.BLOCK_HEADER_BYTES + counts * self._layout.row_bytes
        ends = np.cumsum(sizes)
        offsets = self.file.size + ends - sizes
        out = np.empty(int(max(_WRITE_BYTES, sizes.max(initial=0))), dtype=np.uint8)
        first = 0
        while first < len(owner):
            last = int(np.searchsorted(ends, (ends[first] - sizes[first]) + len(out), side="right"))
            used = self._layout.write_blocks(
                rows, order, begin.astype(np.uint64), owner.astype(np.uint64), first, last, sequence, out
            )
            self.file.append(out[:used])
            first = last
        self._extents = self._extents.plus(Extents(offsets, owner, counts))

    @property
    def _most_rows(self) -> int:
        return block_rows(self._layout.row_bytes)

    def scan(self, form: RowForm, n_rows: int) -> bool:
        """Find and check the blocks of a file that another process wrote; those of the buckets must have
        `n_rows` rows in total. If anything is wrong, the file is emptied with a warning."""
        found: list[tuple[int, int, int]] = []
        offset = 0
        self._next_owner = int(self.owners.max()) + 1
        while offset < self.file.size:
            owner, rows, wrong = self._checked_block(form, offset)
            if wrong:
                return self._lose(offset, wrong)
            found.append((offset, owner, rows))
            offset += self.block_bytes(rows)
        columns = np.array(found, dtype=np.int64).reshape(-1, 3).T
        self._extents = Extents(*(np.ascontiguousarray(column) for column in columns))
        return int(self.sizes().sum()) == n_rows or self._lose(0, "it has other rows than were written")

    def _checked_block(self, form: RowForm, offset: int) -> tuple[int, int, str]:
        """The owner and the rows of the block that begins here, and what is wrong with it."""
        header = np.empty(min(_core.BLOCK_HEADER_BYTES, self.file.size - offset), dtype=np.uint8)
        self.file.read(offset, header)
        parsed: Any = _core.block_header(header)
        if parsed is None:
            return 0, 0, "no block begins where one was written"
        owner, rows = int(parsed[0]), int(parsed[2])
        most = min(self._most_rows, (self.file.size - offset) // self._layout.row_bytes)
        if owner >= self._next_owner or not 0 < rows <= most:
            return 0, 0, "its header is not the one written"
        data = np.empty(min(self.block_bytes(rows), self.file.size - offset), dtype=np.uint8)
        self.file.read(offset, data)
        return owner, rows, form.check(data, owner, rows)

    def _lose(self, offset: int, wrong: str) -> bool:
        self.file.lost(offset, wrong)
        self.file.truncate(0)
        return False

    def seal(self) -> None:
        """Bring the extents into the order of their owners."""
        order = np.argsort(self._extents.owner, kind="stable")
        e = self._extents
        self._extents = Extents(e.offset[order], e.owner[order], e.rows[order])
        self._next_owner = max(self._next_owner, int(e.owner.max(initial=-1)) + 1)
        self._first = np.searchsorted(self._extents.owner, np.arange(self._next_owner + 1))

    def blocks(self, owners: npt.NDArray[np.int64], start: int, most_bytes: int) -> tuple[Blocks, int]:
        """As `DiskStore.blocks`."""
        e = self._extents
        chosen = np.flatnonzero(np.isin(e.owner, owners) & (e.offset >= start))
        chosen = chosen[np.argsort(e.offset[chosen])]
        sizes = _core.BLOCK_HEADER_BYTES + e.rows[chosen] * self._layout.row_bytes
        ends = np.cumsum(sizes)
        n = min(len(chosen), max(1, int(np.searchsorted(ends, most_bytes, side="right"))))
        data = np.empty(int(ends[n - 1]) if n else 0, dtype=np.uint8)
        offsets, first = e.offset[chosen[:n]], 0
        while first < n:  # neighbours are read together
            last = first + 1
            while last < n and offsets[last] == offsets[last - 1] + sizes[last - 1]:
                last += 1
            begin, end = int(ends[first] - sizes[first]), int(ends[last - 1])
            self.file.read(int(offsets[first]), data[begin:end])
            first = last
        following = int(e.offset[chosen[n]]) if n < len(chosen) else -1
        return Blocks(data, e.owner[chosen[:n]], e.rows[chosen[:n]]), following

    def take_in(self, blocks: Blocks) -> Extents:
        """Append blocks of another store; returns their positions here."""
        begin = self.file.append(blocks.data)
        sizes = _core.BLOCK_HEADER_BYTES + blocks.rows * self._layout.row_bytes
        return Extents(begin + np.cumsum(sizes) - sizes, blocks.owners, blocks.rows)

    def use(self, extents: list[Extents], owners: npt.NDArray[np.int64]) -> None:
        """Set the blocks, in the order of the rows, and the owner of each bucket's blocks."""
        self._extents = Extents.joined([Extents.none(), *extents])
        self.use_owners(owners)

    def use_owners(self, owners: npt.NDArray[np.int64]) -> None:
        """Set the owner of each bucket's blocks."""
        self.owners, self._next_owner = owners, max(self._next_owner, int(owners.max(initial=-1)) + 1)

    def extents(self, bucket: int) -> Iterator[tuple[int, int]]:
        """The position and the number of rows of each block of a bucket."""
        owner = int(self.owners[bucket])
        part = slice(int(self._first[owner]), int(self._first[owner + 1]))
        yield from zip(self._extents.offset[part].tolist(), self._extents.rows[part].tolist(), strict=True)

    def sizes(self) -> npt.NDArray[np.int64]:
        rows = np.bincount(self._extents.owner, self._extents.rows, minlength=self._next_owner)
        return rows.astype(np.int64)[self.owners]

    def new_owners(self, n: int) -> npt.NDArray[np.int64]:
        self._next_owner += n
        return np.arange(self._next_owner - n, self._next_owner)

    def block_bytes(self, rows: int) -> int:
        return _core.BLOCK_HEADER_BYTES + rows * self._layout.row_bytes


def _cut(
    start: npt.NDArray[np.int64], owners: npt.NDArray[np.int64], most_rows: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Blocks of at most `most_rows` rows: where each begins, with the end of the last, and their owners."""
    rows = start[1:] - start[:-1]
    pieces = -(-rows // most_rows)
    bucket = np.repeat(np.arange(len(rows)), pieces)
    within = np.arange(len(bucket)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    begin = start[bucket] + within * most_rows
    return np.concatenate([begin, start[-1:]]), owners[bucket]
