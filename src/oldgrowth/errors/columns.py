"""Errors of columns, labels, weights and batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from ..messages.surface import Say, difference, listed
from .base import DataError

_MOST_CORRECTED = 3  # names that are not there for which those that are there are searched


_MOST_COMPARED = 2_000  # names that one is compared with


def _nearest(text: str, names: Sequence[str]) -> list[str]:
    """Names like this one, among those of about its length; each comparison takes time."""
    likely = [name for name in names if abs(len(name) - len(text)) <= 2 + len(text) // 3]
    likely.sort(key=lambda name: name[:1] != text[:1])
    return get_close_matches(text, likely[:_MOST_COMPARED], n=3)


class MissingColumnError(DataError):
    """Columns were asked for that are not there."""

    def __init__(
        self, wanted: object | Sequence[object], where: str, columns: Iterable[object], what: str = "column"
    ) -> None:
        missing = list(wanted) if isinstance(wanted, list | tuple) else [wanted]
        found = list(columns)
        names = [name for name in found if isinstance(name, str)]
        texts = [str(name) for name in missing[:_MOST_CORRECTED]]
        words = [name for name in missing[:_MOST_CORRECTED] if isinstance(name, str) and not name.isdecimal()]
        close = [name for text in words for name in _nearest(text.strip(), names)]
        close += [name for name in names if name.strip() in texts and name not in close]
        near = " or ".join(repr(name) for name in dict.fromkeys(close))
        hint = f"Its {what}s are {listed(found)}."
        if close:
            hint = f"Did you mean {near}{difference(missing, close)}?"
        nouns = what if len(missing) == 1 else f"{what}s"
        super().__init__(f"{where} has no {nouns} {listed(missing)}. {hint}")


class NoMemberError(DataError):
    """A file of several arrays in which none is called X."""

    def __init__(self, file: str, what: str, members: Iterable[str]) -> None:
        names = list(members)
        likely = names[0] if names else "X"
        super().__init__(
            lambda say: (
                f"{file} has no {what} 'X' with the rows. Its {what}s are {listed(names)}: name the one that "
                f"has the rows, as in {say('features', likely)}."
            )
        )


class NamelessColumnsError(DataError):
    """Columns were asked for by name where there are no names."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(
            lambda say: (
                f"The columns of {where} have no names, so {what} is not possible: give the names of all "
                f"columns with {say('features')}."
            )
        )


class DuplicateColumnError(DataError):
    """Two columns of the same name, or one column in two roles."""

    def __init__(self, column: object, where: str, what: str = "occurs more than once") -> None:
        super().__init__(
            lambda say: (
                f"Column {column!r} of {where} {what}: rename it or leave it out with {say('features')}."
            )
        )


class SameRoleError(DataError):
    """One column as target and as weight, or as one of them and a feature."""

    def __init__(self, column: object, where: str, what: str) -> None:
        super().__init__(f"Column {column!r} of {where} {what}: a column can have one role only.")


class ColumnTypeError(DataError):
    """Columns whose type cannot be a feature, a target or a weight; `others` are more of the same role."""

    def __init__(
        self, column: object, where: str, found: object, role: str, others: Mapping[Any, object] | None = None
    ) -> None:
        columns = {column: found, **(others or {})}
        if len(columns) == 1:
            begin = f"Column {column!r} of {where} has the type {found} and cannot be a {role}"
        else:
            names = [f"{name!r} ({kind})" for name, kind in columns.items()]
            more = f" and {len(names) - 20:,} more" if len(names) > 20 else ""
            begin = f"{len(names)} columns of {where} cannot be {role}s: {', '.join(names[:20])}{more}"
        them = "it" if len(columns) == 1 else "them"

        def message(say: Say) -> str:
            wanted = {
                "feature": f"features must be numbers or bools: encode {them}, or choose others with "
                f"{say('features')}",
                "target": "a target must hold numbers, bools or strings, all of one kind",
                "weight": "weights must be numbers",
            }
            return f"{begin}{':' if len(columns) == 1 else '.'} {wanted[role]}."

        super().__init__(message)


