"""Rows of the top samples, kept while a source streams by that cannot be asked for single rows later.

They are held in the narrowest type that is lossless, in memory as long as they are few, else in a spill file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from .datasets.base import FloatsOrBytes
from .errors import DamagedBlockError
from .space import Space
from .training_rows import Chunk, Taken

FILE = "sample.rows"
_TYPES = [np.dtype(name) for name in ("u1", "<i2", "<u2", "<f4")]


@dataclass(frozen=True)
class _Part:
    """Rows from one chunk; x is in memory or, as so many bytes from `offset` on, in the file."""

    rows: npt.NDArray[np.uint32]  # ascending
    targets: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64] | None
    dtype: np.dtype[Any]
    x: npt.NDArray[Any] | None
    offset: int = 0
    crc: int = 0


class KeptRows:
    def __init__(self, n_features: int, space: Space, most_bytes: int) -> None:
        self._n_features = n_features
        self._space = space
        self._most_bytes = most_bytes
        self._in_memory = 0
        self._parts: list[_Part] = []

    def add(self, chunk: Chunk, rows: npt.NDArray[np.uint32]) -> None:
        """Keep these rows of a chunk."""
        if len(rows) == 0:
            return
        places = (rows - np.uint32(chunk.first_row)).astype(np.intp)
        x = _narrowed(chunk.x[places])
        weights = None if chunk.weights is None else chunk.weights[places]
        self._parts.append(_Part(rows, chunk.targets[places], weights, x.dtype, x))
        self._in_memory += x.nbytes
        if self._in_memory > self._most_bytes:
            self.flush()

    def flush(self) -> None:
        """Move what is in memory to the file."""
        file = self._space.get().file(FILE)
        for i, part in enumerate(self._parts):
            if part.x is not None:
                data = part.x.reshape(-1).view(np.uint8)
                self._parts[i] = replace(part, x=None, offset=file.append(data), crc=_core.crc32c(data))
        self._in_memory = 0

    def recode(self, final: npt.NDArray[np.int64] | None) -> None:
        """Give the rows the final numbers of their classes."""
        if final is not None:
            self._parts = [
                replace(part, targets=final[part.targets.astype(np.intp)].astype(np.float64))
                for part in self._parts
            ]

    def take(self, rows: npt.NDArray[np.uint32]) -> Iterator[Taken]:
        """These rows, ascending, some at a time."""
        done = 0
        for part in self._parts:
            last = done + int(np.searchsorted(rows[done:], part.rows[-1], side="right"))
            wanted, done = rows[done:last], last
            if len(wanted) == 0:
                continue
            places = np.searchsorted(part.rows, wanted)
            x = self._values(part)[places].astype(np.float32)
            yield Taken(x, part.targets[places], None if part.weights is None else part.weights[places])
        assert done == len(rows), "a sampled row was not kept"

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """What `restore` needs, beside the file up to its present end."""
        self.flush()
        parts = self._parts
        weighted = bool(parts) and parts[0].weights is not None
        return {
            "rows": np.concatenate([np.zeros(0, np.uint32), *(part.rows for part in parts)]),
            "targets": np.concatenate([np.zeros(0), *(part.targets for part in parts)]),
            "weights": np.concatenate([part.weights for part in parts]) if weighted else np.zeros(0),  # type: ignore[misc]
            "parts": np.array(
                [(len(part.rows), _TYPES.index(part.dtype), part.offset, part.crc) for part in parts],
                np.int64,
            ).reshape(-1, 4),
        }

    def restore(self, state: dict[str, npt.NDArray[Any]]) -> None:
        start = 0
        weighted = len(state["weights"]) > 0
        for n, dtype, offset, crc in state["parts"].tolist():
            part = slice(start, start := start + n)
            weights = state["weights"][part] if weighted else None
            rows, targets = state["rows"][part], state["targets"][part]
            self._parts.append(_Part(rows, targets, weights, _TYPES[dtype], None, offset, crc))

    def _values(self, part: _Part) -> npt.NDArray[Any]:
        """The features of a part's rows, in the type they are kept in."""
        if part.x is not None:
            return part.x
        file = self._space.get().file(FILE)
        x = np.empty((len(part.rows), self._n_features), dtype=part.dtype)
        data = x.reshape(-1).view(np.uint8)
        file.read(part.offset, data)
        if _core.crc32c(data) != part.crc:
            raise DamagedBlockError(file.path, part.offset, "its checksum does not match")
        return x


def _narrowed(x: FloatsOrBytes) -> npt.NDArray[Any]:
    """The same values in the narrowest type that holds them."""
    if x.dtype == np.uint8:
        return x
    low, high = x.min(), x.max()  # NaN if any value is missing
    for dtype in _TYPES[:-1]:
        limits = np.iinfo(dtype)
        if low >= limits.min and high <= limits.max:
            narrow = x.astype(dtype)
            if np.array_equal(narrow, x):
                return narrow
    return x
