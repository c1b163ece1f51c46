"""Learns the levels of categorical features, in the order of the rows, before anything else is read.

What is learned of rows and of those that follow merges into what is learned of both at once: how rows are
cut into partitions does not show in the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import DifferentLevelKindsError, SameLevelError, TooManyLevelsError
from ..messages.log import warn
from ..messages.warnings import DateTextWarning, IdColumnWarning, NumericTextWarning, PooledLevelsWarning
from .labels import type_class
from .levels import MOST_LEVELS, Level, Levels, levels_in, told_apart

# Bytes of a level beside its text: Python's object, its place among all, its number of rows.
_BESIDE_TEXT = 200
_BYTES_PER_CHARACTER = 4
# Rows from which a level in every row is no accident.
_ID_ROWS = 64
# Share of rows with numbers above which text is taken for numbers that were read as text.
_MOSTLY = 0.9
_DATE = re.compile(
    r"\s*(\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.](\d{4}|\d\d))([ T]\d\d?:\d\d.{0,20})?\s*"
)
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")


@dataclass(frozen=True)
class LevelLimit:
    """How many bytes levels may take, within a limit on memory."""

    most_bytes: int
    memory: int

    def needed(self, taken: int) -> int:
        """The limit on memory under which levels may take so many bytes."""
        return self.memory + max(0, taken - self.most_bytes)


@dataclass(frozen=True)
class RawColumns:
    """Consecutive rows of some columns, and their weights.

    `odd` has, for numbers that are text in the source, the text of those that it alone may tell apart.
    """

    first_row: int
    where: str
    columns: list[pa.Array]
    weights: npt.NDArray[np.float64] | None
    odd: Sequence[pa.Array | None] = ()

    @property
    def end(self) -> int:
        return self.first_row + len(self.columns[0])


class HasColumns(Protocol):
    """A dataset, as far as levels are learned from it."""

    first_row: int

    @property
    def feature_names(self) -> tuple[str, ...] | None: ...
    def raw_columns(self, features: tuple[int, ...], start: int) -> Iterable[RawColumns]: ...


class CountedLevels:
    """The levels of one feature in the order of their first rows, each with its number of rows."""

    def __init__(self, name: str | int) -> None:
        self.name = name
        self.rows: dict[Level, int] = {}
        self.odd: dict[Level, str] = {}  # how levels were written, if not in the usual way
        self.is_text: bool | None = None
        self.bytes = 0

    def add(self, part: RawColumns, column: pa.Array, odd: pa.Array | None = None) -> None:
        places, distinct = told_apart(column)
        if self.odd or (odd is not None and odd.null_count < len(odd)):
            odd = pa.nulls(len(column), pa.string()) if odd is None else odd
            self._check_written(places, levels_in(distinct, self.name, part.where), odd, part.where)
        if part.weights is not None:
            places = places[part.weights > 0]
        n = len(distinct)
        counts = np.bincount(places + 1, minlength=n + 1)[1:]
        first = np.empty(n + 1, dtype=np.int64)
        first[places[::-1]] = np.arange(len(places))[::-1]  # of several rows, the first is written last
        used = np.flatnonzero(counts)
        used = used[np.argsort(first[used])]
        levels = levels_in(distinct.take(pa.array(used)), self.name, part.where)
        if any(level is not None for level in levels):
            self._agree(type_class(column.type) == "text", part.where)
        self._count(zip(levels, counts[used].tolist(), strict=True))

    def merge(self, following: CountedLevels, where: str) -> None:
        """Add what was counted of rows that follow."""
        if following.is_text is not None:
            self._agree(following.is_text, where)
        for level in self.odd.keys() & following.rows.keys():
            self._write(level, following.odd.get(level, str(level)), where)
        for level, text in following.odd.items():
            self._write(level, text, where)
        self._count(following.rows.items())

    def _check_written(
        self, places: npt.NDArray[np.int64], levels: list[Level | None], odd: pa.Array, where: str
    ) -> None:
        """Refuse two texts that are one number: 007 and 7, or whole numbers that float64 rounds."""
        written, texts = told_apart(odd)
        plain = {levels[place] for place in np.unique(places[written < 0]).tolist() if place >= 0}
        for level in plain & self.odd.keys():
            self._write(level, str(level), where)
        for place, text in enumerate(texts.to_pylist()):
            level = levels[places[np.flatnonzero(written == place)[0]]]
            if level in plain:
                raise SameLevelError(self.name, text, str(level), where)
            self._write(level, text, where)

    def _write(self, level: Level | None, text: str, where: str) -> None:
        """Note how a level is written in rows that follow."""
        if level is None:
            return
        before = self.odd.get(level, str(level) if level in self.rows else text)
        if before != text:
            raise SameLevelError(self.name, before, text, where)
        if level not in self.odd:
            self.bytes += _BESIDE_TEXT + _BYTES_PER_CHARACTER * len(text)
            self.odd[level] = text

    def _agree(self, is_text: bool, where: str) -> None:
        if self.is_text not in (None, is_text):
            raise DifferentLevelKindsError(self.name, where)
        self.is_text = is_text

    def _count(self, counted: Iterable[tuple[Level | None, int]]) -> None:
        for level, rows in counted:
            if level is None:
                continue
            if level not in self.rows:
                text = len(level) if isinstance(level, str) else 0
                self.bytes += _BESIDE_TEXT + _BYTES_PER_CHARACTER * text
            self.rows[level] = self.rows.get(level, 0) + rows

    def levels(self) -> Levels:
        """The final levels: of too many, the rarest become one."""
        found = list(self.rows)
        if len(found) <= MOST_LEVELS:
            return Levels(tuple(found))
        rows = np.fromiter(self.rows.values(), dtype=np.int64, count=len(found))
        kept = np.sort(np.argsort(-rows, kind="stable")[: MOST_LEVELS - 1])
        warn(PooledLevelsWarning(self.name, len(found), MOST_LEVELS, int(rows.sum() - rows[kept].sum())))
        return Levels(tuple(found[place] for place in kept.tolist()), pooled=True)

    @property
    def is_id(self) -> bool:
        """Whether no two rows have the same level."""
        return len(self.rows) >= _ID_ROWS and len(self.rows) == sum(self.rows.values())

    @property
    def is_numeric_text(self) -> bool:
        """Whether it is text of which nearly all is numbers."""
        return self._is_mostly(_NUMBER)

    @property
    def is_date_text(self) -> bool:
        """Whether it is text of which nearly all is dates."""
        return self._is_mostly(_DATE)

    def _is_mostly(self, pattern: re.Pattern[str]) -> bool:
        if not self.is_text:
            return False
        matching = sum(rows for level, rows in self.rows.items() if pattern.fullmatch(str(level)))
        return matching > _MOSTLY * sum(self.rows.values())

    @property
    def first_text(self) -> str | None:
        """The first level that is no number."""
        return next((str(level) for level in self.rows if not _NUMBER.fullmatch(str(level))), None)


class LearnedLevels:
    """The levels of the categorical features, learned from the rows before number `end`."""

    def __init__(self, dataset: HasColumns, features: tuple[int, ...]) -> None:
        names = dataset.feature_names
        self.features = features
        self.counted = [CountedLevels(place if names is None else names[place]) for place in features]
        self.end = dataset.first_row
        self.limit: LevelLimit | None = None

    def learn(self, dataset: HasColumns) -> Iterable[RawColumns]:
        """Read all rows from `end` on; yields each part when it is learned."""
        for part in dataset.raw_columns(self.features, self.end):
            self.add(part)
            yield part

    def add(self, part: RawColumns) -> None:
        """Learn the levels of the rows that follow."""
        odd = part.odd or [None] * len(part.columns)
        for counted, column, texts in zip(self.counted, part.columns, odd, strict=True):
            counted.add(part, column, texts)
        self.end = part.end
        self.check()

    def check(self) -> None:
        """Refuse levels that would fill the memory: they are ids of single rows."""
        taken = sum(counted.bytes for counted in self.counted)
        if self.limit is not None and taken > self.limit.most_bytes:
            most = max(self.counted, key=lambda counted: counted.bytes)
            needed = self.limit.needed(2 * taken)
            raise TooManyLevelsError(most.name, len(most.rows), self.end, taken, needed)

    def merge(self, following: LearnedLevels) -> None:
        """Add what was learned of rows that follow."""
        for counted, others in zip(self.counted, following.counted, strict=True):
            counted.merge(others, f"rows {self.end} to {following.end - 1}")
        self.end = following.end
        self.check()

    def finish(self, n_features: int) -> tuple[Levels | None, ...]:
        """The levels of all features, with warnings of what is odd."""
        levels: list[Levels | None] = [None] * n_features
        ids = {c.name: "a level of its own in every row" for c in self.counted if c.is_id}
        if ids:
            warn(IdColumnWarning(ids))
        numbers = {c.name: c.first_text for c in self.counted if c.is_numeric_text}
        if numbers:
            warn(NumericTextWarning(numbers))
        dates = [c.name for c in self.counted if c.is_date_text]
        if dates:
            warn(DateTextWarning(dates))
        for place, counted in zip(self.features, self.counted, strict=True):
            levels[place] = counted.levels()
        return tuple(levels)

    def state(self) -> dict[str, Any]:
        """Values that JSON can represent, from which `restore` makes the same."""
        columns = [
            [c.is_text, list(c.rows), list(c.rows.values()), list(c.odd.items())] for c in self.counted
        ]
        return {"end": self.end, "features": list(self.features), "columns": columns}

    def restore(self, state: dict[str, Any]) -> None:
        if tuple(state["features"]) != self.features or not _is_whole(state["end"]):
            raise ValueError("other features")
        for counted, (is_text, levels, rows, odd) in zip(self.counted, state["columns"], strict=True):
            if len(set(levels)) != len(levels) or not all(map(_is_whole, rows)):
                raise ValueError("a level twice, or no number of rows")
            if any(isinstance(level, str) != is_text for level in levels):
                raise ValueError("levels of two kinds")
            counted.is_text = is_text
            counted._count(zip(levels, rows, strict=True))
            counted.odd = {level: str(text) for level, text in odd}
        self.end = state["end"]

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"limit": None}  # which holds for this process


def _is_whole(number: Any) -> bool:
    return type(number) is int and 0 <= number < 2**63
