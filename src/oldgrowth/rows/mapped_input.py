"""Arrays of the caller that are mapped from a file: pages that were read count as memory of the process until
they are evicted."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

# Ways of mapping in which the file has all that was written: nothing is lost with a page.
_SHARED = frozenset(("r", "r+", "w+"))
# Of a file from which single rows are read.
_BYTES_AT_A_TIME = 1 << 22


class MappedInput:
    """The file that an array is mapped from, if it is. Pages of a private mapping are never evicted: they
    may have changes that the file does not have."""

    def __init__(self, array: npt.NDArray[np.generic]) -> None:
        self._map = _map_of(array) if hasattr(mmap, "MADV_DONTNEED") else None
        row = max(abs(array.strides[0]), array[:1].nbytes)
        self._rows_at_a_time = max(1, _BYTES_AT_A_TIME // max(1, row))

    def parts(self, rows: npt.NDArray[np.integer[Any]]) -> Iterator[slice]:
        """Parts of some rows, in ascending order, to be read at a time: each row may bring in pages of its
        own, and those of a part are in a small part of the file."""
        cuts: list[int] = []
        if self._map is not None:
            cuts = (1 + np.flatnonzero(np.diff(rows // self._rows_at_a_time))).tolist()
        for first, last in pairwise([0, *cuts, len(rows)]):
            yield slice(first, last)

    def give_back(self) -> None:
        """Evict the pages that were read; they are read again on the next use."""
        if self._map is not None and not self._map.closed:
            self._map.madvise(mmap.MADV_DONTNEED)


def _map_of(array: Any) -> mmap.mmap | None:
    shared = False
    while array is not None:
        if isinstance(array, np.memmap):
            shared = shared or array.mode in _SHARED
        if isinstance(array, mmap.mmap):
            return array if shared else None
        array = getattr(array, "base", None)
    return None
