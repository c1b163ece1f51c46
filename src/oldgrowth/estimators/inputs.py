"""Checks of arrays and data frames: scikit-learn's, with errors that name the column."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.utils import column_or_1d
from sklearn.utils.validation import _check_sample_weight

from ..checks import refuse_masked
from ..datasets.arguments import ELSEWHERE, library_of
from ..errors import DataError, NotNumbersError, OldgrowthError
from ..messages.surface import short
from ..messages.text import counted

_VALUES = re.compile(r"(:\s*array=.*?\.\s*(?=Reshape)|\n\[.*\]\s*)", re.DOTALL)  # printed by scikit-learn

_NOT_IN_NUMPY = ("Int128", "UInt128", "Null")  # types of polars

_TEXT, _MIXED = "text", "numbers and text"

_LENGTHS = re.compile(r"inconsistent numbers of samples: \[(\d+), (\d+)\]")


def refuse_other_sources(X: Any) -> None:
    """Refuse X that must first be opened as a dataset, or converted to an array."""
    refuse_masked("X", X)
    plain = isinstance(X, bool | int | float | complex | bytes | dict | set)
    if X is None or (plain and not hasattr(X, "shape")):
        raise DataError(
            f"X must be an array or a data frame with rows and columns, or a dataset; got {short(X)}."
        )
    if isinstance(X, str | PathLike):
        raise DataError(f"X is a path: open it first, as in open_dataset({str(X)!r}, target=...).")
    if callable(X) and not hasattr(X, "__array__"):
        raise DataError("X is a function: make a dataset of it first, as in open_dataset(function).")
    if type(X).__name__ == "LazyFrame":
        raise DataError(
            "X is a LazyFrame: make a dataset of it first, as in open_dataset(frame, target=...)."
        )
    library = library_of(X)
    if library in ELSEWHERE and "Frame" in type(X).__name__:
        raise DataError(f"X is a {library} {type(X).__name__}: {ELSEWHERE[library]}.")


@contextmanager
def explained(name: str, X: Any = None, takes_text: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Checks an argument inside the block: an error names all columns that do not hold numbers, nor text if
    that is taken."""
    try:
        yield
    except (OldgrowthError, NotFittedError):
        raise
    except Exception as error:
        if name == "X" and getattr(X, "ndim", None) == 1 and "Expected 2D" not in str(error):
            raise DataError(
                "X has one dimension, but must have rows and columns: a single row is [row], or "
                "X.iloc[[number]] of a data frame, and a single column X.to_frame()."
            ) from error
        bad = bad_columns(X)
        if takes_text():
            bad = {column: what for column, what in bad.items() if not _is_text(what)}
        if bad:
            raise NotNumbersError(bad, str(error), library_of(X)) from error
        if not isinstance(error, ValueError | TypeError):
            raise
        raise DataError(_words(name, error)) from error


def plain_numbers(X: Any) -> Any:
    """X with decimals, 128-bit integers and empty columns as floats, if it is a polars frame or Arrow table.

    Times are refused: polars would convert them to numbers.
    """
    polars, arrow = sys.modules.get("polars"), sys.modules.get("pyarrow")
    if polars is not None and isinstance(X, polars.DataFrame):
        if any(dtype.is_temporal() or dtype.is_nested() for dtype in X.dtypes):
            raise NotNumbersError(bad_columns(X), library="polars")
        odd = [name for name, dtype in X.schema.items() if dtype.is_decimal() or str(dtype) in _NOT_IN_NUMPY]
        return X.with_columns(polars.col(odd).cast(polars.Float64)) if odd else X
    if arrow is not None and isinstance(X, arrow.Table):
        odd = [field.name for field in X.schema if _is_odd(arrow, field.type)]
        for name in odd if len(set(X.column_names)) == X.num_columns else []:
            place = X.column_names.index(name)
            X = X.set_column(place, name, X.column(name).cast(arrow.float64()))
    return X


def _is_odd(arrow: Any, kind: Any) -> bool:
    return bool(arrow.types.is_decimal(kind) or arrow.types.is_null(kind))


def as_numbers(x: npt.NDArray[Any], X: Any) -> npt.NDArray[Any]:
    """The values of X as numbers, if they are objects such as decimals. Times are refused: NumPy would
    convert them to numbers."""
    bad = {} if x.dtype.kind in "biuf" else bad_columns(X)
    if bad or x.dtype.kind not in "biufO":
        raise NotNumbersError(bad or {0: str(x.dtype)}, library=library_of(X))
    return x.astype(np.float64) if x.dtype.kind == "O" else x


