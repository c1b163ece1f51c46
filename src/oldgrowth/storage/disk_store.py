"""Buckets on disk: one file for each top tree, written in long runs, read by extents.

A group of rows is collected in memory, then written for every top tree at once: all its rows in the order of
their buckets, each bucket's rows as one block or, if they are many, several. A bucket is the blocks of its
owner, in the order of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..plan import Plan
from ..rows.records import decoded
from ..rows.training_rows import Chunk
from .bucket_store import BucketStore, Router, different_from_first
from .leaf_buckets import RowPart
from .row_forms import RowFields, RowForm
from .spill_file import SpillFile
from .workspace import Workspace

# Bytes gathered for one write.
_WRITE_BYTES = 8 * 2**20
# Rows of a block: taken apart, short ones are several times as long.
_MOST_BLOCK_ROWS = 131_072


def block_rows(row_bytes: int) -> int:
    """The most rows of a block."""
    return max(1, min(_MOST_BLOCK_ROWS, _WRITE_BYTES // row_bytes))


@dataclass
class _Group:
    """Rows that are collected until they are written; a group's memory is used again by a later one."""

    rows: npt.NDArray[np.uint8]
    buckets: list[npt.NDArray[np.uint32]]


@dataclass
class _Extents:
    """The blocks of a top tree's file: where they are, whose they are, how many rows they hold."""

    offset: npt.NDArray[np.int64]
    owner: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]

    @staticmethod
    def none() -> _Extents:
        return _Extents(*(np.zeros(0, dtype=np.int64) for _ in range(3)))

    def plus(self, other: _Extents) -> _Extents:
        return _Extents(
            np.concatenate([self.offset, other.offset]),
            np.concatenate([self.owner, other.owner]),
            np.concatenate([self.rows, other.rows]),
        )


class _TopFile:
    """The blocks of one top tree; `owners` has, for each bucket, whose blocks are its rows."""

    def __init__(self, file: SpillFile, layout: _core.RowLayout, n_buckets: int) -> None:
        self.file = file
        self._layout = layout
        self._extents = _Extents.none()
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
        """Append rows, those of one bucket together."""
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
        self._extents = self._extents.plus(_Extents(offsets, owner, counts))

    @property
    def _most_rows(self) -> int:
        return block_rows(self._layout.row_bytes)

    def scan(self, form: RowForm, n_rows: int) -> bool:
        """Find and check the blocks of a file that another process wrote; those of the buckets must have so
        many rows. If anything is wrong, the file is emptied with a warning."""
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
        self._extents = _Extents(*(np.ascontiguousarray(column) for column in columns))
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
        self._extents = _Extents(e.offset[order], e.owner[order], e.rows[order])
        self._next_owner = max(self._next_owner, int(e.owner.max(initial=-1)) + 1)
        self._first = np.searchsorted(self._extents.owner, np.arange(self._next_owner + 1))

    def extents(self, bucket: int) -> Iterator[tuple[int, int]]:
        """Where the blocks of a bucket are and how many rows they have."""
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