class NotNumbersError(DataError, TypeError):
    """Columns of an array or a data frame that are not numbers; `columns` says what each holds."""

    def __init__(self, columns: Mapping[Any, str], reason: str = "") -> None:
        names = [f"{name!r} ({what})" for name, what in columns.items()]
        more = f" and {len(names) - 20:,} more" if len(names) > 20 else ""
        complex_numbers = any("complex" in what for what in columns.values())
        begin = "Complex data not supported. " if complex_numbers else ""
        why = f" ({reason})" if "argument must be" in reason else ""
        super().__init__(
            f"{begin}{'Columns' if len(names) > 1 else 'Column'} {', '.join(names[:20])}{more} of X "
            f"{'are' if len(names) > 1 else 'is'} not of numbers or bools: encode text as numbers, "
            f"and leave out the rest{why}."
        )


class DifferentFilesError(DataError):
    """Files of one dataset that do not have the same columns."""

    def __init__(self, file: str, column: str, what: str, first: str) -> None:
        super().__init__(
            f"The files of a dataset must have the same columns, but column {column!r} of {file} "
            f"{what} {first}."
        )


class ChangedSourceError(DataError):
    """A source is not what it was when it was opened or first read."""

    def __init__(self, where: str, what: str) -> None:
        source = f"The {where.removeprefix('the ')}" if where.startswith("the ") else where
        super().__init__(
            f"{source} changed since the dataset was opened: {what}. Do not write to it while "
            "it is used; open it anew."
        )


class MissingLabelError(DataError):
    """A row without a label, or with one that is no finite number."""

    def __init__(self, row: int, column: object, where: str, what: str = "is missing") -> None:
        super().__init__(
            f"The label in row {row}, column {column}, of {where} {what}: every row "
            "needs a label to learn from."
        )


class SameNumberError(DataError):
    """Two labels that differ as text and are the same number."""

    def __init__(self, column: str, label: str, other: str, row: int, where: str) -> None:
        same = "truth value" if other.strip().lower() in ("true", "false") else "number"
        super().__init__(
            lambda say: (
                f"The labels {label!r} and {other!r} of column {column!r} are the same {same} (row {row} of "
                f"{where}): to keep them apart have the column as text, in CSV with "
                f"{say('types', {column: 'string'})}."
            )
        )


class TooManyLabelsError(DataError):
    """A target with so many labels that they do not fit memory."""

    def __init__(self, column: str, labels: int, rows: int, taken: int, least: int) -> None:
        self.least = least
        megabytes = -(-least // 10**6)
        super().__init__(
            f"memory_limit is too low: the target {column!r} has {labels:,} different labels in its first "
            f"{rows:,} rows, which take {taken / 1e6:,.0f} MB. A column with another value in nearly every "
            "row is an id, not a class: choose another target. If all of these are classes, at least "
            f"{megabytes:,} MB are needed here (memory_limit='{megabytes}MB')."
        )


class WeightError(DataError):
    """A weight that is missing, negative or infinite."""

    def __init__(self, row: int, column: object, where: str, value: float) -> None:
        super().__init__(
            f"The weight in row {row}, column {column}, of {where} is {value}: weights must be "
            "finite and not negative."
        )


class BatchError(DataError):
    """A batch of a callable that does not fit the others."""

    def __init__(self, number: int, what: str) -> None:
        super().__init__(
            f"Batch {number} of the callable {what}: each batch must be X, (X, y) or "
            "(X, y, weight), all alike."
        )


class FailedBatchError(DataError):
    """The iterator of a callable raised an error."""

    def __init__(self, number: int, error: BaseException) -> None:
        super().__init__(f"The callable failed at batch {number}: {type(error).__name__}: {error}.")


class OnceOnlyError(DataError):
    """A source that can be read only once."""

    def __init__(self, source: str) -> None:
        super().__init__(
            f"{source} can be read only once, but training reads the data several times: give a file, or a "
            "callable that returns a fresh iterator of (X, y) batches each time."
        )
