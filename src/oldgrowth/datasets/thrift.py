"""Reads Thrift's compact protocol, the encoding of Parquet metadata."""

from __future__ import annotations

import pyarrow as pa

# Field types.
TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
INTEGERS = (4, 5, 6)


class Cursor:
    """Reads values of the compact protocol from bytes."""

    def __init__(self, data: bytes, place: int = 0) -> None:
        self._data = data
        self.place = place

    def byte(self) -> int:
        self.place += 1
        return self._data[self.place - 1]

    def varint(self) -> int:
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    def zigzag(self) -> int:
        number = self.varint()
        return (number >> 1) ^ -(number & 1)

    def field(self, before: int) -> tuple[int, int]:
        """The number and type of the next field; type 0 marks the end of a struct."""
        byte = self.byte()
        if byte == 0:
            return before, 0
        return (before + (byte >> 4) if byte >> 4 else self.zigzag()), byte & 15

    def list_header(self) -> tuple[int, int]:
        byte = self.byte()
        return (self.varint() if byte >> 4 == 15 else byte >> 4), byte & 15

    def skip(self, kind: int) -> None:
        if kind in (TRUE, FALSE):
            return
        if kind == BYTE:
            self.byte()
        elif kind in INTEGERS:
            self.varint()
        elif kind in (DOUBLE, BINARY):
            count = 8 if kind == DOUBLE else self.varint()
            self.place += count
        elif kind in (LIST, SET):
            count, inner = self.list_header()
            for _ in range(count):
                self.skip(BYTE if inner in (TRUE, FALSE) else inner)
        elif kind == STRUCT:
            field = 0
            while (found := self.field(field))[1]:
                field = found[0]
                self.skip(found[1])
        else:
            raise pa.ArrowInvalid(f"its metadata has a field of unknown type {kind}")