def check_target(y: Any, numeric: bool) -> None:
    """Refuse a target that does not have one value for each row, or has values of several kinds."""
    if y is None:
        return
    refuse_masked("y", y)
    if isinstance(y, str | bytes | dict | set) or not (
        hasattr(y, "__len__") or hasattr(y, "__array__") or hasattr(y, "__array_function__")
    ):
        name = ": name a column with open_dataset(frame, target=...)" if isinstance(y, str) else ""
        raise DataError(f"y must have a value for each row; got {short(y)}{name}.")
    with explained("y"):
        values = np.asarray(y)
    if values.dtype.kind in "mM":
        wanted = "numbers" if numeric else "labels that are whole numbers, text or bools"
        raise DataError(f"y holds times ({values.dtype}), but {_task(numeric)} needs {wanted}: convert them.")
    if values.dtype.kind == "f":
        _refuse_missing(values.reshape(-1), numeric)
    if values.ndim == 0 or values.dtype.kind not in "OUST":
        return
    if numeric:
        _refuse_text(values.reshape(-1), "y", "a regression needs numbers, and a classifier learns labels")
    elif values.dtype.kind == "O":
        _refuse_mixture(values.reshape(-1))
        _refuse_odd_labels(values.reshape(-1))


def _task(numeric: bool) -> str:
    return "a regression" if numeric else "a classification"


def check_length(y: Any, n_rows: int, name: str = "y") -> None:
    """Refuse targets or weights that do not have one value for each row."""
    found = np.shape(y)[0] if np.ndim(y) else 1
    if found != n_rows:
        raise DataError(f"X has {counted(n_rows, 'row')}, but {name} has {counted(found, 'value')}.")


def _check_weights(sample_weight: Any, n_rows: int) -> None:
    """Refuse weights that are missing, negative, infinite or too few."""
    refuse_masked("sample_weight", sample_weight)
    with explained("sample_weight"):
        given = np.asarray(sample_weight)
        if given.dtype.kind in "mM":
            raise DataError(f"sample_weight holds times ({given.dtype}): weights must be numbers.")
        _refuse_text(given.reshape(-1), "sample_weight", "weights must be numbers")
        weights = given.astype(np.float64)
    if weights.ndim != 1:
        return  # one number for all rows; scikit-learn refuses other shapes
    check_length(weights, n_rows, "sample_weight")
    good = np.isfinite(weights) & (weights >= 0)
    if not good.all():
        row = int(np.argmin(good))
        raise DataError(
            f"sample_weight is {weights[row]} in row {row}: weights must be finite and not negative."
        )


def row_weights(sample_weight: Any, n_rows: int) -> npt.NDArray[np.float64] | None:
    """The checked weights of `n_rows` rows; None if there are none."""
    if sample_weight is None:
        return None
    _check_weights(sample_weight, n_rows)
    with explained("sample_weight"):
        weights: npt.NDArray[np.float64] = _check_sample_weight(
            sample_weight, np.empty((n_rows, 0)), dtype=np.float64, ensure_non_negative=True
        )
    return weights


def refuse_with_a_dataset(y: Any, sample_weight: Any = None) -> None:
    for name, given in (("y", y), ("sample_weight", sample_weight)):
        if given is not None:
            raise DataError(f"{name} must not be given with a dataset, which has its own: see open_dataset.")


def given_targets(y: Any, what: str) -> Any:
    """The targets of rows to score, which must be given."""
    if y is None:
        raise DataError(f"y is missing: a score needs the {what} of the rows.")
    return y


def targets_to_score(
    y: Any, sample_weight: Any, n_rows: int, numeric: bool
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64] | None]:
    """The targets of rows to score and their weights, checked."""
    check_target(y, numeric)
    check_length(y, n_rows)
    weights = row_weights(sample_weight, n_rows)
    with explained("y"):
        values = column_or_1d(y)
        return values.astype(np.float64) if numeric else values, weights


def _refuse_missing(values: npt.NDArray[Any], numeric: bool) -> None:
    good = np.isfinite(values)
    if not good.all():
        row = int(np.argmin(good))
        what = "NaN" if np.isnan(values[row]) else "infinity"
        raise DataError(
            f"Input y contains {what} in row {row}: every row needs a {'value' if numeric else 'label'} "
            "to learn from."
        )


