"""The size of a Parquet file's metadata, and its schema without reading all of it.

pyarrow takes about a kilobyte for each column of each row group. The schema and the number of rows, which
come first in the footer, are enough to open a file: they are parsed as the footer of a file without rows.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from .thrift import BINARY, LIST, STRUCT, Cursor

MAGIC = b"PAR1"
TAIL = struct.Struct("<I4s")  # the length of the footer, and the magic at the end of the file
LARGE_FOOTER = 1 << 22  # only the head of larger footers is read; others are read whole, to find damage early
CHUNK_BYTES = 940  # measured memory for a column of a row group, in addition to its bytes in the footer
ARROW_SCHEMA = b"ARROW:schema"
MOST_SCHEMA_BYTES = 1 << 24  # bytes at the end of a footer in which the Arrow schema is searched

# Fields of the file's metadata.
_SCHEMA, _NUM_ROWS, _ROW_GROUPS = 2, 3, 4
_EMPTY_GROUPS = bytes([0x10 | LIST, STRUCT])


@dataclass(frozen=True)
class Head:
    """The head of a footer. `footer` is that of a file with the same schema and no rows."""

    rows: int
    groups: int
    footer: bytes

    def opened(self) -> pq.ParquetFile:
        """Open the file without rows."""
        return pq.ParquetFile(pa.BufferReader(MAGIC + self.footer + TAIL.pack(len(self.footer), MAGIC)))


def footer_length(source: pa.NativeFile) -> int:
    """Length of the footer in bytes; 0 if it is invalid, for which pyarrow raises an error later."""
    size = source.size()
    if size < len(MAGIC) + TAIL.size:
        return 0
    source.seek(size - TAIL.size)
    length, magic = TAIL.unpack(source.read(TAIL.size))
    source.seek(0)
    return int(length) if magic == MAGIC and length <= size - len(MAGIC) - TAIL.size else 0


def metadata_bytes(footer: int, chunks: int) -> int:
    """Memory in bytes that pyarrow takes for the metadata of this many column chunks."""
    return footer + CHUNK_BYTES * chunks


def read_head(source: pa.NativeFile, length: int) -> Head:
    """Read the schema and the numbers of rows and row groups from a footer of this length."""
    begin = source.size() - TAIL.size - length
    wanted = min(length, 1 << 16)
    while True:
        source.seek(begin)
        try:
            rows, groups, end, data = _parse(bytes(source.read(wanted)))
            break
        except IndexError as error:
            if wanted == length:
                raise pa.ArrowInvalid("its metadata ends too early") from error
            wanted = min(length, 4 * wanted)
    return Head(rows, groups, data[:end] + _EMPTY_GROUPS + _arrow_schema(source, length) + b"\0")


def _parse(data: bytes) -> tuple[int, int, int, bytes]:
    """Rows, row groups, and the offset of the list of row groups; IndexError if `data` ends before it."""
    at = Cursor(data)
    field, rows = 0, -1
    while True:
        begin = at.place
        field, kind = at.field(field)
        if field == _ROW_GROUPS and kind == LIST and rows >= 0:
            return rows, at.list_header()[0], begin, data
        if kind == 0 or field > _ROW_GROUPS:
            raise pa.ArrowInvalid("the fields of its metadata are not in the usual order")
        if field == _NUM_ROWS:
            rows = at.zigzag()
        else:
            at.skip(kind)


def _arrow_schema(source: pa.NativeFile, length: int) -> bytes:
    """The field with the Arrow schema, which follows the row groups; empty if there is none."""
    most, size = min(length, MOST_SCHEMA_BYTES), 1 << 18
    while True:
        size = min(size, most)
        source.seek(source.size() - TAIL.size - size)
        data = bytes(source.read(size))
        place = data.rfind(ARROW_SCHEMA)
        if place >= 0 or size == most:
            break
        size *= 4
    if place < 0:
        return b""
    at = Cursor(data, place + len(ARROW_SCHEMA) + 1)
    begin = at.place - 1
    try:
        count = at.varint()
    except IndexError:
        return b""
    key = bytes([0x10 | BINARY, len(ARROW_SCHEMA)]) + ARROW_SCHEMA
    return bytes([0x10 | LIST, 0x10 | STRUCT]) + key + data[begin : at.place + count] + b"\0"
