"""Rows of the top samples, kept while a source streams by that cannot be asked for single rows later.

They are held in the narrowest type that is lossless, in memory as long as they are few, else in a spill file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..datasets.batches import FloatsOrBytes
from ..plan import Plan
from ..rows.training_rows import Chunk, Taken
from .fit_workspace import FitWorkspace
from .spill_file import SpillFile

FILE = "sample.rows"
_TYPES = [np.dtype(name) for name in ("u1", "<i2", "<u2", "<f4")]


@dataclass(frozen=True)
class _Part:
    """Rows from one chunk: targets, weights if there are any, the low 32 bits of row numbers, features. All
    of them are in memory or, from `offset` on, in the file."""

    n_rows: int
    last_row: int
    weighted: bool
    dtype: np.dtype[Any]  # of the features
    data: npt.NDArray[np.uint8] | None
    offset: int = 0
    crc: int = 0
    numbers_crc: int = 0

    def stored(self, data: npt.NDArray[np.uint8], offset: int) -> _Part:
        """This part when its data is in the file from `offset` on."""
        first, last = self.edges[1:]
        crc, numbers_crc = _core.crc32c(data), _core.crc32c(data[first:last])
        return replace(self, data=None, offset=offset, crc=crc, numbers_crc=numbers_crc)

    @property
    def edges(self) -> list[int]:
        """Where targets, weights and row numbers end, and features begin."""
        targets, weights, numbers = 8 * self.n_rows, 8 * self.n_rows * self.weighted, 4 * self.n_rows
        return [targets, targets + weights, targets + weights + numbers]


class CandidateRows:
    """Rows beyond `most_bytes` bytes go to a file in the workspace, whose name begins with `prefix`."""

    def __init__(
        self,
        n_features: int,
        workspace: FitWorkspace | None = None,
        most_bytes: int = 2**62,
        prefix: str = "",
    ) -> None:
        self._n_features = n_features
        self._workspace = workspace or FitWorkspace()
        self._most_bytes = most_bytes
        self._name = f"{prefix}{FILE}"
        self._in_memory = 0
        self._parts: list[_Part] = []
        self._final: npt.NDArray[np.int64] | None = None

    def add(self, chunk: Chunk, rows: npt.NDArray[np.uint64]) -> None:
        """Keep these rows of a chunk."""
        if len(rows) == 0:
            return
        places = (rows - np.uint64(chunk.first_row)).astype(np.intp)
        x = _narrowed(chunk.x[places])
        weights = [] if chunk.weights is None else [chunk.weights[places]]
        arrays: list[npt.NDArray[Any]] = [chunk.targets[places], *weights, rows.astype(np.uint32), x]
        data = np.concatenate([array.reshape(-1).view(np.uint8) for array in arrays])
        self._add(_Part(len(rows), int(rows[-1]), chunk.weights is not None, x.dtype, data))

    def _add(self, part: _Part) -> None:
        assert part.data is not None
        self._parts.append(part)
        self._in_memory += part.data.nbytes
        if self._in_memory > self._most_bytes:
            self.flush()

    @property
    def _file(self) -> SpillFile:
        return self._workspace.get().file(self._name)

    def flush(self) -> None:
        """Move what is in memory to the file."""
        file = self._file
        for i, part in enumerate(self._parts):
            if part.data is not None:
                self._parts[i] = part.stored(part.data, file.append(part.data))
        self._in_memory = 0

    def merge(self, following: CandidateRows, codes: npt.NDArray[np.int64] | None = None) -> None:
        """Take up rows that follow; `codes` are the class numbers here of the classes there."""
        for part in following._parts:
            data = following._data(part)
            if codes is not None:
                data = data.copy()
                targets = data[: part.edges[0]].view(np.float64)
                targets[:] = codes[targets.astype(np.intp)]
            self._add(replace(part, data=data))

    def recode(self, final: npt.NDArray[np.int64] | None) -> None:
        """Give the rows the final numbers of their classes, when they are taken."""
        self._final = final

    def draw(self, plan: Plan, top: int, n_rows: int) -> npt.NDArray[np.uint64]:
        """The numbers of the rows of a top sample drawn from `n_rows` rows."""
        drawing = (plan.top_sample, plan.seed, top, n_rows)
        parts = [_core.candidates_of_top(*drawing, self._numbers(part)) for part in self._parts]
        numbers = np.concatenate([np.zeros(0, dtype=np.uint64), *parts])
        return _core.draw_from_candidates(*drawing, numbers)

    def of_top(self, plan: Plan, top: int, n_rows: int) -> CandidateRows:
        """Those rows that may be in the sample of this top tree, drawn from `n_rows` rows."""
        chosen = CandidateRows(self._n_features)
        for part in self._parts:
            numbers = self._numbers(part)
            mine = _core.candidates_of_top(plan.top_sample, plan.seed, top, n_rows, numbers)
            if len(mine):
                chosen._add(self._only(part, np.searchsorted(numbers, mine), int(mine[-1])))
        return chosen

    def _only(self, part: _Part, places: npt.NDArray[np.intp], last_row: int) -> _Part:
        """The part with just the rows at these places."""
        targets, weights, numbers, x = np.split(self._data(part), part.edges)
        width = self._n_features * part.dtype.itemsize
        columns = [
            targets.reshape(-1, 8),
            weights.reshape(-1, 8),
            numbers.reshape(-1, 4),
            x.reshape(-1, width),
        ]
        chosen = [column[places].reshape(-1) for column in columns if len(column)]
        return _Part(len(places), last_row, part.weighted, part.dtype, np.concatenate(chosen))

    def _numbers(self, part: _Part) -> npt.NDArray[np.uint64]:
        """Row numbers of a part, of which no more is read."""
        first, last = part.edges[1:]
        if part.data is not None:
            return _numbers(part, part.data[first:last])
        low_bits = np.empty(last - first, dtype=np.uint8)
        self._read(part.offset + first, low_bits, part.numbers_crc)
        return _numbers(part, low_bits)

    def __getstate__(self) -> dict[str, Any]:
        """With all rows in memory: the file stays here."""
        parts = [replace(part, data=self._data(part), offset=0, crc=0, numbers_crc=0) for part in self._parts]
        return {"n_features": self._n_features, "parts": parts, "final": self._final}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["n_features"])  # type: ignore[misc]
        self._final = state["final"]
        for part in state["parts"]:
            self._add(part)

    def take(self, rows: npt.NDArray[np.uint64]) -> Iterator[Taken]:
        """These rows, ascending, some at a time."""
        done = 0
        for part in self._parts:
            last = done + int(np.searchsorted(rows[done:], np.uint64(part.last_row), side="right"))
            wanted, done = rows[done:last], last
            if len(wanted):
                yield self._taken(part, wanted)
        if done != len(rows):
            raise self._missing()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """What `restore` needs, beside the file up to its present end, which is on the disk by then."""
        self.flush()
        self._file.sync()
        lines = [
            (part.n_rows, part.last_row, part.weighted, _TYPES.index(part.dtype), part.offset, part.crc)
            for part in self._parts
        ]
        return {"parts": np.array(lines, np.int64).reshape(-1, 6)}

    def restore(self, state: dict[str, npt.NDArray[Any]], n_classes: int, n_rows: int) -> bool:
        """Take up what another process kept; False if not all of it is in the file.

        `n_classes` is 0 for values.
        """
        last, file = -1, self._file
        for n, last_row, weighted, dtype, offset, crc in state["parts"].tolist():
            part = _Part(n, last_row, bool(weighted), _TYPES[dtype], None, offset, crc)
            if min(n - 1, dtype, offset, crc) < 0 or not last + n <= last_row < n_rows:
                raise ValueError("rows that there are not")
            if offset + self._bytes(part) > file.size:
                file.lost(offset, "it ends before what was written to it")
                return False
            data = np.empty(self._bytes(part), dtype=np.uint8)
            file.read(offset, data)
            if _core.crc32c(data) != crc:
                file.lost(offset, "its checksum does not match")
                return False
            self._check(part, data, last, n_classes)
            self._parts.append(part.stored(data, offset))
            last = last_row
        return True

    def clear(self) -> None:
        """Start again without rows."""
        self._parts, self._in_memory = [], 0
        self._file.truncate(0)

    def remove(self) -> None:
        """Free memory and disk: the rows are not needed any more."""
        self._parts, self._in_memory = [], 0
        self._workspace.get().remove(self._name)

    def _check(self, part: _Part, data: npt.NDArray[np.uint8], before: int, n_classes: int) -> None:
        targets, weights, rows, _ = np.split(data, part.edges)
        numbers = _numbers(part, rows).astype(np.int64)
        target, weight = targets.view(np.float64), weights.view(np.float64)
        rising = numbers[0] > before and numbers[-1] == part.last_row and bool((np.diff(numbers) > 0).all())
        known = np.isfinite(target)
        if n_classes:
            known &= (target >= 0) & (target < n_classes) & (target == np.floor(target))
        if not rising or not known.all() or not (np.isfinite(weight) & (weight > 0)).all():
            raise ValueError("rows that cannot have been kept")

    def _bytes(self, part: _Part) -> int:
        return part.edges[-1] + part.n_rows * self._n_features * part.dtype.itemsize

    def _taken(self, part: _Part, wanted: npt.NDArray[np.uint64]) -> Taken:
        targets, weights, rows, x = np.split(self._data(part), part.edges)
        numbers = _numbers(part, rows)
        places = np.searchsorted(numbers, wanted)
        if not np.array_equal(numbers[np.minimum(places, part.n_rows - 1)], wanted):
            raise self._missing()
        target = targets.view(np.float64)[places]
        if self._final is not None:
            target = self._final[target.astype(np.intp)].astype(np.float64)
        weight = weights.view(np.float64)[places] if part.weighted else None
        features = x.view(part.dtype).reshape(part.n_rows, self._n_features)
        return Taken(features[places].astype(np.float32), target, weight)

    def _data(self, part: _Part) -> npt.NDArray[np.uint8]:
        if part.data is not None:
            return part.data
        data = np.empty(self._bytes(part), dtype=np.uint8)
        self._read(part.offset, data, part.crc)
        return data

    def _read(self, offset: int, out: npt.NDArray[np.uint8], crc: int) -> None:
        file = self._file
        file.read(offset, out)
        if _core.crc32c(out) != crc:
            raise file.damaged(offset, "its checksum does not match")

    def _missing(self) -> Exception:
        return self._file.impossible(0, "a row of a top sample is not in it")


def _numbers(part: _Part, low_bits: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Row numbers from their low 32 bits: none is as much as 2**32 below the last one."""
    if part.last_row < 2**32:
        return low_bits.view(np.uint32).astype(np.uint64)
    below_last = np.uint32(part.last_row % 2**32) - low_bits.view(np.uint32)
    return np.uint64(part.last_row) - below_last.astype(np.uint64)


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
