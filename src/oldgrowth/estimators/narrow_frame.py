"""Data frames as arrays of at most 4 bytes per value, where NumPy would make a wider copy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt


def narrow_frame(x: Any) -> npt.NDArray[np.generic] | None:
    """The numbers of a pandas or polars frame as one array; None if NumPy needs no wider copy.

    Also None for a frame that does not hold only numbers, and for anything else.
    """
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(x, pandas.DataFrame):
        return _narrow_pandas(x)
    if polars is not None and isinstance(x, polars.DataFrame):
        return _narrow_polars(x)
    return None


def _narrow_pandas(frame: Any) -> npt.NDArray[np.generic] | None:
    if 0 in frame.shape or not all(map(_is_number, frame.dtypes)) or _is_one_block(frame):
        return None
    dtype = _narrowest([d if isinstance(d, np.dtype) else np.dtype(np.float32) for d in frame.dtypes])

    def column(j: int) -> npt.NDArray[np.generic]:
        values = frame.iloc[:, j]
        plain = isinstance(values.dtype, np.dtype)
        numbers: npt.NDArray[np.generic] = (
            values.to_numpy() if plain else values.to_numpy(dtype=np.float32, na_value=np.nan)
        )
        return numbers

    return _filled(frame.shape, dtype, column)


def _is_number(dtype: Any) -> bool:
    """Whether a pandas type holds real numbers or booleans, one for each row."""
    sparse_or_categories = hasattr(dtype, "subtype") or hasattr(dtype, "categories")
    return getattr(dtype, "kind", "O") in "biuf" and not sparse_or_categories


def _is_one_block(frame: Any) -> bool:
    """Whether the frame is one block of memory, which NumPy does not copy."""
    first = frame.iloc[:, 0]
    return isinstance(first.dtype, np.dtype) and np.shares_memory(
        frame.iloc[:1].to_numpy(), first.to_numpy()[:1]
    )


def _narrow_polars(frame: Any) -> npt.NDArray[np.generic] | None:
    import polars as pl

    numbers = all(d.is_integer() or d.is_float() or d == pl.Boolean for d in frame.dtypes)
    if 0 in frame.shape or not numbers or _can_be_viewed(frame):
        return None
    with_missing = any(column.null_count() for column in frame.iter_columns())
    numpy_types = [column[:1].to_numpy().dtype for column in frame.iter_columns()]
    dtype = _narrowest(numpy_types + [np.dtype(np.float32)] * with_missing)
    return _filled(frame.shape, dtype, lambda j: frame.to_series(j).to_numpy())


def _can_be_viewed(frame: Any) -> bool:
    try:
        frame.to_numpy(allow_copy=False)
    except RuntimeError:
        return False
    return True


def _narrowest(dtypes: list[np.dtype[Any]]) -> np.dtype[Any]:
    """A common type, at most float32, in which the forest compares values."""
    common = np.result_type(*set(dtypes))
    return common if common.itemsize <= 4 else np.dtype(np.float32)


def _filled(
    shape: tuple[int, int], dtype: np.dtype[Any], column: Callable[[int], npt.NDArray[np.generic]]
) -> npt.NDArray[np.generic]:
    array = np.empty(shape, dtype, order="F")
    with np.errstate(over="ignore"):
        for j in range(shape[1]):
            array[:, j] = column(j)
    return array
