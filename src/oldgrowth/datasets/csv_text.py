"""CSV files as text: detects their encoding, and finds the line of a record.

pyarrow counts records, which differ from lines: blank lines are skipped, quoted values may span lines.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from ..errors import EncodingError, UnknownSourceError
from .files import SourceFile

FIRST_BYTES = 4096  # bytes from which the encoding is detected
_MARKS = (  # longer byte order marks first
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
# Bytes per character, which of them are NUL in ASCII characters, and the encoding.
_ZEROS = (
    (4, (1, 2, 3), "UTF-32-LE"),
    (4, (0, 1, 2), "UTF-32-BE"),
    (2, (1,), "UTF-16-LE"),
    (2, (0,), "UTF-16-BE"),
)
_MOSTLY = 0.5  # minimum share of ASCII characters in such text
_BINARY = 0.1  # share of NUL bytes above which a file is not text
_MOST_FIELD_BYTES = 1 << 26


def refuse_other_text(file: SourceFile, begin: bytes) -> None:
    """Refuse a file whose first bytes are not UTF-8."""
    for mark, encoding in _MARKS:
        if begin.startswith(mark):
            raise EncodingError(file.path, f"is encoded in {encoding}", encoding.lower())
    if b"\0" not in begin:
        return
    for width, places, encoding in _ZEROS:
        if _has_zeros(begin, width, places):
            raise EncodingError(file.path, f"looks like text encoded in {encoding}", encoding.lower())
    if begin.count(b"\0") > _BINARY * len(begin):
        raise UnknownSourceError(file.path, "its name is that of a CSV file, but it contains binary data")


def _has_zeros(begin: bytes, width: int, places: tuple[int, ...]) -> bool:
    """Whether characters of `width` bytes mostly have NUL at these places, and not at others."""
    shares = [part.count(0) / max(1, len(part)) for part in (begin[place::width] for place in range(width))]
    return all(
        share > _MOSTLY if place in places else share < 1 - _MOSTLY for place, share in enumerate(shares)
    )


def records(stream: pa.NativeFile, encoding: str | None, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The records of a file, each with the number of its first line; blank lines are skipped."""
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
    """Raise the limit of the csv module, which refuses long values that pyarrow reads."""
    limit = csv.field_size_limit(_MOST_FIELD_BYTES)
    try:
        yield
    finally:
        csv.field_size_limit(limit)
