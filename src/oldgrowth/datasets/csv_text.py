"""CSV files as text: their encoding by their first bytes, and the lines that their records are in.

pyarrow numbers records, of which blank lines are none and which may have line ends in quotes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from ..errors import EncodingError, UnknownSourceError
from .files import SourceFile

FIRST_BYTES = 4096  # that are looked at
_MARKS = (  # the longer ones first
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
# Places of a character that are NUL if it is one of ASCII, and the encoding that has it so.
_ZEROS = (
    (4, (1, 2, 3), "UTF-32-LE"),
    (4, (0, 1, 2), "UTF-32-BE"),
    (2, (1,), "UTF-16-LE"),
    (2, (0,), "UTF-16-BE"),
)
_MOSTLY = 0.5  # the share of characters of ASCII in such text
_BINARY = 0.1  # the share of NUL in what is no text
_MOST_FIELD_BYTES = 1 << 26


def refuse_other_text(file: SourceFile, begin: bytes) -> None:
    """Refuse a file that is not in UTF-8, by its first bytes."""
    for mark, encoding in _MARKS:
        if begin.startswith(mark):
            raise EncodingError(file.path, f"is text in {encoding}", encoding.lower())
    if b"\0" not in begin:
        return
    for width, places, encoding in _ZEROS:
        if _has_zeros(begin, width, places):
            raise EncodingError(file.path, f"looks like text in {encoding}", encoding.lower())
    if begin.count(b"\0") > _BINARY * len(begin):
        raise UnknownSourceError(file.path, "it is named as CSV, but holds bytes that are no text")


def _has_zeros(begin: bytes, width: int, places: tuple[int, ...]) -> bool:
    """Whether characters of this many bytes mostly have NUL in these places, and in no others."""
    shares = [part.count(0) / max(1, len(part)) for part in (begin[place::width] for place in range(width))]
    return all(
        share > _MOSTLY if place in places else share < 1 - _MOSTLY for place, share in enumerate(shares)
    )


def records(stream: pa.NativeFile, encoding: str | None, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The records of a file, each with the number of its first line; blank lines are none."""
    text = io.TextIOWrapper(stream, encoding or "utf-8-sig", errors="replace", newline="")
    reader = csv.reader(text, delimiter=delimiter)
    before = 0
    with _long_fields():
        for record in reader:
            if record:
                yield before + 1, record
            before = reader.line_num


@contextmanager
def _long_fields() -> Iterator[None]:
    """The csv module refuses long values, which pyarrow reads."""
    limit = csv.field_size_limit(_MOST_FIELD_BYTES)
    try:
        yield
    finally:
        csv.field_size_limit(limit)
