"""Converts and checks labels and weights from Arrow or NumPy, without a Python object for each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import ColumnTypeError, DataError, MissingLabelError, WeightError


@dataclass(frozen=True)
class CodedLabels:
    """Text labels: `labels[codes]` are the labels of the rows. They are Python strings, because NumPy strings
    lose trailing NULs."""

    codes: npt.NDArray[np.int32]
    labels: npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.codes)

    def decoded(self) -> npt.NDArray[Any]:
        return text_array(self.labels.tolist())[self.codes]


Labels: TypeAlias = npt.NDArray[Any] | CodedLabels


def text_array(labels: Sequence[str]) -> npt.NDArray[Any]:
    """Strings as an array: of NumPy's type, unless it would lose trailing NULs or waste much memory."""
    width = max(map(len, labels), default=0)
    wasteful = width * len(labels) > max(2**18, 16 * sum(map(len, labels)))
    if wasteful or any(label.endswith("\0") for label in labels):
        return objects(labels)
    return np.array(labels, dtype=np.str_)


def objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def kept_apart(y: Any) -> Any:
    """Convert a list of labels to an array that keeps different labels distinct. NumPy itself would merge 1
    and "1", "a" and "a\\0", and large integers by converting them to floats."""
    y = _listed(y)
    if not isinstance(y, list | tuple):
        return y
    if y and all(isinstance(value, str) for value in y):
        return text_array(y)  # NumPy would give all strings the width of the longest
    array = np.asarray(y)
    if array.ndim != 1:
        return y
    if array.dtype.kind == "U":
        other = next((value for value in y if not isinstance(value, str)), None)
        if other is not None:
            text = next(value for value in y if isinstance(value, str))
            raise DataError(
                f"The labels mix text and other types, such as {text!r} and {other!r}: use one type."
            )
        return text_array(y)
    if array.dtype.kind == "f":
        for value, rounded in zip(y, array.tolist(), strict=True):
            if value != rounded and isinstance(value, int | np.integer):
                raise DataError(
                    f"The label {value} would be rounded to {rounded:.0f}, because labels have different "
                    "types: use integers of one type, or text."
                )
    return array


def _listed(y: Any) -> Any:
    """Convert labels that need special care to a list: numbers of dtype object, strings and 128-bit integers
    of polars, and NumPy's StringDType, which scikit-learn does not support. Others stay unchanged."""
    if type(y).__module__.startswith("polars") and hasattr(y, "to_list"):
        kind = str(y.dtype)
        return y.to_list() if kind.startswith(("String", "Cat", "Enum", "Int128", "UInt128", "Obj")) else y
    if getattr(y, "ndim", 0) != 1 or not isinstance(getattr(y, "dtype", None), np.dtype):
        return y
    if y.dtype.kind == "T":
        return y.tolist()
    if y.dtype.kind == "O":
        numbers = bool | int | float | np.number | np.bool_
        values = y.tolist()
        if values and all(isinstance(value, numbers) for value in values):
            return values
    return y


_CLASSES = (
    ("whole", pa.types.is_integer),
    ("float", pa.types.is_floating),
    ("float", pa.types.is_decimal),
    ("bool", pa.types.is_boolean),
    ("text", pa.types.is_string),
    ("text", pa.types.is_large_string),
    ("text", lambda kind: str(kind) == "string_view"),  # unknown to older versions of pyarrow
    ("null", pa.types.is_null),
)


@lru_cache(maxsize=256)
def type_class(kind: pa.DataType) -> str:
    """The class of an Arrow type: "whole", "float", "bool", "text", "null" or "other"."""
    if pa.types.is_dictionary(kind):
        return type_class(kind.value_type)
    return next((name for name, test in _CLASSES if test(kind)), "other")


def join_labels(parts: Sequence[Labels]) -> Labels:
    if len(parts) == 1:
        return parts[0]
    coded = [part for part in parts if isinstance(part, CodedLabels)]
    if not coded:
        return _joined([part for part in parts if not isinstance(part, CodedLabels)])
    labels, places = np.unique(np.concatenate([part.labels for part in coded]), return_inverse=True)
    ends = np.cumsum([len(part.labels) for part in coded])
    codes = [
        places[end - len(part.labels) : end].astype(np.int32)[part.codes]
        for part, end in zip(coded, ends, strict=True)
    ]
    return CodedLabels(np.concatenate(codes), labels)


