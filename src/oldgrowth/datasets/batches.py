"""Batches of rows, and how they are filled from the pieces that sources give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .. import _core
from ..errors import InfiniteValueError
from .labels import CodedLabels, Labels, join_labels
from .odd_texts import OddTexts, join_odd

# Values are float32, or uint8 on request (`keep_bytes`) if all values of a batch are uint8.
FloatsOrBytes = npt.NDArray[np.float32] | npt.NDArray[np.uint8]

BYTE_VALUES = 256  # that a byte can have
FIRST_ROOM = 1 << 16  # initial capacity, in rows, of a batch whose length is not known yet


@dataclass(frozen=True)
class Batch:
    """Consecutive rows of a dataset, starting at row number `first_row`."""

    first_row: int
    x: FloatsOrBytes  # (rows, n_features), C-contiguous; NaN is a missing value
    y: npt.NDArray[Any] | CodedLabels | None
    weights: npt.NDArray[np.float64] | None
    places: tuple[tuple[int, str], ...]  # first row and name of each source file, for errors
    carried: pa.Table | None = None  # the columns requested with `carry`
    odd_texts: OddTexts | None = None  # original text of labels that were not plain numbers

    @property
    def rows(self) -> int:
        return len(self.x)

    @property
    def where(self) -> str:
        """The source of its rows, or the first and the last source if there are several."""
        first, last = self.places[0][1], self.places[-1][1]
        return first if first == last else f"{first} to {last}"

    def where_of(self, row: int) -> str:
        """The file, or the kind of source, that a row of the dataset comes from."""
        return next(where for first, where in reversed(self.places) if first <= row)


@dataclass(frozen=True)
class Span:
    """A range of row numbers, from `start` up to but excluding `stop`; None means the end of the data."""

    start: int
    stop: int | None = None

    def within(self, first: int) -> Span:
        """The same rows, numbered from row `first`."""
        return Span(max(0, self.start - first), None if self.stop is None else max(0, self.stop - first))

    def of(self, rows: int) -> tuple[int, int]:
        """Its begin and end among the first `rows` rows."""
        return min(self.start, rows), rows if self.stop is None else min(self.stop, rows)


class Piece(Protocol):
    """Rows in the form in which a source yields them. Row numbers count from the start of the piece."""

    @property
    def first_row(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def where(self) -> str: ...
    @property
    def all_bytes(self) -> bool: ...  # whether all values are of type uint8 and none is missing
    def fill(self, out: FloatsOrBytes, start: int) -> None: ...
    def labels(self, start: int, stop: int) -> Labels | None: ...
    def odd_texts(self, start: int, stop: int) -> OddTexts | None: ...
    def weights(self, start: int, stop: int) -> npt.NDArray[np.float64] | None: ...
    def carried(self, start: int, stop: int) -> pa.Table | None: ...


class BatchBuilder:
    """Builds a batch from pieces."""

    def __init__(
        self, first_row: int, rows: int, known: bool, n_features: int, where: str, as_bytes: bool
    ) -> None:
        self.first_row = first_row
        self.count = 0
        self._rows = rows
        self._places = [(first_row, where)]
        shape = (rows if known else min(rows, FIRST_ROOM), n_features)
        self._x: FloatsOrBytes = np.empty(shape, np.uint8) if as_bytes else np.empty(shape, np.float32)
        self._labels: list[Labels] = []
        self._odd_texts: list[OddTexts] = []
        self._weights: list[npt.NDArray[np.float64]] = []
        self._carried: list[pa.Table] = []

    @property
    def full(self) -> bool:
        return self.count == self._rows

    def take(self, piece: Piece, start: int) -> int:
        """Take as many rows of the piece as fit, from `start` on; return the row after the last one taken."""
        stop = min(piece.rows, start + self._rows - self.count)
        end = self.count + stop - start
        if end > len(self._x):
            self._move(min(self._rows, max(2 * len(self._x), end)), self._x.dtype)
        if self._x.dtype == np.uint8 and not piece.all_bytes:
            self._move(len(self._x), np.dtype(np.float32))
        if piece.where != self._places[-1][1]:
            self._places.append((self.first_row + self.count, piece.where))
        piece.fill(self._x[self.count : end], start)
        for parts, part in (
            (self._labels, piece.labels(start, stop)),
            (self._weights, piece.weights(start, stop)),
            (self._carried, piece.carried(start, stop)),
        ):
            if part is not None:
                parts.append(part)  # type: ignore[arg-type, attr-defined]
        if (odd := piece.odd_texts(start, stop)) is not None:
            self._odd_texts.append(odd.moved(self.count))
        self.count = end
        return stop

    def _move(self, rows: int, dtype: np.dtype[Any]) -> None:
        """Reallocate for this many rows of this type."""
        moved = np.empty((rows, self._x.shape[1]), dtype=dtype)
        moved[: self.count] = self._x[: self.count]
        self._x = moved

    def finish(self, names: tuple[str, ...] | None) -> Batch:
        batch = Batch(
            self.first_row,
            self._x[: self.count],
            join_labels(self._labels) if self._labels else None,
            np.concatenate(self._weights) if self._weights else None,
            tuple(self._places),
            pa.concat_tables(self._carried, promote_options="permissive") if self._carried else None,
            join_odd(self._odd_texts),
        )
        infinite, _ = _core.find_non_finite(batch.x)
        if infinite >= 0:
            row, column = divmod(infinite, batch.x.shape[1])
            name = column if names is None else names[column]
            raise InfiniteValueError(self.first_row + row, name, batch.where_of(self.first_row + row))
        return batch
