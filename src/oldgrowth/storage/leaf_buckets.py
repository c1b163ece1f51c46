"""Buckets that trees cannot split, however large: their rows are streamed.

All rows of such a bucket are equal (the nodata pixels of a scene), or it is as deep as trees may grow. Its
trees are single leaves, for which the rows' bootstrap counts are sufficient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from .. import _core
from .spill_file import SpillFile


@dataclass(frozen=True)
class RowPart:
    """Some of a bucket's rows, in order: hashes of their content, targets, weights and numbers."""

    keys: npt.NDArray[np.uint64]
    targets: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64] | None
    numbers: npt.NDArray[np.uint32 | np.uint64] | None


class Streamed(Protocol):
    """What is asked of a store."""

    def parts(self, top: int, bucket: int) -> Iterator[RowPart]: ...


@dataclass(frozen=True)
class LeafMemory:
    """How many different rows may be kept in memory at a time, and a file for notes if there are more."""

    most_keys: int
    file: Callable[[], SpillFile]


class LeafBucket:
    """A bucket's rows with how many copies of each came before, any number of times."""

    def __init__(self, store: Streamed, top: int, bucket: int, rows: int, memory: LeafMemory) -> None:
        self._store, self._top, self._bucket = store, top, bucket
        self._memory = memory
        self._noted: _NotedCopies | None = None
        if rows > memory.most_keys and self._too_many_keys():
            self._noted = _NotedCopies(self._parts, rows, -(-rows // memory.most_keys), memory.file())

    def __enter__(self) -> LeafBucket:
        return self

    def __exit__(self, *_: object) -> None:
        if self._noted is not None:
            self._noted.close()

    def parts(self) -> Iterator[tuple[RowPart, npt.NDArray[np.uint64]]]:
        if self._noted is not None:
            yield from self._noted.parts()
            return
        counter = _core.CopyCounter()
        for part in self._parts():
            yield part, counter.count(part.keys, part.weights)

    def _parts(self) -> Iterator[RowPart]:
        return self._store.parts(self._top, self._bucket)

    def _too_many_keys(self) -> bool:
        counter = _core.CopyCounter()
        for part in self._parts():
            counter.count(part.keys, part.weights)
            if counter.keys > self._memory.most_keys:
                return True
        return False


class _NotedCopies:
    """Copies of more different rows than can be remembered at once: counted for one share of the keys after
    the other, and written down share by share."""

    def __init__(
        self, parts: Callable[[], Iterator[RowPart]], rows: int, n_shares: int, file: SpillFile
    ) -> None:
        self._parts, self._n_shares, self._file = parts, n_shares, file
        self._dtype = np.dtype(f"u{_core.CopyCounter.count_bytes(rows, weighted=True)}")
        self._begin: list[int] = []
        for share in range(n_shares):
            self._begin.append(file.size)
            counter = _core.CopyCounter()
            for part in parts():
                mine = self._share_of(part.keys) == share
                weights = None if part.weights is None else part.weights[mine]
                copies = counter.count(part.keys[mine], weights).astype(self._dtype)
                file.append(copies.view(np.uint8))

    def parts(self) -> Iterator[tuple[RowPart, npt.NDArray[np.uint64]]]:
        at = list(self._begin)
        for part in self._parts():
            shares = self._share_of(part.keys)
            copies = np.empty(len(part.keys), dtype=np.uint64)
            for share in range(self._n_shares):
                mine = np.flatnonzero(shares == share)
                noted = np.empty(len(mine), dtype=self._dtype)
                self._file.read(at[share], noted.view(np.uint8))
                at[share] += noted.nbytes
                copies[mine] = noted
            yield part, copies

    def close(self) -> None:
        self._file.close()

    def _share_of(self, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        return (keys >> np.uint64(32)) % np.uint64(self._n_shares)


def add_all(leaves: list[_core.Leaf], bucket: LeafBucket) -> None:
    """Add the rows of a bucket to each of some leaves."""
    for part, copies in bucket.parts():
        for leaf in leaves:
            leaf.add(part.keys, copies, part.targets, part.weights)
