"""Errors about columns, labels, weights and batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from ..messages.surface import Say, difference, in_python, listed, name_in
from ..messages.text import capitalized, counted, human_bytes, size_setting
from .base import DataError
from .times import way_with_times

_MOST_CORRECTED = 3  # missing names for which similar ones are suggested
_MOST_COMPARED = 2_000  # existing names that a missing one is compared with


def _nearest(text: str, names: Sequence[str]) -> list[str]:
    """Similar names, searched among those of about the same length, because comparisons are slow."""
    likely = [name for name in names if abs(len(name) - len(text)) <= 2 + len(text) // 3]
    likely.sort(key=lambda name: name[:1] != text[:1])
    same = [name for name in likely if name.casefold() == text.casefold()]
    return same or get_close_matches(text, likely[:_MOST_COMPARED], n=3)


class NoTargetError(DataError):
    """A dataset without a target is used for training or for a score."""

    def __init__(self, way: str) -> None:
        super().__init__(f"The dataset has no target: {way}.")


class MissingColumnError(DataError):
    """Requested columns do not exist."""

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
    """A file of several arrays has none named X, and `features` names none of them."""

    def __init__(self, file: str, what: str, members: Iterable[str]) -> None:
        names = list(members)
        likely = names[0] if names else "X"
        super().__init__(
            lambda say: (
                f"{file} has no {what} 'X'. Its {what}s are {listed(names)}: name the one that holds the "
                f"rows, as in {say('features', likely)}."
            )
        )


class NamelessColumnsError(DataError):
    """Columns were requested by name from a source without column names."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(
            lambda say: (
                f"Cannot {what}: the columns of {where} have no names. Name all of them with "
                f"{say('features')}."
            )
        )


class DuplicateColumnError(DataError):
    """Two columns have the same name, or a column is selected twice."""

    def __init__(self, column: object, where: str, selected: bool = False) -> None:
        def message(say: Say) -> str:
            if selected:
                twice = f"is named twice in {name_in(say, 'features')}"
                return f"Column {column!r} of {where} {twice}: name it once."
            return (
                f"Column {column!r} of {where} occurs more than once: rename it, or exclude it with "
                f"{say('features')}."
            )

        super().__init__(message)


class MaskedValuesError(DataError):
    """Values of a masked array are masked."""

    def __init__(self, name: str, masked: int) -> None:
        super().__init__(
            f"{name} is a masked array with {counted(masked, 'masked value')}, which would be used like "
            "others. Select rows without them, or make those of features missing values: "
            "X.astype(float).filled(numpy.nan)."
        )


class SameRoleError(DataError):
    """A column is used in two roles: target, weight or feature."""

    def __init__(self, column: object, where: str, what: str) -> None:
        super().__init__(f"Column {column!r} of {where} {what}: a column can have only one role.")


class ColumnTypeError(DataError):
    """Columns have a type that their role does not allow; `others` are further columns of that role."""

    def __init__(
        self, column: object, where: str, found: object, role: str, others: Mapping[Any, object] | None = None
    ) -> None:
        columns = {column: found, **(others or {})}
        if len(columns) == 1:
            begin = f"Column {column!r} of {where} has type {found} and cannot be a {role}"
        else:
            names = [f"{name!r} ({kind})" for name, kind in columns.items()]
            more = f" and {len(names) - 20:,} more" if len(names) > 20 else ""
            begin = f"{len(names)} columns of {where} cannot be {role}s: {', '.join(names[:20])}{more}"
        them = "it" if len(columns) == 1 else "them"

        def message(say: Say) -> str:
            wanted = {
                "feature": f"features must be numbers, bools or text. Encode {them}, or select other columns "
                f"with {say('features')}",
                "target": "a target must contain only numbers, only bools or only strings",
                "weight": "weights must be numbers",
            }
            way = way_with_times(columns, where) if role == "feature" and say is in_python else ""
            return f"{begin}{':' if len(columns) == 1 else '.'} {wanted[role]}.{way}"

        super().__init__(message)


