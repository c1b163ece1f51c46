"""The size of a Parquet file's metadata, and its schema without the rest.

pyarrow takes about a kilobyte for each column of each row group. What a large footer says first, the schema
and the number of rows, is enough to open a file: it is cut out and read as the footer of a file without rows.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from .thrift import BINARY, LIST, STRUCT, Cursor

MAGIC = b"PAR1"
TAIL = struct.Struct("<I4s")  # the length of the footer, and the magic at the end of the file
LARGE_FOOTER = 1 << 22  # of which the head alone is read; a smaller one is read whole, to find damage early
CHUNK_BYTES = 940  # of memory for a column of a row group, measured, beside its bytes in the footer
ARROW_SCHEMA = b"ARROW:schema"
MOST_SCHEMA_BYTES = 1 << 24  # at the end of a footer where it is looked for

# Fields of the file's metadata.
_SCHEMA, _NUM_ROWS, _ROW_GROUPS = 2, 3, 4
_EMPTY_GROUPS = bytes([0x10 | LIST, STRUCT])


@dataclass(frozen=True)
class Head:
    """What the first bytes of a footer say. `footer` is that of a file with the same schema and no rows."""

    rows: int
    groups: int
    footer: bytes

    def opened(self) -> pq.ParquetFile:
        """The file without rows."""
        return pq.ParquetFile(pa.BufferReader(MAGIC + self.footer + TAIL.pack(len(self.footer), MAGIC)))


def footer_length(source: pa.NativeFile) -> int:
    """Bytes of the footer; 0 where it is not as expected, which pyarrow finds the words for."""
    size = source.size()
    if size < len(MAGIC) + TAIL.size:
        return 0
    source.seek(size - TAIL.size)
    length, magic = TAIL.unpack(source.read(TAIL.size))
    source.seek(0)
    return int(length) if magic == MAGIC and length <= size - len(MAGIC) - TAIL.size else 0


def metadata_bytes(footer: int, chunks: int) -> int:
    """Memory that pyarrow takes for the metadata of so many columns of row groups."""
    return footer + CHUNK_BYTES * chunks


def read_head(source: pa.NativeFile, length: int) -> Head:
    """The schema, rows and row groups of a file whose footer has this length."""
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
    """Rows, row groups, and where the list of row groups begins; IndexError if it is further on."""
    at = Cursor(data)
    field, rows = 0, -1
    while True:
        begin = at.place
        field, kind = at.field(field)
        if field == _ROW_GROUPS and kind == LIST and rows >= 0:
            return rows, at.list_header()[0], begin, data
        if kind == 0 or field > _ROW_GROUPS:
            raise pa.ArrowInvalid("its metadata is not in the usual order")
        if field == _NUM_ROWS:
            rows = at.zigzag()
        else:
            at.skip(kind)


def _arrow_schema(source: pa.NativeFile, length: int) -> bytes:
    """The field with Arrow's own types, which is behind the row groups; nothing if there is none."""
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
