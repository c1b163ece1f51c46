"""Rows of a matrix X with separate labels and weights: arrays, .npy, .npz and HDF5."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import (
    ColumnTypeError,
    DataError,
    DuplicateColumnError,
    LateTextError,
    MissingColumnError,
    NamelessColumnsError,
    NoDataError,
    ParameterError,
    SameRoleError,
)
from .base import COUNTED_ROWS, Dataset
from .batches import FloatsOrBytes, Span
from .columns import FEATURES, NUMBERS, AllBut, first_twice
from .labels import Labels, checked_weights, labels_from_numpy, plain_floats, type_class
from .level_counts import RawColumns
from .levels import LevelCoder, column_of
from .odd_texts import OddTexts, odd_decimals
from .partition_edges import row_edges
from .rows import MemoryRows, Reader, Rows, is_same_array, refuse_objects

PIECE_VALUES = 1 << 21
SAMPLED_ROWS = 4096


@dataclass(frozen=True)
class Beside:
    """Labels or weights: a separate array, or a column of X."""

    name: str
    rows: Rows | None = None
    column: int | None = None

    def is_the_same(self, other: Beside) -> bool:
        if self.rows is None or other.rows is None:
            return self.rows is other.rows and self.column == other.column
        return is_same_array(self.rows, other.rows)


@dataclass
class MatrixPiece:
    """A block of rows of X with their labels, weights and carried columns."""

    first_row: int
    where: str
    x: npt.NDArray[Any]
    columns: npt.NDArray[np.intp] | None  # columns of X that are features; None for all
    y: npt.NDArray[Any] | None
    w: npt.NDArray[Any] | None
    names: tuple[str, str]  # names of target and weight, for errors
    others: dict[str, npt.NDArray[Any]]  # columns to carry
    coders: Sequence[LevelCoder | None] | None = None  # of the features, if some are categories

    @property
    def rows(self) -> int:
        return len(self.x)

    @property
    def all_bytes(self) -> bool:
        return self.x.dtype == np.uint8 and self.coders is None

    def fill(self, out: FloatsOrBytes, start: int) -> None:
        part = self.x[start : start + len(out)]
        if self.coders is not None or part.dtype.kind in "OUT":  # NumPy would make numbers of text
            self._fill_by_column(part, out)
            return
        with np.errstate(over="ignore"):
            out[...] = part if self.columns is None else part[:, self.columns]

    def _fill_by_column(self, part: npt.NDArray[Any], out: FloatsOrBytes) -> None:
        coders = self.coders or [None] * out.shape[1]
        for feature, coder in enumerate(coders):
            values = part[:, self.place(feature)]
            if coder is not None:
                out[:, feature] = coder.codes(column_of(values, feature, self.where), self.where)
            else:
                out[:, feature] = numbers_of(values, feature, self.where)

    def place(self, feature: int) -> int:
        """The column of X that is a feature."""
        return feature if self.columns is None else int(self.columns[feature])

    def labels(self, start: int, stop: int) -> Labels | None:
        if self.y is None:
            return None
        return labels_from_numpy(self.y[start:stop], self.first_row + start, self.names[0], self.where)

    def odd_texts(self, start: int, stop: int) -> OddTexts | None:
        if self.y is None or self.y.dtype.kind != "O":
            return None
        return odd_decimals(pa.array(self.y[start:stop], from_pandas=True))

    def weights(self, start: int, stop: int) -> npt.NDArray[np.float64] | None:
        if self.w is None:
            return None
        return checked_weights(self.w[start:stop], self.first_row + start, self.names[1], self.where)

    def carried(self, start: int, stop: int) -> pa.Table | None:
        if not self.others:
            return None
        return pa.table({name: values[start:stop] for name, values in self.others.items()})


def numbers_of(values: npt.NDArray[Any], feature: int, where: str) -> npt.NDArray[Any]:
    """A column of numbers, which may be objects."""
    if values.dtype.kind in "biuf":
        return values
    column = column_of(values, feature, where)
    if type_class(column.type) == "text":
        raise LateTextError(feature, where)
    if type_class(column.type) not in NUMBERS:
        raise ColumnTypeError(feature, where, column.type, "feature")
    return plain_floats(column)


def text_columns(x: npt.NDArray[Any], places: Sequence[int], where: str) -> tuple[int, ...]:
    """Which of these columns of an array hold text; the others hold numbers."""
    if x.dtype.kind in "biuf":
        return ()
    found = {feature: column_of(x[:, place], feature, where).type for feature, place in enumerate(places)}
    bad = {feature: kind for feature, kind in found.items() if type_class(kind) not in FEATURES}
    if bad:
        (first, kind), *others = bad.items()
        raise ColumnTypeError(first, where, kind, "feature", dict(others))
    return tuple(feature for feature, kind in found.items() if type_class(kind) == "text")


class MatrixDataset(Dataset):
    """Rows of a matrix; its columns have names only if `features` names them."""

    _unpack_dir: Path | None = None
    _text: tuple[int, ...] = ()

    def __init__(
        self,
        kind: str,
        x: Rows,
        target: Beside | None,
        weight: Beside | None,
        features: Sequence[Any] | None,
        others: dict[str, Rows] | None = None,
    ) -> None:
        self.kind = kind
        self._x = x
        self._y = target
        self._w = weight
        self._others = others or {}
        for part in self._arrays():
            refuse_objects(part)
        if len(x.shape) != 2:
            raise DataError(f"X in {x.where} has shape {x.shape}, but must be 2-D.")
        if x.dtype.kind not in ("biufOUT" if isinstance(x, MemoryRows) else "biuf"):
            raise ColumnTypeError("X", x.where, x.dtype, "feature")
        self.n_rows = x.shape[0]
        if not self.n_rows:
            raise NoDataError(x.where, "it has no rows")
        for beside in (target, weight):
            self._check_beside(beside)
        if target is not None and weight is not None and target.is_the_same(weight):
            raise SameRoleError(target.name, x.where, "is both target and weight")
        self._choose(features)
        if isinstance(x, MemoryRows):
            self._text = text_columns(x.values, self._feature_columns, x.where)
        self.target = None if target is None else target.name
        self.weight = None if weight is None else weight.name
        self.nbytes = sum(int(np.prod(rows.shape)) * rows.dtype.itemsize for rows in self._arrays())

    @property
    def reading_bytes(self) -> int:
        return max(part.reading_bytes for part in self._arrays())

    def unpacked_in(self, directory: Path) -> MatrixDataset:
        dataset = copy.copy(self)
        dataset._unpack_dir = directory
        return dataset

    def _arrays(self) -> list[Rows]:
        beside = [b.rows for b in (self._y, self._w) if b is not None and b.rows is not None]
        return [self._x, *beside]

    def _check_beside(self, beside: Beside | None) -> None:
        if beside is None:
            return
        if beside.column is not None and not 0 <= beside.column < self._x.shape[1]:
            raise ParameterError(
                "target" if beside is self._y else "weight",
                beside.column,
                f"a column number of X, from 0 to {self._x.shape[1] - 1}",
            )
        if beside.rows is not None:
            if is_same_array(beside.rows, self._x):
                raise SameRoleError(beside.name, self._x.where, "is X, and also target or weight")
            shape = beside.rows.shape
            if shape not in ((self.n_rows,), (self.n_rows, 1)):
                raise DataError(
                    f"{beside.name} in {beside.rows.where} has shape {shape}, but X has {self.n_rows} rows: "
                    "it must have one value for each row."
                )
        if beside is self._w and beside.rows is not None and beside.rows.dtype.kind not in "biuf":
            raise ColumnTypeError(beside.name, beside.rows.where, beside.rows.dtype, "weight")

    def _choose(self, features: Sequence[Any] | None) -> None:
        """Choose the features: numbers select columns of X, names rename all columns that are left."""
        width = self._x.shape[1]
        taken = {b.column for b in (self._y, self._w) if b is not None and b.column is not None}
        left = [i for i in range(width) if i not in taken]
        self._places: dict[str, int] = {}
        self.feature_names = None
        if isinstance(features, AllBut):
            dropped = {self._dropped(name, width) for name in features}
            left = [i for i in left if i not in dropped]
        elif features is not None and all(isinstance(name, str) for name in features):
            if len(features) != len(left):
                raise ParameterError(
                    "features", list(features), f"{len(left)} names, one for each column of X"
                )
            self.feature_names = tuple(features)
            self._places = dict(zip(features, left, strict=True))
            if len(self._places) != len(left):
                raise DuplicateColumnError(first_twice(features), self._x.where, selected=True)
        elif features is not None:
            if not all(isinstance(i, (int, np.integer)) and -width <= i < width for i in features):
                raise ParameterError(
                    "features", list(features), f"a list of column numbers below {width}, or of names"
                )
            left = [int(i) % width for i in features]
            if len(set(left)) < len(left):
                raise ParameterError("features", list(features), "a list of distinct column numbers")
            if not taken.isdisjoint(left):
                raise ParameterError(
                    "features", list(features), "a list of columns without target and weight"
                )
        if not left:
            raise NoDataError(self._x.where, "no column is left for the features")
        self._columns = None if left == list(range(width)) else np.array(left, dtype=np.intp)
        self.n_features = len(left)

    def _dropped(self, name: str, width: int) -> int:
        """The number of a column of X to exclude."""
        if not name.isdecimal():
            raise NamelessColumnsError(self._x.where, f"exclude column {name!r}")
        if int(name) >= width:
            raise MissingColumnError(name, self._x.where, map(str, range(width)))
        return int(name)

    @property
    def _where(self) -> str:
        return self._x.where

    def _column_names(self) -> Sequence[str]:
        return [*self._places, *self._others]

    def _use_features(self, features: tuple[str, ...]) -> None:
        for name in features:
            if name not in self._places:
                raise ColumnTypeError(name, self._where, "of an array other than X", "feature")
        self._columns = np.array([self._places[name] for name in features], dtype=np.intp)
        if isinstance(self._x, MemoryRows):
            self._text = text_columns(self._x.values, self._feature_columns, self._where)

    def _edges(self, n: int) -> list[int]:
        return row_edges(self.first_row, self.n_rows, n)

    def _part(self, start: int, stop: int) -> MatrixDataset:
        part = super()._part(start, stop)
        assert isinstance(part, MatrixDataset)
        part._x = self._x.only(start, stop)
        part._y, part._w = (
            what if what is None or what.rows is None else replace(what, rows=what.rows.only(start, stop))
            for what in (self._y, self._w)
        )
        part._others = {name: rows.only(start, stop) for name, rows in self._others.items()}
        return part

    def _pieces(self, rows: int, span: Span, carry: tuple[str, ...]) -> Iterator[MatrixPiece]:
        stop = self._stop
        assert stop is not None
        step = min(max(rows, 1024), max(1024, PIECE_VALUES // self._x.shape[1]))
        with ExitStack() as stack:
            opened: dict[int, Reader] = {}
            others = [self._others[name] for name in carry if name in self._others]
            for part in [*self._arrays(), *others]:
                if id(part) not in opened:
                    opened[id(part)] = stack.enter_context(part.reader(self._unpack_dir))
            for first in range(span.start, stop, step):
                yield self._piece(opened, first, min(first + step, stop), carry)

    def _piece(self, opened: dict[int, Reader], start: int, stop: int, carry: tuple[str, ...]) -> MatrixPiece:
        x = opened[id(self._x)](start, stop)

        def beside(what: Beside | None) -> npt.NDArray[Any] | None:
            if what is None:
                return None
            if what.rows is None:
                return x[:, what.column]
            return opened[id(what.rows)](start, stop).reshape(len(x))

        others = {
            name: x[:, self._places[name]]
            if name in self._places
            else opened[id(self._others[name])](start, stop)
            for name in carry
        }
        names = (self.target or "", self.weight or "")
        return MatrixPiece(
            start,
            self._where,
            x,
            self._columns,
            beside(self._y),
            beside(self._w),
            names,
            others,
            self._coders,
        )

    @property
    def _feature_columns(self) -> list[int]:
        return list(range(self._x.shape[1])) if self._columns is None else self._columns.tolist()

    @property
    def text_features(self) -> tuple[int, ...]:
        return self._text

    def raw_columns(self, features: tuple[int, ...], start: int) -> Iterator[RawColumns]:
        return raw_columns_of(self._pieces(COUNTED_ROWS, Span(start, self._stop), ()), features, start)

    def _described(self) -> list[tuple[str, str]]:
        return [("from", self._x.where), ("types", str(self._x.dtype))]

    def fingerprint(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "kind": self.kind,
            "shape": list(self._x.shape),
            "dtype": str(self._x.dtype),
            "features": list(self.feature_names) if self.feature_names else None,
            "columns": None if self._columns is None else self._columns.tolist(),
            "target": self.target,
            "weight": self.weight,
        }
        files = {file.path: file for part in self._arrays() for file in part.files}
        found["files"] = [file.described() for file in files.values()]
        found["crc"] = [_checksum(part) for part in self._arrays() if isinstance(part, MemoryRows)]
        return found


def raw_columns_of(
    pieces: Iterable[MatrixPiece], features: tuple[int, ...], start: int
) -> Iterator[RawColumns]:
    """These features as they are in pieces, from row number `start` on."""
    for piece in pieces:
        begin = max(0, start - piece.first_row)
        if begin < piece.rows:
            weights = piece.weights(begin, piece.rows)
            columns = [column_of(piece.x[begin:, piece.place(f)], f, piece.where) for f in features]
            yield RawColumns(piece.first_row + begin, piece.where, columns, weights)


def _checksum(part: MemoryRows) -> int:
    """A checksum of a few thousand evenly spaced rows."""
    rows = np.linspace(0, part.shape[0] - 1, min(SAMPLED_ROWS, part.shape[0])).astype(np.intp)
    values = part.values[rows]
    if values.dtype.kind in "OT":
        return zlib.crc32(repr(values.tolist()).encode())
    return zlib.crc32(np.ascontiguousarray(values).tobytes())
