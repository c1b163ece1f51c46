"""Reads a CSV file with Arrow, finds out whether it ends inside of a quoted value, and ends with its threads.

All rows behind a quote that is never closed would be missing. So a line is put behind the file that has more
values than the first line. The reader reports such a line; when it does not, the line has become a part of a
value.

Arrow reads ahead in threads of its own, which call Python for each block. One that did so while its reader
is dropped would wait for Python without end, and while the interpreter exits it would abort the process.
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

_MARK = b"\x02end of the file\x02"
_MORE = 7  # values than the first line has, at the least
# Seconds that a thread of Arrow's has to finish the block it reads, and between two looks.
_MOST_SECONDS, _LOOK_SECONDS = 10.0, 0.001


class MarkedReader:
    """The batches of a stream of text in UTF-8 with the mark behind it; nothing stays nothing.

    When it is closed, no thread of Arrow's has anything of it any more.
    """

    def __init__(
        self,
        stream: pa.NativeFile,
        reading: pa_csv.ReadOptions,
        parsing: pa_csv.ParseOptions,
        converting: pa_csv.ConvertOptions,
    ) -> None:
        self._stream = stream
        self._parsing = parsing
        self._options = {"read_options": reading, "convert_options": converting}
        self._reader: pa_csv.CSVStreamingReader | None = None
        self._values = 0  # of the mark, as soon as there is a first line
        self._rest = b""
        self.seen = False  # whether the mark was reported
        self._closed = False
        self._lock = threading.Lock()
        self._lent: list[weakref.ref[Any]] = []  # to Arrow, by which it calls or reads Python objects

    def open(self) -> None:
        """Begin to read; what is lent is in no variable, which the traceback of an error would keep."""
        _OPEN.add(self)
        self._reader = pa_csv.open_csv(**self._lend(), **self._options)

    def _lend(self) -> dict[str, Any]:
        source = _Source(self)
        self._lent.append(weakref.ref(source))
        parsing = pa_csv.ParseOptions(
            delimiter=self._parsing.delimiter,
            newlines_in_values=self._parsing.newlines_in_values,
            invalid_row_handler=source.on_invalid_row,
        )
        return {"input_file": pa.PythonFile(source, mode="r"), "parse_options": parsing}

    @property
    def schema(self) -> pa.Schema:
        assert self._reader is not None
        return self._reader.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while self._reader is not None:
            try:
                batch = self._reader.read_next_batch()
            except StopIteration:
                return
            yield batch

    def close(self) -> None:
        """Read no further, and wait until Arrow has given everything back."""
        self._closed = True
        if self._reader is not None:
            # Dropped while Python can run: whoever drops it waits for the thread that reads ahead.
            last = pa.RecordBatchReader.from_stream(self._reader)
            self._reader = None
            last.close()
        until = time.monotonic() + _MOST_SECONDS
        while any(lent() is not None for lent in self._lent) and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        with self._lock:
            self._stream.close()
        _OPEN.discard(self)

    def read(self, size: int) -> memoryview:
        """The next bytes, for Arrow."""
        with self._lock:
            block = memoryview(b"" if self._closed else self._read(size))
        self._lent = [lent for lent in self._lent if lent() is not None]
        self._lent.append(weakref.ref(block))
        return block

    def _read(self, size: int) -> bytes:
        data: bytes = self._stream.read(None if size < 0 else size)
        if not self._values and data.strip(b"\r\n"):
            delimiter = self._parsing.delimiter.encode()
            first_line = data.lstrip(b"\r\n").splitlines()[0]
            self._values = first_line.count(delimiter) + 1 + _MORE
            self._rest = b"\n" + _MARK + delimiter * (self._values - 1) + b"\n"
        if data:
            return data
        data, self._rest = self._rest[:size], self._rest[size:]
        return data

    def on_invalid_row(self, row: Any) -> str:
        """pyarrow's handler of rows with another number of values than the header."""
        if row.actual_columns != self._values or not row.text.startswith(_MARK.decode()):
            return "error"
        self.seen = True
        return "skip"


class _Source:
    """What Arrow calls, and nobody else keeps."""

    closed = False

    def __init__(self, owner: MarkedReader) -> None:
        self._owner = owner

    def read(self, size: int = -1) -> memoryview:
        owner = self._owner
        del self  # which the traceback of an error would keep
        return owner.read(size)

    def on_invalid_row(self, row: Any) -> str:
        return self._owner.on_invalid_row(row)

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        """The stream is closed by its owner."""


_OPEN: weakref.WeakSet[MarkedReader] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Close what somebody began to read, before threads that need Python are ended without a word."""
    for reader in list(_OPEN):
        reader.close()
