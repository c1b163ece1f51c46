"""Buckets on disk: one file for each top tree, written in long runs, read by extents.

A group of rows is collected in memory, then written for every top tree at once: all its rows in the order of
their buckets, each bucket's rows as one block or, if they are many, several. A bucket is the blocks of its
owner, in the order of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .. import _core
from ..plan import Plan
from ..rows.records import decoded
from ..rows.training_rows import Chunk
from .bucket_store import BucketStore, Router, different_from_first
from .leaf_buckets import RowPart
from .row_forms import RowFields, RowForm
from .top_file import Blocks, Extents, TopFile
from .workspace import Workspace


@dataclass
class _Group:
    """Rows that are collected until they are written. The memory of a group is reused by later ones."""

    rows: npt.NDArray[np.uint8]
    buckets: list[npt.NDArray[np.uint32]]


class DiskStore(BucketStore):
    """`prefix` begins the names of its files, if a workspace has several stores."""

    def __init__(
        self,
        form: RowForm,
        n_buckets: dict[int, int],
        plan: Plan,
        workspace: Workspace,
        group_rows: int,
        prefix: str = "",
    ) -> None:
        super().__init__(plan)
        self._prefix = prefix
        self.group_rows = group_rows
        self._form, self._layout, self.codec = form, form.layout, form.codec
        self._workspace = workspace
        self._tops = {
            top: TopFile(workspace.file(self._name(top)), self._layout, n) for top, n in n_buckets.items()
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
        """Make sure that what was written outlives the process. Returns the size of each top tree's file."""
        for top in self._tops.values():
            top.file.sync()
        return self.ends()

    def ends(self) -> dict[int, int]:
        """The size of each top tree's file."""
        return {number: top.file.size for number, top in self._tops.items()}

    def reopen(
        self, sizes: dict[int, int], n_rows: int, owners: dict[int, npt.NDArray[np.int64]] | None = None
    ) -> bool:
        """Resume from files that another process synced at these sizes, with this number of rows in each.

        False if they belong to other top trees, or if a file is shorter or damaged.
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
        self._split(top, bucket, route, file, owners)
        file.owners = np.concatenate([file.owners[:bucket], owners, file.owners[bucket + 1 :]])
        file.seal()

    def split_to(self, other: DiskStore, top: int, routes: list[Router], n_parts: list[int]) -> None:
        """Split each bucket of this store: its parts are the next buckets of another one."""
        file = other._tops[top]
        ends = np.cumsum(n_parts).tolist()
        for bucket, (route, n, end) in enumerate(zip(routes, n_parts, ends, strict=True)):
            self._split(top, bucket, route, file, file.owners[end - n : end])

    def use_owners(self, top: int, owners: npt.NDArray[np.int64]) -> None:
        """Set the owner of each bucket's blocks."""
        self._tops[top].use_owners(owners)

    def _split(
        self, top: int, bucket: int, route: Router, to: TopFile, owners: npt.NDArray[np.int64]
    ) -> None:
        for raw, fields in self._blocks(top, bucket):
            buckets = np.empty(len(raw), dtype=np.uint32)
            at = 0
            for x in decoded(self.codec, fields.records, np.arange(len(raw), dtype=np.uint32)):
                buckets[at : at + len(x)] = route(x)
                at += len(x)
            to.write(raw, buckets, owners, self._sequence)

    def expect(self, top: int, bucket: int) -> None:
        of = self._tops[top]
        of.file.expect((offset, of.block_bytes(rows)) for offset, rows in of.extents(bucket))

    def drop(self, top: int) -> None:
        self._workspace.remove(self._name(top))

    def drop_all(self) -> None:
        """Remove the files of all top trees, which are grown."""
        for top in self._tops:
            self.drop(top)

    def blocks(
        self, top: int, owners: npt.NDArray[np.int64], start: int, most_bytes: int
    ) -> tuple[Blocks, int]:
        """Blocks of these owners from byte `start` of the file on, to be sent to another store, and where the
        next ones begin; -1 if there are none. At most `most_bytes` bytes, but at least one block."""
        return self._tops[top].blocks(owners, start, most_bytes)

    def take_in(self, top: int, parts: Iterable[tuple[int, Blocks]], owners: npt.NDArray[np.int64]) -> None:
        """Append blocks of other stores, in any order: each with the place of its store in the order of the
        rows. `owners` has the owner of each bucket here."""
        found: dict[int, list[Extents]] = {}
        for place, blocks in parts:
            found.setdefault(place, []).append(self._tops[top].take_in(blocks))
        self._tops[top].use([extents for place in sorted(found) for extents in found[place]], owners)
        self._tops[top].seal()

    def _name(self, top: int) -> str:
        return f"{self._prefix}top-{top:05d}.rows"

    def _blocks(
        self, top: int, bucket: int, into: RowFields | None = None
    ) -> Iterator[tuple[npt.NDArray[np.uint8], RowFields]]:
        """The blocks of a bucket, each checked: its bytes and its fields. With `into`, the fields are written
        there one after the other."""
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
