"""Errors about categorical features."""

from __future__ import annotations

from collections.abc import Sequence

from ..messages.surface import Say, listed
from ..messages.text import human_bytes, size_setting
from .base import DataError


def _hold_text(columns: Sequence[object], where: str) -> str:
    if len(columns) == 1:
        return f"Column {columns[0]!r} of {where} holds text"
    return f"Columns {listed(columns)} of {where} hold text"


class TextColumnsError(DataError):
    """Features hold text, but are not to be categories."""

    def __init__(self, columns: Sequence[object], where: str, why: str = "") -> None:
        def message(say: Say) -> str:
            way = say("categorical_features", "from_dtype")
            them = "it as a category" if len(columns) == 1 else "them as categories"
            found, others = _hold_text(columns, where), f"select other columns with {say('features')}"
            return f"{found}{why}: {way} takes {them}; or {others}."

        super().__init__(message)


class LevelKindError(DataError):
    """A categorical feature held text in training and holds numbers now, or the reverse."""

    def __init__(self, column: object, where: str, is_text: bool) -> None:
        kinds = ("text", "numbers") if is_text else ("numbers", "text")
        super().__init__(
            f"Column {column!r} of {where} holds {kinds[0]}, but the levels of this feature are {kinds[1]}: "
            "1 and '1' are different levels. Convert it."
        )


class NumbersExpectedError(DataError):
    """A feature was learned as numbers, but holds text now."""

    def __init__(self, columns: Sequence[object], where: str) -> None:
        one = len(columns) == 1
        begin = (
            f"Column {columns[0]!r} of {where} holds" if one else f"Columns {listed(columns)} of {where} hold"
        )
        super().__init__(
            f"{begin} text, but the forest learned numbers there: convert {'it' if one else 'them'}."
        )


class LateTextError(DataError):
    """A feature of a callable holds text, but the batch by which types are known has none."""

    def __init__(self, column: object, where: str) -> None:
        super().__init__(
            lambda say: (
                f"Column {column!r} of {where} holds text, but the first batch has none there. If it is a "
                f"category, name it for training with {say('categorical_features', [column])}, or begin "
                "with a batch that has its text; otherwise convert it."
            )
        )


class DifferentLevelKindsError(DataError):
    """A categorical feature holds text in some rows and numbers in others."""

    def __init__(self, column: object, where: str) -> None:
        super().__init__(
            f"Column {column!r} of {where} holds text in some rows and numbers in others: 1 and '1' are "
            "different levels. Make all of them text, or all numbers."
        )


class InfiniteLevelError(DataError):
    """A categorical feature of numbers holds infinity."""

    def __init__(self, column: object, where: str) -> None:
        super().__init__(f"Column {column!r} of {where} holds infinity, which is no level of a category.")


class SameLevelError(DataError):
    """Two levels of a categorical feature differ as text but are the same number."""

    def __init__(self, column: object, level: str, other: str, where: str) -> None:
        super().__init__(
            lambda say: (
                f"The levels {level!r} and {other!r} of the categorical feature {column!r} are the same "
                f"number ({where}). To keep them distinct, store the column as text, or for CSV files give "
                f"{say('types', {column: 'string'})}."
            )
        )


class RoundedLevelError(DataError):
    """A level is a decimal that float64 does not hold."""

    def __init__(self, column: object, level: object, where: str) -> None:
        super().__init__(
            f"Column {column!r} of {where} holds {level}, which is rounded as a number, so that levels could "
            "become one: store the column as text."
        )


class NotCategoricalError(DataError):
    """Features of this kind of data cannot be categories."""

    def __init__(self, kind: str) -> None:
        super().__init__(
            lambda say: (
                f"The features of a {kind} dataset are numbers, not categories: fit the forest with "
                f"{say('categorical_features', None)}."
            )
        )


class TooManyLevelsError(DataError):
    """The levels of a feature do not fit in memory."""

    def __init__(self, column: object, levels: int, rows: int, taken: int, least: int) -> None:
        self.least = least
        super().__init__(
            lambda say: (
                f"memory_limit is too low: the categorical feature {column!r} has {levels:,} levels in its "
                f"first {rows:,} rows, which take {human_bytes(taken)}. A column with a different value in "
                f"nearly every row is an id: select other columns with {say('features')}, or raise the limit "
                f"to at least memory_limit={size_setting(least)!r}."
            )
        )