def _joined(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Concatenate numbers of several types; integers stay integers where NumPy would use floats."""
    if np.result_type(*{part.dtype for part in parts}).kind == "f" and all(
        p.dtype.kind in "iu" for p in parts
    ):
        low, high = min(int(part.min()) for part in parts), max(int(part.max()) for part in parts)
        dtype = whole_type(low, high)
        return np.concatenate([part.astype(dtype) for part in parts])
    return np.concatenate(parts)


def whole_type(low: int, high: int) -> np.dtype[Any]:
    """An integer type for a range of signed and unsigned numbers."""
    if high < 2**63:
        return np.dtype(np.int64)
    return np.dtype(np.uint64 if low >= 0 else object)


def labels_from_arrow(column: pa.Array, first_row: int, name: str, where: str) -> Labels:
    """Labels of an Arrow column; `first_row` is the number of its first row, for errors."""
    if column.null_count:
        raise MissingLabelError(first_row + first_true(column.is_null()), name, where)
    kind = type_class(column.type)
    if kind == "text":
        return _coded(column, first_row, name, where)
    if pa.types.is_dictionary(column.type):
        return labels_from_arrow(column.dictionary_decode(), first_row, name, where)
    if kind == "other":
        raise ColumnTypeError(name, where, column.type, "target")
    if kind == "float":
        return _finite(plain_floats(column), first_row, name, where)
    values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values


def labels_from_numpy(values: npt.NDArray[Any], first_row: int, name: str, where: str) -> Labels:
    """Labels of a NumPy array: integers and bools unchanged, floats as float64, text as codes."""
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    if values.dtype.kind in "biu":
        return values
    if values.dtype.kind == "f":
        return _finite(values.astype(np.float64), first_row, name, where)
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8")
    if values.dtype.kind == "U":
        labels, codes = np.unique(values, return_inverse=True)
        return CodedLabels(codes.astype(np.int32), labels.astype(object))
    if values.dtype.kind in "OT":
        try:
            return labels_from_arrow(pa.array(values, from_pandas=True), first_row, name, where)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise ColumnTypeError(name, where, f"object ({error})", "target") from error
    raise ColumnTypeError(name, where, values.dtype, "target")


def checked_weights(
    values: npt.NDArray[Any], first_row: int, name: str, where: str
) -> npt.NDArray[np.float64]:
    weights = np.ascontiguousarray(values, dtype=np.float64)
    good = np.isfinite(weights) & (weights >= 0)
    if not good.all():
        bad = int(np.argmin(good))
        raise WeightError(first_row + bad, name, where, float(weights[bad]))
    return weights


def weights_from_arrow(column: pa.Array, first_row: int, name: str, where: str) -> npt.NDArray[np.float64]:
    return checked_weights(plain_floats(column), first_row, name, where)


def plain_floats(column: pa.Array) -> npt.NDArray[np.float64]:
    """A column of numbers as float64, with NaN for null."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_decimal(column.type) or pa.types.is_null(column.type):
        column = column.cast(pa.float64())
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype == object:  # bools with nulls
        values = column.cast(pa.uint8()).to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=np.float64)


def first_true(mask: pa.Array) -> int:
    return int(np.argmax(mask.to_numpy(zero_copy_only=False)))


def _coded(column: pa.Array, first_row: int, name: str, where: str) -> CodedLabels:
    if str(column.type) == "string_view":
        column = column.cast(pa.large_string())
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    codes = column.indices.to_numpy(zero_copy_only=False)
    # A dictionary may contain labels that do not occur here: categories, or labels of other row groups.
    used = np.bincount(codes, minlength=len(column.dictionary)) > 0
    labels = column.dictionary.filter(pa.array(used))
    codes = (np.cumsum(used, dtype=np.int32) - 1).astype(np.int32)[codes]
    if labels.null_count:
        null = first_true(labels.is_null())
        raise MissingLabelError(first_row + int(np.argmax(codes == null)), name, where)
    try:
        return CodedLabels(codes, objects(labels.to_pylist()))
    except UnicodeDecodeError as error:
        raise ColumnTypeError(name, where, f"{column.type} with text that is not UTF-8", "target") from error


def _finite(
    values: npt.NDArray[np.float64], first_row: int, name: str, where: str
) -> npt.NDArray[np.float64]:
    good = np.isfinite(values)
    if not good.all():
        bad = int(np.argmin(good))
        what = "is missing" if np.isnan(values[bad]) else "is infinite"
        raise MissingLabelError(first_row + bad, name, where, what)
    return values
