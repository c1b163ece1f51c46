"""Rows of a callable that returns a new iterator over batches for each pass."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..checks import refuse_masked
from ..errors import (
    BatchError,
    ChangedSourceError,
    DuplicateColumnError,
    FailedBatchError,
    NoDataError,
    OldgrowthError,
    OnceOnlyError,
    ParameterError,
)
from .base import COUNTED_ROWS, Dataset
from .batches import Span
from .columns import first_twice
from .labels import kept_apart
from .level_counts import RawColumns
from .matrix import MatrixPiece, raw_columns_of, text_columns

Parts = tuple[npt.NDArray[Any], npt.NDArray[Any] | None, npt.NDArray[Any] | None]
CLASSES = {"b": "bool", "i": "whole", "u": "whole", "f": "float"}


class CallableDataset(Dataset):
    """Batches of a callable, checked against the first one; `features` names the columns."""

    kind = "callable"

    def __init__(self, source: Callable[[], Any], target: Any, features: Any, weight: Any) -> None:
        for name, value in (("target", target), ("weight", weight)):
            if value is not None:
                raise ParameterError(
                    name, value, "None for a callable, whose batches are (X, y) or (X, y, weight)"
                )
        self._source = source
        self._first = self._peek()
        x, y, w = self._first
        self.n_features = x.shape[1]
        self.target = None if y is None else "y"
        self.weight = None if w is None else "weight"
        self.n_rows = None
        self.nbytes = None
        self.feature_names = None if features is None else tuple(features)
        if features is not None and (isinstance(features, str) or len(features) != self.n_features):
            raise ParameterError("features", features, f"{self.n_features} names, one for each column of X")
        if features is not None and (twice := first_twice(features)) is not None:
            raise DuplicateColumnError(twice, "the callable", selected=True)
        self._places = {name: i for i, name in enumerate(self.feature_names or ())}
        self._columns: npt.NDArray[np.intp] | None = None
        self._begin = _checksum(self._first)

    def _peek(self) -> Parts:
        iterator = self._iterator()
        if iterator is self._iterator():
            raise OnceOnlyError("The callable returns the same iterator each time, which")
        for number, batch in self._numbered(iterator):
            return parts_of(number, batch)
        raise NoDataError("The callable", "its iterator yielded no batch")

    def _iterator(self) -> Iterator[Any]:
        try:
            return iter(self._source())
        except Exception as error:
            raise FailedBatchError(0, error) from error

    def _numbered(self, iterator: Iterator[Any]) -> Iterator[tuple[int, Any]]:
        number = 0
        while True:
            try:
                batch = next(iterator)
            except StopIteration:
                return
            except OldgrowthError:
                raise
            except Exception as error:
                raise FailedBatchError(number, error) from error
            yield number, batch
            number += 1

    def _pieces(self, rows: int, span: Span, carry: tuple[str, ...]) -> Iterator[MatrixPiece]:
        at = 0
        for number, batch in self._numbered(self._iterator()):
            x, y, w = parts = parts_of(number, batch)
            self._check_like_first(number, parts)
            if number == 0 and not _begin_alike(parts, self._first):
                raise ChangedSourceError("The callable", "its first batch has other rows than before")
            others = {name: x[:, self._places[name]] for name in carry}
            where = f"batch {number} of the callable"
            yield MatrixPiece(at, where, x, self._columns, y, w, ("y", "weight"), others, self._coders)
            at += len(x)

    @property
    def text_features(self) -> tuple[int, ...]:
        x = self._first[0]
        places = range(x.shape[1]) if self._columns is None else self._columns.tolist()
        return text_columns(x, places, "batch 0 of the callable")

    def raw_columns(self, features: tuple[int, ...], start: int) -> Iterator[RawColumns]:
        return raw_columns_of(self._pieces(COUNTED_ROWS, Span(start), ()), features, start)

    def _check_like_first(self, number: int, parts: Parts) -> None:
        x, first = parts[0], self._first[0]
        if x.shape[1] != first.shape[1]:
            raise BatchError(number, f"has {x.shape[1]} columns, but batch 0 has {first.shape[1]}")
        if x.dtype.kind in "OUT" and first.dtype.kind not in "OUT":
            raise BatchError(number, f"has an X of type {x.dtype}, but batch 0 has {first.dtype}")
        for name, mine, other in zip(("y", "weight"), parts[1:], self._first[1:], strict=True):
            if (mine is None) != (other is None):
                raise BatchError(number, f"has {'no ' if mine is None else 'a '}{name}, unlike batch 0")
        y, y_first = parts[1], self._first[1]
        if y is not None and y_first is not None and _class(y) != _class(y_first):
            raise BatchError(number, f"has labels of type {y.dtype}, but batch 0 has {y_first.dtype}")

    def _column_names(self) -> Sequence[str]:
        return list(self._places)

    def _use_features(self, features: tuple[str, ...]) -> None:
        self._columns = np.array([self._places[name] for name in features], dtype=np.intp)

    def _described(self) -> list[tuple[str, str]]:
        name = getattr(self._source, "__name__", type(self._source).__name__)
        return [("from", str(name)), ("types", str(self._first[0].dtype))]

    def fingerprint(self) -> dict[str, Any]:
        names = None if self.feature_names is None else list(self.feature_names)
        shape = [None, self.n_features]
        return {"kind": self.kind, "source": None, "shape": shape, "features": names, "crc": self._begin}


def parts_of(number: int, batch: Any) -> Parts:
    """X, labels and weights of a batch as arrays, with their shapes checked."""
    given = batch if isinstance(batch, tuple) else (batch,)
    if not 1 <= len(given) <= 3:
        raise BatchError(number, f"has {len(given)} parts")
    for name, values in zip(("X", "y", "weight"), given, strict=False):
        refuse_masked(f"{name} of batch {number} of the callable", values)
    x = np.asarray(given[0])
    if x.ndim != 2 or x.shape[1] == 0 or x.dtype.kind not in "biufOUT":
        raise BatchError(
            number, f"has an X of shape {x.shape} and type {x.dtype}, not a 2-D array of numbers or text"
        )
    beside: list[npt.NDArray[Any] | None] = [None, None]
    for i, (name, values) in enumerate(zip(("y", "weight"), given[1:], strict=False)):
        if values is None:
            continue
        part = np.asarray(kept_apart(values) if name == "y" else values)
        if part.shape not in ((len(x),), (len(x), 1)):
            raise BatchError(number, f"has {len(x)} rows in X, but {name} has shape {part.shape}")
        beside[i] = part.reshape(len(x))
    if beside[1] is not None and beside[1].dtype.kind not in "biuf":
        raise BatchError(number, f"has weights of type {beside[1].dtype}")
    return x, beside[0], beside[1]


def _class(labels: npt.NDArray[Any]) -> str:
    return CLASSES.get(labels.dtype.kind, "text")


def _begin_alike(some: Parts, others: Parts) -> bool:
    """Whether the common first rows are equal; lengths and types may differ."""
    n = min(len(some[0]), len(others[0]))
    for a, b in zip(some, others, strict=True):
        if a is not None and b is not None:
            if "O" in (a.dtype.kind, b.dtype.kind):
                if repr(a[:n].tolist()) != repr(b[:n].tolist()):
                    return False
                continue
            missing = a.dtype.kind == b.dtype.kind == "f"
            if not np.array_equal(a[:n], b[:n], equal_nan=missing):
                return False
    return True


def _checksum(parts: Parts) -> int:
    crc = 0
    for part in parts:
        if part is not None:
            content = repr(part.tolist()).encode() if part.dtype.hasobject else part.tobytes()
            crc = zlib.crc32(content, crc)
    return crc
