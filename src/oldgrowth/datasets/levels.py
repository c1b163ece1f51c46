"""Categorical features: the levels of a column, and the code of each.

A code is a whole number from 0 on, as float32; a missing value, or a level that is not known, is NaN. Values
decide, never the codes of a dictionary: every source is coded alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import ColumnTypeError, InfiniteLevelError, LevelKindError, RoundedLevelError
from .labels import type_class

MOST_LEVELS = 65_534
POOLED = "all others"  # the name of the level that stands for the rarest
NOT_THERE = np.float32(-1)  # the code of a value that must not occur

Level: TypeAlias = str | int | float


@dataclass(frozen=True)
class Levels:
    """The levels of a feature, in the order of their codes: all are text, or all are numbers.

    If `pooled`, one more code stands for every other level.
    """

    values: tuple[Level, ...]
    pooled: bool = False

    @property
    def count(self) -> int:
        """The number of codes."""
        return len(self.values) + self.pooled

    @property
    def names(self) -> list[str]:
        """The name of each code, for people."""
        return [str(value) for value in self.values] + [POOLED] * self.pooled

    @cached_property
    def is_text(self) -> bool | None:
        """Whether they are text; None without levels."""
        return isinstance(self.values[0], str) if self.values else None

    @cached_property
    def codes(self) -> dict[Level, int]:
        """The code of each level."""
        return {value: code for code, value in enumerate(self.values)}

    @property
    def other(self) -> float:
        """The code of a value that is not among them."""
        return len(self.values) if self.pooled else np.nan

    def __getstate__(self) -> dict[str, Any]:
        return {"values": self.values, "pooled": self.pooled}


# Of each feature; None for numbers.
FeatureLevels: TypeAlias = Sequence[Levels | None]


def counts_of(levels: FeatureLevels | None) -> tuple[int, ...]:
    """The number of levels of each feature, 0 for numbers; empty if no feature is categorical."""
    counts = tuple(0 if one is None else one.count for one in levels or ())
    return counts if any(counts) else ()


class LevelCoder:
    """Codes the values of one feature; `strictly`, a value that is not a level is `NOT_THERE`."""

    def __init__(self, levels: Levels, name: str | int, strictly: bool = False) -> None:
        self.levels = levels
        self._name = name
        self._other = NOT_THERE if strictly and not levels.pooled else np.float32(levels.other)
        self._last: tuple[pa.Array, npt.NDArray[np.float32]] | None = None

    def codes(self, column: pa.Array, where: str) -> npt.NDArray[np.float32]:
        places, distinct = told_apart(column)
        last = self._last
        if last is None or not last[0].equals(distinct):
            last = self._last = distinct, self._table(distinct, where)
        return last[1][places]

    def _table(self, distinct: pa.Array, where: str) -> npt.NDArray[np.float32]:
        """The code of each of the distinct values; the last one is that of missing values."""
        known, table = self.levels.codes, np.full(len(distinct) + 1, np.nan, dtype=np.float32)
        for place, value in enumerate(levels_in(distinct, self._name, where)):
            if value is not None:
                self._check_kind(value, where)
                table[place] = known.get(value, self._other)
        return table

    def _check_kind(self, value: Level, where: str) -> None:
        """Refuse numbers where text was learned, and the reverse."""
        if self.levels.is_text not in (None, isinstance(value, str)):
            raise LevelKindError(self._name, where, isinstance(value, str))

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_last": None}


def told_apart(column: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """For each row the place of its value among the distinct ones, -1 if it is missing; and these."""
    if str(column.type) == "string_view":
        column = column.cast(pa.large_string())
    if pa.types.is_float16(column.type) or pa.types.is_null(column.type):
        column = column.cast(pa.float64())
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    elif str(column.type.value_type) == "string_view":  # of which Arrow cannot take some
        values = column.dictionary.cast(pa.large_string())
        column = pa.DictionaryArray.from_arrays(column.indices, values)
    places = column.indices
    if places.null_count:
        places = places.cast(pa.int64()).fill_null(-1)
    return places.to_numpy(zero_copy_only=False).astype(np.int64, copy=False), column.dictionary


def levels_in(distinct: pa.Array, name: str | int, where: str) -> list[Level | None]:
    """Values as levels: None is missing; 1, 1.0 and True are one number."""
    try:
        values = distinct.to_pylist()
    except UnicodeDecodeError as error:
        kind = f"{distinct.type} with text that is not UTF-8"
        raise ColumnTypeError(name, where, kind, "feature") from error
    if type_class(distinct.type) == "text":
        return values
    return [_number(value, name, where) for value in values]


def _number(value: Any, name: str | int, where: str) -> int | float | None:
    if value is None or value != value:
        return None
    number = float(value) if not isinstance(value, int) else int(value)
    if isinstance(value, Decimal):
        if value == int(value):
            return int(value)
        if Decimal(repr(number)) != value:
            raise RoundedLevelError(name, value, where)
    if isinstance(number, float):
        if np.isinf(number):
            raise InfiniteLevelError(name, where)
        return int(number) if number.is_integer() else number
    return number


def column_of(values: npt.NDArray[Any], name: str | int, where: str) -> pa.Array:
    """A column of an array, which may hold objects."""
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8")
    try:
        return pa.array(values.tolist() if values.dtype.kind in "UT" else values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise ColumnTypeError(name, where, kinds_in(values), "feature") from error


def kinds_in(values: npt.NDArray[Any]) -> str:
    """What a column of objects holds."""
    kinds = sorted({type(value).__name__ for value in values.tolist() if value is not None})
    held = f" with {' and '.join(kinds[:5])}" if kinds else ""
    return f"{values.dtype}{held}"


def check_levels(levels: Levels) -> None:
    """Refuse levels that no column has: of two kinds, twice, or too many."""
    if levels.count > MOST_LEVELS or len(levels.codes) != len(levels.values):
        raise ValueError("levels occur twice, or are too many")
    if any(isinstance(value, str) != levels.is_text for value in levels.values):
        raise ValueError("levels are text and numbers")
