"""Errors about data files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..messages.surface import Say
from ..messages.text import capitalized, counted
from .base import DataError


class NoDataError(DataError):
    """A source has no files or no rows."""

    def __init__(self, source: object, what: str) -> None:
        super().__init__(f"{capitalized(str(source))} contains no data: {what}.")


class UnknownSourceError(DataError):
    """A source has an unsupported type or format."""

    def __init__(self, source: object, what: str | Callable[[Say], str]) -> None:
        super().__init__(
            lambda say: (
                f"{source} cannot be opened as a dataset: {what if isinstance(what, str) else what(say)}."
            )
        )


class UnreadableFileError(DataError):
    """The operating system does not allow a file to be read, or fails to read it."""

    def __init__(self, file: str, error: Exception) -> None:
        denied = isinstance(error, PermissionError)
        way = "you need permission to read it" if denied else "the disk or the operating system failed"
        super().__init__(f"{file} cannot be read ({getattr(error, 'strerror', None) or error}): {way}.")


class DamagedFileError(DataError):
    """A file is truncated, corrupted or of another format."""

    def __init__(self, file: str, kind: str, reason: object) -> None:
        text = " ".join(str(reason).split()).rstrip(".")
        super().__init__(
            f"{file} cannot be read as {kind}: {text}. The file is truncated, damaged or of another format: "
            "write it again."
        )


class PythonObjectsError(DataError):
    """An array in a file contains pickled Python objects."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} contains pickled Python objects, which are not loaded because they can run code. Save "
            "it as an array of numbers (array.astype(float)), or of text for labels (array.astype(str))."
        )


class OtherFilesError(DataError):
    """An HDF5 file refers to values in other files, which may be any files on the machine."""

    def __init__(self, where: str, other: str) -> None:
        super().__init__(
            lambda say: (
                f"{where} keeps its values in another file ({other}). Allow this with "
                f"{say('external_files', True)} if you trust the file: it can name any file on this machine."
            )
        )


class MissingValuesError(DataError):
    """Values of an HDF5 dataset are missing, and would be read as zeros."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where} {what}: missing values would be read as zeros.")


class BrokenLinkError(DataError):
    """A link in an HDF5 file is broken."""

    def __init__(self, where: str, target: str) -> None:
        super().__init__(
            lambda say: (
                f"{where} is a link to {target}: repair the link, or name the datasets to read with "
                f"{say('features')}."
            )
        )


class ReadError(DataError):
    """A source other than a file failed while it was being read."""

    def __init__(self, kind: str, row: int, reason: object) -> None:
        super().__init__(f"The {kind} failed after row {row}: {' '.join(str(reason).split()).rstrip('.')}.")


class BadValueError(DataError):
    """A text file contains a value that does not fit the type of its column."""

    def __init__(self, file: str, line: int, column: str, what: str) -> None:
        super().__init__(
            lambda say: (
                f"{file}, line {line}, column {column}: {what}. Correct the line, give the text that marks "
                f"missing values with {say('missing')}, or the type of the column, as in "
                f"{say('types', {column: 'string'})}."
            )
        )
        self.line = line


class DecimalCommaError(DataError):
    """A number has a comma where a decimal point is expected."""

    def __init__(self, file: str, line: int, column: str, value: str) -> None:
        super().__init__(
            lambda say: (
                f"{file}, line {line}, column {column}: {value!r} is not a number with a decimal point. If "
                f"the comma is a decimal comma, give {say('decimal', ',')}."
            )
        )


class EncodingError(DataError):
    """A text file has another encoding than expected."""

    def __init__(self, where: str, what: str, encoding: str | None = None) -> None:
        likely = encoding or "latin-1"
        other = "" if encoding else ", or the encoding it was written in"
        super().__init__(lambda say: f"{where} {what}: give {say('encoding', likely)}{other}.")


class HeaderError(DataError):
    """The first line of a text file is not a valid header."""

    def __init__(self, file: str, what: str, knob: str, value: Any) -> None:
        super().__init__(lambda say: f"The first line of {file} {what}, give {say(knob, value)}.")


class BrokenLineError(DataError):
    """A line of a text file has more or fewer values than its header or the lines before it."""

    def __init__(self, file: str, line: int, values: tuple[int, int], text: str, first: bool) -> None:
        wanted, got = values
        shown = text if len(text) <= 60 else f"{text[:60]} ..."
        begin = f"{file}, line {line}, has {counted(got, 'value')} instead of {wanted}: {shown!r}."

        def message(say: Say) -> str:
            if first and got > wanted:
                return (
                    f"{begin} Remove the lines above the column names, or give the character that separates "
                    f"values with {say('delimiter')}."
                )
            return f"{begin} Correct the line; if it is the last one, the file may be truncated."

        super().__init__(message)


class UnclosedQuoteError(DataError):
    """A quoted value extends to the end of the file, or beyond the block that is read at once."""

    def __init__(self, file: str, what: str) -> None:
        super().__init__(
            f"{file} {what}: a quote is not closed, or the file is truncated or has unusual line endings."
        )
