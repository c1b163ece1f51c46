"""Finds out whether a CSV file ends inside of a quoted value: all rows behind the quote would be missing.

A line is put behind the file that has more values than the first line. The reader reports such a line; when
it does not, the line has become a part of a value that was never closed.
"""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

_MARK = b"\x02end of the file\x02"
_MORE = 7  # values than the first line has, at the least
# Blocks that Arrow reads ahead; seconds that its thread has to end.
_READ_AHEAD = 32
_ENDS_BY_ITSELF, _ENDS_IF_IT_READS = 10.0, 0.5


class MarkedEnd:
    """A stream of text in UTF-8, with the mark behind it; nothing stays nothing.

    Arrow reads it in a thread of its own, which reads ahead. A reader that is dropped while that thread waits
    for Python would wait for it without end, and so would the end of the process: `stop` before.
    """

    closed = False

    def __init__(self, stream: pa.NativeFile, delimiter: str) -> None:
        self._stream = stream
        self._delimiter = delimiter.encode()
        self._values = 0  # of the mark, as soon as there is a first line
        self._rest = b""
        self.seen = False
        self._reads = 0
        self._stopped = False
        self._ended = threading.Event()

    def read(self, size: int = -1) -> bytes:
        data = b"" if self._stopped else self._read(size)
        self._reads += 1
        if not data:
            self._ended.set()
        return data

    def stop(self) -> None:
        """End the stream, and wait until the thread that reads ahead knows it, if it reads at all."""
        self._stopped = True
        # With more blocks than it reads ahead, the thread may rest, and then nobody waits for it.
        self._ended.wait(_ENDS_BY_ITSELF if self._reads < _READ_AHEAD else _ENDS_IF_IT_READS)

    def _read(self, size: int) -> bytes:
        data: bytes = self._stream.read(None if size < 0 else size)
        if not self._values and data.strip(b"\r\n"):
            first_line = data.lstrip(b"\r\n").splitlines()[0]
            self._values = first_line.count(self._delimiter) + 1 + _MORE
            self._rest = b"\n" + _MARK + self._delimiter * (self._values - 1) + b"\n"
        if data:
            return data
        data, self._rest = self._rest[:size], self._rest[size:]
        return data

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()

    def on_invalid_row(self, row: Any) -> str:
        """pyarrow's handler of rows with another number of values than the header."""
        if row.actual_columns != self._values or not row.text.startswith(_MARK.decode()):
            return "error"
        self.seen = True
        return "skip"

    def parsing(self, options: pa_csv.ParseOptions) -> pa_csv.ParseOptions:
        return pa_csv.ParseOptions(
            delimiter=options.delimiter,
            newlines_in_values=options.newlines_in_values,
            invalid_row_handler=self.on_invalid_row,
        )
