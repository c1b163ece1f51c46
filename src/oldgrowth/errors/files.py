"""Errors of data files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..messages.surface import Say
from ..messages.text import counted
from .base import DataError


class NoDataError(DataError):
    """There is no file, or no row, to read."""

    def __init__(self, source: object, what: str) -> None:
        super().__init__(f"{source} holds no data: {what}.")


class UnknownSourceError(DataError):
    """A source of a kind or format that cannot be read."""

    def __init__(self, source: object, what: str | Callable[[Say], str]) -> None:
        super().__init__(
            lambda say: (
                f"{source} cannot be opened as a dataset: {what if isinstance(what, str) else what(say)}."
            )
        )


class UnreadableFileError(DataError):
    """The system does not let us read a file."""

    def __init__(self, file: str, error: OSError) -> None:
        denied = isinstance(error, PermissionError)
        way = "ask its owner for permission to read it" if denied else "the disk or the system failed"
        super().__init__(f"{file} cannot be read ({error.strerror}): {way}.")


class DamagedFileError(DataError):
    """A file that is cut off, corrupted or not of its format."""

    def __init__(self, file: str, kind: str, reason: object) -> None:
        text = " ".join(str(reason).split()).rstrip(".")
        super().__init__(
            f"{file} cannot be read to its end as {kind}: {text}. The file is cut off, damaged "
            "or of another format: write it anew."
        )


class PythonObjectsError(DataError):
    """An array in a file that is made of Python objects, which are pickled."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} holds Python objects, which are not opened because they can run code: save it as an "
            "array of numbers, or of text for labels, as with array.astype(float) or array.astype(str)."
        )


class OtherFilesError(DataError):
    """An HDF5 file that keeps values in other files, which may be any file of the machine."""

    def __init__(self, where: str, other: str) -> None:
        super().__init__(
            lambda say: (
                f"{where} keeps its values in another file ({other}), which is read only if you allow it "
                f"with {say('external_files', True)}: a file can name any other file of this machine."
            )
        )


class MissingValuesError(DataError):
    """An HDF5 dataset with values that are nowhere, for which zeros would be read."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where} {what}: zeros would be read where values are missing.")


class BrokenLinkError(DataError):
    """A link of an HDF5 file that leads nowhere."""

    def __init__(self, where: str, target: str) -> None:
        super().__init__(
            lambda say: (
                f"{where} is a link to {target}: mend the link, or name the datasets to be used with "
                f"{say('features')}."
            )
        )


class ReadError(DataError):
    """A source that is no file failed while it was read."""

    def __init__(self, kind: str, row: int, reason: object) -> None:
        super().__init__(f"The {kind} failed after row {row}: {' '.join(str(reason).split()).rstrip('.')}.")


class BadValueError(DataError):
    """A text file holds something that is not a value of its column."""

    def __init__(self, file: str, line: int, column: str, what: str) -> None:
        super().__init__(
            lambda say: (
                f"{file}, line {line}, column {column}: {what}. Mend the line, name the text of missing "
                f"values with {say('missing')}, or give the type of the column with {say('types')}."
            )
        )
        self.line = line


class DecimalCommaError(DataError):
    """Numbers are written with a comma where a point was expected."""

    def __init__(self, file: str, line: int, column: str, value: str) -> None:
        super().__init__(
            lambda say: (
                f"{file}, line {line}, column {column}: {value!r} is no number with a decimal point. If its "
                f"comma is the decimal mark, give {say('decimal', ',')}."
            )
        )


class EncodingError(DataError):
    """A text file is not in the encoding that it is read in."""

    def __init__(self, where: str, what: str, encoding: str | None = None) -> None:
        likely = encoding or "latin-1"
        other = "" if encoding else ", or whichever it was written in"
        super().__init__(lambda say: f"{where} {what}: give {say('encoding', likely)}{other}.")


class HeaderError(DataError):
    """The first line of a text file is not a header as it is read."""

    def __init__(self, file: str, what: str, knob: str, value: Any) -> None:
        super().__init__(lambda say: f"The first line of {file} {what}, give {say(knob, value)}.")


class BrokenLineError(DataError):
    """A line of a text file has another number of values than its header, or than the lines before it."""

    def __init__(self, file: str, line: int, values: tuple[int, int], text: str, first: bool) -> None:
        wanted, got = values
        shown = text if len(text) <= 60 else f"{text[:60]} ..."
        begin = f"{file}, line {line}, has {counted(got, 'value')} instead of {wanted}: {shown!r}."

        def message(say: Say) -> str:
            if first and got > wanted:
                return (
                    f"{begin} Remove what stands above the names of the columns, or give what separates "
                    f"values with {say('delimiter')}."
                )
            return f"{begin} Mend the line, or the file is cut off here."

        super().__init__(message)


class UnclosedQuoteError(DataError):
    """A value in quotes goes on to the end of the file, or for longer than is read at a time."""

    def __init__(self, file: str, what: str) -> None:
        super().__init__(
            f"{file} {what}: a quote is not closed, or the file is cut off or has other line ends."
        )