def _refuse_text(values: npt.NDArray[Any], name: str, why: str) -> None:
    for row, value in enumerate(values.tolist() if values.dtype.kind not in "biuf" else ()):
        if not _is_number(value):
            raise DataError(f"{name} holds {_kind(value)} ({short(value)} in row {row}): {why}.")


def _refuse_mixture(values: npt.NDArray[Any]) -> None:
    kinds: dict[str, int] = {}
    for row, value in enumerate(values.tolist()):
        kinds.setdefault(_kind(value), row)
    missing = kinds.pop("nothing", None)
    if missing is not None:
        raise DataError(f"The label in row {missing} of y is missing: every row needs a label to learn from.")
    if len(kinds) > 1:
        found = " and ".join(f"{kind} in row {row}" for kind, row in kinds.items())
        raise DataError(f"y holds labels of different kinds ({found}): make them all text or all numbers.")


def _kind(value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "nothing"
    if isinstance(value, str):
        return "text"
    return "numbers" if isinstance(value, bool | int | float | np.number | np.bool_) else type(value).__name__


def _refuse_odd_labels(values: npt.NDArray[Any]) -> None:
    """Refuse labels that NumPy cannot hold without changing them."""
    for row, value in enumerate(values.tolist()):
        if isinstance(value, int):
            raise DataError(
                f"y holds {short(value)} in row {row}, and no type of numbers holds all labels: "
                "whole numbers must be between -2**63 and 2**64 - 1; labels can also be text."
            )
        if not isinstance(value, str | None):
            raise DataError(
                f"y holds {short(value)} of type {type(value).__name__} in row {row}, which is not a label: "
                "labels are whole numbers, text or bools."
            )


def _is_number(value: Any) -> bool:
    if isinstance(value, str | bytes):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def bad_columns(X: Any) -> dict[Any, str]:
    """The columns that do not hold numbers, each with what it holds. Text is no matter where others are
    worse: it could be a category."""
    found = {}
    for name, column in _columns(X):
        what = _what_else(column)
        if what:
            found[name] = what
    return {name: what for name, what in found.items() if not _is_text(what)} or found


def _is_text(what: str) -> bool:
    return what.startswith(f"{_TEXT}:")


def _columns(X: Any) -> Iterator[tuple[Any, Any]]:
    if hasattr(X, "iloc") and hasattr(X, "columns"):  # pandas
        yield from ((name, X.iloc[:, j]) for j, name in enumerate(X.columns))
    elif hasattr(X, "columns") and hasattr(X, "get_column"):  # polars
        yield from ((name, X.get_column(name)) for name in X.columns)
    elif hasattr(X, "column_names"):  # Arrow
        yield from ((name, X.column(i)) for i, name in enumerate(X.column_names))
    else:
        try:
            values = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
        except ValueError:  # rows of different lengths
            return
        if values.ndim == 2:
            yield from ((j, values[:, j]) for j in range(values.shape[1]))


def _what_else(column: Any) -> str:
    """What a column holds that is not a number; empty if it holds only numbers."""
    dtype = getattr(column, "dtype", getattr(column, "type", None))
    try:
        values = np.asarray(column)
    except Exception:  # noqa: BLE001 - any library may fail, and the type is enough
        return str(dtype)
    if values.dtype.kind in "biuf" and values.ndim == 1:
        return ""
    if values.dtype.kind in "OUST" and values.ndim == 1:
        for row, value in enumerate(values.tolist()):
            if value is not None and not _is_number(value):
                kind = _kind(value)
                if kind == "text":
                    kind = _MIXED if any(_kind(one) == "numbers" for one in values.tolist()) else _TEXT
                return f"{kind}: {short(value)} in row {row}"
        return ""
    categories = getattr(dtype, "categories", None)  # of pandas
    return str(dtype) if categories is None else f"category of {categories.dtype}"


def _words(name: str, error: Exception) -> str:
    """The message without the values that scikit-learn prints."""
    text = str(error)
    if "inhomogeneous" in text:
        return f"{name} has rows of different lengths: every row must have a value for each column."
    if lengths := _LENGTHS.search(text):
        return f"X has {counted(int(lengths[1]), 'row')}, but y has {counted(int(lengths[2]), 'value')}."
    if "at least one array or dtype" in text:
        return f"{name} has no columns."
    text = " ".join(_VALUES.sub(". ", text).split()).rstrip(".:! ")
    return f"{text}." if name == "X" or re.search(rf"\b{name}\b", text) else f"{name}: {text}."