class NotNumbersError(DataError, TypeError):
    """Columns of an array or a data frame are not numeric; `columns` maps names to what they contain."""

    def __init__(self, columns: Mapping[Any, str], reason: str = "", library: str = "array") -> None:
        names = [f"{name!r} ({what})" for name, what in columns.items()]
        more = f" and {len(names) - 20:,} more" if len(names) > 20 else ""
        complex_numbers = any("complex" in what for what in columns.values())
        begin = "Complex data not supported. " if complex_numbers else ""
        why = f" ({reason})" if "argument must be" in reason else ""
        kinds, way = "numbers or bools", "Encode text as numbers, and drop other columns."
        if not any(what.startswith("text") for what in columns.values()):
            kinds, way = "numbers, bools or text", "Convert them, or drop them."
            if any("numbers and text" in what for what in columns.values()):
                way = "Make all values of a column text, or all of them numbers; drop other columns."
        super().__init__(
            f"{begin}X must contain only {kinds}, but {'columns' if len(names) > 1 else 'column'} "
            f"{', '.join(names[:20])}{more} {'do' if len(names) > 1 else 'does'} not{why}. {way}"
            f"{way_with_times(columns, library)}"
        )


class DifferentFilesError(DataError):
    """The files of a dataset have different columns."""

    def __init__(self, file: str, column: str, what: str, first: str) -> None:
        super().__init__(
            f"The files of a dataset must have the same columns, but column {column!r} of {file} "
            f"{what} {first}."
        )


class ChangedSourceError(DataError):
    """A source changed after it was opened or first read."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(
            f"{capitalized(where)} changed after the dataset was opened: {what}. Open it again, and do not "
            "write to it while it is in use."
        )


class MissingLabelError(DataError):
    """The label of a row is missing or not finite."""

    def __init__(self, row: int, column: object, where: str, what: str = "is missing") -> None:
        super().__init__(
            f"The label in row {row}, column {column}, of {where} {what}: every training row must have a "
            "label."
        )


class SameNumberError(DataError):
    """Two labels differ as text but are the same number."""

    def __init__(self, column: str, label: str, other: str, row: int, where: str) -> None:
        same = "truth value" if other.strip().lower() in ("true", "false") else "number"
        super().__init__(
            lambda say: (
                f"The labels {label!r} and {other!r} of column {column!r} are the same {same} (row {row} of "
                f"{where}). To keep them distinct, store the column as text, or for CSV files give "
                f"{say('types', {column: 'string'})}."
            )
        )


class TooManyLabelsError(DataError):
    """A target has too many distinct labels to fit in memory."""

    def __init__(self, column: str, labels: int, rows: int, taken: int, least: int) -> None:
        self.least = least
        super().__init__(
            f"memory_limit is too low: the target {column!r} has {labels:,} distinct labels in its first "
            f"{rows:,} rows, which take {human_bytes(taken)}. A column with a different value in nearly "
            "every row is an id, not a class: choose another target. If these are all classes, raise the "
            f"limit to at least memory_limit={size_setting(least)!r}."
        )


class WeightError(DataError):
    """A weight is missing, negative or infinite."""

    def __init__(self, row: int, column: object, where: str, value: float) -> None:
        super().__init__(
            f"The weight in row {row}, column {column}, of {where} is {value}: weights must be "
            "finite and not negative."
        )


class BatchError(DataError):
    """A batch of a callable is invalid or differs from the others."""

    def __init__(self, number: int, what: str) -> None:
        super().__init__(
            f"Batch {number} of the callable {what}: batches must be X, (X, y) or (X, y, weight), and all "
            "of the same form."
        )


class FailedBatchError(DataError):
    """The iterator of a callable raised an error."""

    def __init__(self, number: int, error: BaseException) -> None:
        super().__init__(f"The callable failed at batch {number}: {type(error).__name__}: {error}.")


class OnceOnlyError(DataError):
    """A source can be read only once."""

    def __init__(self, source: str) -> None:
        super().__init__(
            f"{source} can be read only once, but training reads the data several times: use a file, or a "
            "callable that returns a new iterator over (X, y) batches each time."
        )