class DiskStore(BucketStore):
    def __init__(
        self, form: RowForm, n_buckets: dict[int, int], plan: Plan, workspace: Workspace, group_rows: int
    ) -> None:
        super().__init__(plan)
        self.group_rows = group_rows
        self._form, self._layout, self.codec = form, form.layout, form.codec
        self._workspace = workspace
        self._tops = {
            top: _TopFile(workspace.file(_name(top)), self._layout, n) for top, n in n_buckets.items()
        }
        self._spare: list[_Group] = []
        self._sequence = 0

    def begin_group(self) -> _Group:
        if self._spare:
            return self._spare.pop()
        rows = np.empty((self.group_rows, self._layout.row_bytes), dtype=np.uint8)
        return _Group(rows, [np.empty(self.group_rows, dtype=np.uint32) for _ in self._tops])

    def put(self, group: _Group, at: int, chunk: Chunk, buckets: list[npt.NDArray[np.uint32]]) -> None:
        part = slice(at, at + chunk.rows)
        self._form.pack(chunk, group.rows[part])
        for mine, given in zip(group.buckets, buckets, strict=True):
            mine[part] = given

    def end_group(self, group: _Group, rows: int) -> None:
        for top, buckets in zip(self._tops.values(), group.buckets, strict=True):
            top.write(group.rows[:rows], buckets[:rows], top.owners, self._sequence)
        self._sequence += 1
        self._spare.append(group)

    def sync(self) -> dict[int, int]:
        """Make what was written last; the size of each top tree's file."""
        for top in self._tops.values():
            top.file.sync()
        return {number: top.file.size for number, top in self._tops.items()}

    def reopen(
        self, sizes: dict[int, int], n_rows: int, owners: dict[int, npt.NDArray[np.int64]] | None = None
    ) -> bool:
        """Take up files of another process that were `sync`ed at these sizes, with so many rows in each.

        False if they are of other top trees, or a file has less than that or is damaged.
        """
        if sizes.keys() != self._tops.keys():
            return False
        for number, top in self._tops.items():
            if top.file.size < sizes[number]:
                if top.file.size:  # else it was removed, since all its buckets are grown
                    top.file.lost(top.file.size, "it ends before what was written to it")
                return False
        for number, top in self._tops.items():
            if owners is not None:
                top.owners = owners[number]
            top.file.truncate(sizes[number])
            if not top.scan(self._form, n_rows):
                return False
        return True

    def owners(self, top: int) -> npt.NDArray[np.int64]:
        return self._tops[top].owners

    def seal(self, top: int) -> None:
        self._spare.clear()
        self._form.complete()
        self._tops[top].seal()

    def sizes(self, top: int) -> npt.NDArray[np.int64]:
        return self._tops[top].sizes()

    def numbers(self, top: int, bucket: int) -> npt.NDArray[np.uint64]:
        numbers = [fields.numbers for _, fields in self._blocks(top, bucket)]
        return np.concatenate([np.zeros(0, np.uint64), *numbers])  # type: ignore[arg-type]

    def load(self, top: int, bucket: int, places: npt.NDArray[np.uint64] | None = None) -> _core.Bucket:
        n = sum(rows for _, rows in self._tops[top].extents(bucket)) if places is None else len(places)
        out = self._form.room(n)
        if places is None:
            for _ in self._blocks(top, bucket, out):
                pass
        else:
            self._choose(top, bucket, places, out)
        source = _core.Rows(out.records, out.keys, out.targets, out.weights, self._plan.target_scale)
        return _core.make_bucket(self.codec, source, None, self._plan.classification)

    def different_rows(self, top: int, bucket: int, most: int) -> npt.NDArray[np.uint64]:
        return different_from_first((fields.records for _, fields in self._blocks(top, bucket)), most)

    def parts(self, top: int, bucket: int) -> Iterator[RowPart]:
        for _, fields in self._blocks(top, bucket):
            yield RowPart(fields.keys, fields.targets, fields.weights, fields.numbers)

    def _choose(self, top: int, bucket: int, places: npt.NDArray[np.uint64], out: RowFields) -> None:
        seen = filled = 0
        for _, fields in self._blocks(top, bucket):
            rows = len(fields.keys)
            first, last = np.searchsorted(places, np.array([seen, seen + rows], dtype=np.uint64))
            here = places[first:last]
            chosen = fields.part((here - np.uint64(seen)).astype(np.intp))
            chosen.copy_to(out.part(slice(filled, filled + len(here))))
            seen, filled = seen + rows, filled + len(here)

    def split(self, top: int, bucket: int, route: Router, n_parts: int) -> None:
        file = self._tops[top]
        owners = file.new_owners(n_parts)
        for raw, fields in self._blocks(top, bucket):
            buckets = np.empty(len(raw), dtype=np.uint32)
            at = 0
            for x in decoded(self.codec, fields.records, np.arange(len(raw), dtype=np.uint32)):
                buckets[at : at + len(x)] = route(x)
                at += len(x)
            file.write(raw, buckets, owners, self._sequence)
        file.owners = np.concatenate([file.owners[:bucket], owners, file.owners[bucket + 1 :]])
        file.seal()

    def expect(self, top: int, bucket: int) -> None:
        for offset, rows in self._tops[top].extents(bucket):
            self._tops[top].file.expect(offset, self._tops[top].block_bytes(rows))

    def drop(self, top: int) -> None:
        self._workspace.remove(_name(top))

    def _blocks(
        self, top: int, bucket: int, into: RowFields | None = None
    ) -> Iterator[tuple[npt.NDArray[np.uint8], RowFields]]:
        """The blocks of a bucket, whole and taken apart, each checked; one after the other in `into`."""
        file = self._tops[top]
        owner = int(file.owners[bucket])
        at = 0
        for offset, n in file.extents(bucket):
            data = np.empty(file.block_bytes(n), dtype=np.uint8)
            file.file.read(offset, data)
            out = self._form.room(n) if into is None else into.part(slice(at, at := at + n))
            wrong = self._form.unpack(data, owner, out)
            if wrong:
                raise file.file.damaged(offset, wrong)
            yield data[_core.BLOCK_HEADER_BYTES :].reshape(n, -1), out


def _name(top: int) -> str:
    return f"top-{top:05d}.rows"


def _cut(
    start: npt.NDArray[np.int64], owners: npt.NDArray[np.int64], most_rows: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Blocks of at most `most_rows` rows: where they begin, with the end of the last, and whose they are."""
    rows = start[1:] - start[:-1]
    pieces = -(-rows // most_rows)
    bucket = np.repeat(np.arange(len(rows)), pieces)
    within = np.arange(len(bucket)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    begin = start[bucket] + within * most_rows
    return np.concatenate([begin, start[-1:]]), owners[bucket]
