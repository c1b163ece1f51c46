"""A file to which finished tasks are appended, each with a checksum, so that none is done twice.

An entry that was incomplete when the process died does not match its checksum, and is cut off.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import SpillDirectoryError
from .workspace import Workspace

_HEADER = struct.Struct(
    "<IIQQQII"
)  # magic, checksum of all that follows, size, top, bucket, first tree, trees
_MAGIC = 0x4C54474F  # "OGTL"
_ENTRY = struct.Struct("<IQIIQQ")  # as its fields
_MOST_PLACES = 2**31  # top trees, and buckets of one
_CHECKED_FROM = 8
_SYNC_EVERY_SECONDS = 1.0
_READ_BYTES = 8 * 2**20
_BLOCK_BYTES = 2**20  # that are written at once, unless they come as one array


Run = tuple[int, int, int, int]  # top tree, bucket, first tree, trees


@dataclass(frozen=True)
class Entry:
    """The trees and the bucket of a logged task, and the position of its bytes."""

    top: int
    bucket: int
    first_tree: int
    trees: int
    offset: int
    size: int

    @property
    def run(self) -> Run:
        return self.top, self.bucket, self.first_tree, self.trees


def _blocks(parts: Iterable[npt.NDArray[np.uint8]]) -> Iterator[npt.NDArray[np.uint8]]:
    """The same bytes in fewer arrays: small ones are joined."""
    small: list[npt.NDArray[np.uint8]] = []
    n_bytes = 0
    for part in parts:
        if small and n_bytes + len(part) > _BLOCK_BYTES:
            yield np.concatenate(small)
            small, n_bytes = [], 0
        if len(part) > _BLOCK_BYTES:
            yield part
        else:
            small.append(part)
            n_bytes += len(part)
    if small:
        yield np.concatenate(small)


class EntryTable:
    """A table of entries, of which there may be millions."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._numbers = bytearray()
        for entry in entries:
            self.append(entry)

    def append(self, entry: Entry) -> None:
        self._numbers += _ENTRY.pack(*vars(entry).values())

    def __len__(self) -> int:
        return len(self._numbers) // _ENTRY.size

    def __getitem__(self, i: int) -> Entry:
        return Entry(*_ENTRY.unpack_from(self._numbers, range(len(self))[i] * _ENTRY.size))

    def __iter__(self) -> Iterator[Entry]:
        return (self[i] for i in range(len(self)))

    def __reversed__(self) -> Iterator[Entry]:
        return (self[i] for i in reversed(range(len(self))))


class TaskLog:
    """A log of finished tasks. The log `needed` is always synced before this one."""

    def __init__(self, workspace: Workspace, name: str, needed: TaskLog | None = None) -> None:
        self._needed = needed
        self._workspace = workspace
        self._name = name
        self._file = workspace.file(name)
        self.path = self._file.path
        self._synced = time.monotonic()

    def append(
        self,
        top: int,
        bucket: int,
        first_tree: int,
        trees: int,
        parts: Iterable[npt.NDArray[np.uint8]],
        size: int,
    ) -> Entry:
        """Append parts of `size` bytes in total as one entry; the parts may be made one by one."""
        rest = _HEADER.pack(_MAGIC, 0, size, top, bucket, first_tree, trees)[_CHECKED_FROM:]
        crc = _core.crc32c(np.frombuffer(rest, dtype=np.uint8))
        begin = self._file.size
        offset = begin + _HEADER.size
        try:
            self._file.append(bytes(_HEADER.size))  # what it says comes last: until then this is no entry
            for block in _blocks(parts):
                crc = _core.crc32c(block, crc)
                self._file.append(block)
            assert self._file.size == offset + size
            self._file.overwrite(begin, struct.pack("<II", _MAGIC, crc) + rest)
        except SpillDirectoryError:  # the log ends with a whole entry
            with suppress(SpillDirectoryError):
                self._file.truncate(begin)
            raise
        if self._workspace.persistent and time.monotonic() - self._synced > _SYNC_EVERY_SECONDS:
            self.sync()
            self._synced = time.monotonic()
        return Entry(top, bucket, first_tree, trees, offset, size)

    def sync(self) -> None:
        if self._needed is not None:
            self._needed.sync()
        self._file.sync()

    def entries(self) -> list[Entry]:
        """All intact entries. Damaged ones are left out with a warning, and an incomplete end is cut off."""
        found: list[Entry] = []
        offset = end = 0  # where the next entry begins, and the last whole one ends
        damage: int | None = None
        header = np.empty(_HEADER.size, dtype=np.uint8)
        while offset + _HEADER.size <= self._file.size:
            self._file.read(offset, header)
            magic, crc, size, top, bucket, first_tree, trees = _HEADER.unpack(header.tobytes())
            begin = offset + _HEADER.size
            inside = magic == _MAGIC and begin + size <= self._file.size
            if inside and self._checksum(header, begin, size) == crc:
                if max(top, bucket) >= _MOST_PLACES:
                    raise self.impossible(offset, "it names a tree beyond those of a fit")
                found.append(Entry(top, bucket, first_tree, trees, begin, size))
                end = begin + size
            elif damage is None and header.any():  # one that was being written begins with zeros
                damage = offset
            if not inside:
                break
            offset = begin + size
        if damage is not None:
            self._file.lost(damage, "its checksum does not match")
        self._file.truncate(end)
        return found

    def check(self, entry: Entry) -> tuple[int, int]:
        """Refuse an entry whose bytes differ from what was appended. Returns its checksum up to the payload,
        and including it."""
        header = np.empty(_HEADER.size, dtype=np.uint8)
        self._file.read(entry.offset - _HEADER.size, header)
        magic, crc, *rest = _HEADER.unpack(header.tobytes())
        wanted = [entry.size, entry.top, entry.bucket, entry.first_tree, entry.trees]
        if magic != _MAGIC or rest != wanted or self._checksum(header, entry.offset, entry.size) != crc:
            raise self.damaged(entry.offset, "its checksum does not match")
        return _core.crc32c(header[_CHECKED_FROM:]), crc

    @property
    def size(self) -> int:
        return self._file.size

    def read(self, offset: int, out: npt.NDArray[np.uint8]) -> None:
        self._file.read(offset, out)

    def damaged(self, offset: int, wrong: str) -> Exception:
        return self._file.damaged(offset, wrong)

    def impossible(self, offset: int, wrong: str) -> Exception:
        return self._file.impossible(offset, wrong)

    def remove(self) -> None:
        self._workspace.remove(self._name)

    def _checksum(self, header: npt.NDArray[np.uint8], begin: int, size: int) -> int:
        crc = _core.crc32c(header[_CHECKED_FROM:])
        for first in range(0, size, _READ_BYTES):
            data = np.empty(min(_READ_BYTES, size - first), dtype=np.uint8)
            self._file.read(begin + first, data)
            crc = _core.crc32c(data, crc)
        return crc
