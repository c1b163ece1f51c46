"""Finds the sizes of the record batches of an Arrow IPC file from the headers of its messages.

A batch is read whole. The memory it takes follows from the flatbuffer before its body; no column is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import pyarrow as pa

_CONTINUES = 0xFFFFFFFF
_RECORD_BATCH = 3
_FILE_BEGIN = 8  # bytes before the first message in the file format
# Field numbers of the flatbuffer tables Message and RecordBatch.
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3
_LENGTH, _BUFFERS, _COMPRESSION = 0, 2, 3


def largest_batch(source: pa.NativeFile, schema: pa.Schema, used: Sequence[str], is_file: bool) -> int:
    """Memory in bytes for reading the used columns of the largest record batch."""
    places = _buffer_places(schema, used)
    widths = [_width(schema.field(name).type) for name in used]
    return max(
        (
            _batch_bytes(message, body, places, widths, is_file)
            for message, body in _messages(source, is_file)
        ),
        default=0,
    )


def rows_of_batches(source: pa.NativeFile, batches: int) -> list[int] | None:
    """The number of rows of each record batch of a file; None if its layout is unusual."""
    counts = [
        header.number(_LENGTH, "<q")
        for message, _ in _messages(source, is_file=True)
        if message.number(_HEADER_TYPE, "<B") == _RECORD_BATCH and (header := message.table(_HEADER))
    ]
    return counts if len(counts) == batches else None


def _messages(source: pa.NativeFile, is_file: bool) -> Iterator[tuple[_Table, int]]:
    """Yield the header of each message, and the length of its body."""
    at, size = _FILE_BEGIN if is_file else 0, source.size()
    while at + 8 <= size:
        source.seek(at)
        mark, length = struct.unpack("<II", source.read(8))
        if mark != _CONTINUES or not 0 < length <= size - at:
            return
        message = _Table.root(bytes(source.read(length)))
        body = message.number(_BODY_LENGTH, "<q")
        yield message, body
        at += 8 + length + max(0, body)


def _batch_bytes(
    message: _Table, body: int, places: list[int] | None, widths: list[float], is_file: bool
) -> int:
    header = message.table(_HEADER)
    if message.number(_HEADER_TYPE, "<B") != _RECORD_BATCH or header is None:
        return body
    buffers = header.pairs(_BUFFERS)
    known = places is not None and max(places, default=0) < len(buffers)
    read = body
    if is_file and known and places is not None:  # all columns of a stream are read
        read = sum(buffers[place][1] for place in places)
    if header.table(_COMPRESSION) is None:
        return read
    # Text is assumed to be four times as long when decompressed.
    unpacked = header.number(_LENGTH, "<q") * sum(widths) if all(widths) else 4 * read
    return read + int(unpacked)


def _buffer_places(schema: pa.Schema, used: Sequence[str]) -> list[int] | None:
    """The numbers of the buffers of these columns; None for nested schemas."""
    counts = [_buffers_of(field.type) for field in schema]
    if not all(count is not None for count in counts):
        return None
    first, at = [], 0
    for count in counts:
        first.append(at)
        at += count or 0
    wanted = [schema.get_field_index(name) for name in used]
    return [first[i] + k for i in wanted for k in range(counts[i] or 0)]


def _buffers_of(kind: pa.DataType) -> int | None:
    if pa.types.is_null(kind):
        return 0
    if _width(kind) or pa.types.is_dictionary(kind):
        return 2
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return 3 if any(test(kind) for test in texts) else None


def _width(kind: pa.DataType) -> float:
    """Bytes of a value and its validity bit; 0 if the length varies."""
    if pa.types.is_dictionary(kind):
        return _width(kind.index_type)
    try:
        return (kind.bit_width + 1) / 8
    except ValueError:
        return 0


class _Table:
    """A table in a flatbuffer."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at
        self._fields = at - self._unpack("<i", at)
        self._size = self._unpack("<H", self._fields)

    @staticmethod
    def root(data: bytes) -> _Table:
        return _Table(data, struct.unpack_from("<I", data, 0)[0])

    def _unpack(self, kind: str, at: int) -> int:
        number: int = struct.unpack_from(kind, self._data, at)[0]
        return number

    def _place(self, field: int) -> int | None:
        at = 4 + 2 * field
        offset = self._unpack("<H", self._fields + at) if at < self._size else 0
        return self._at + offset if offset else None

    def number(self, field: int, kind: str) -> int:
        place = self._place(field)
        return 0 if place is None else self._unpack(kind, place)

    def table(self, field: int) -> _Table | None:
        place = self._place(field)
        return None if place is None else _Table(self._data, place + self._unpack("<I", place))

    def pairs(self, field: int) -> list[tuple[int, int]]:
        """A vector of pairs of 64-bit numbers."""
        place = self._place(field)
        if place is None:
            return []
        place += self._unpack("<I", place)
        count = self._unpack("<I", place)
        return list(struct.iter_unpack("<qq", self._data[place + 4 : place + 4 + 16 * count]))
