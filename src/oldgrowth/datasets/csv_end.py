"""Reads CSV files with Arrow, detects files that end inside a quoted value, and stops Arrow's threads.

All rows after an unclosed quote would be lost. So a line with more values than the first line is appended to
the file. The reader reports it as invalid; if it does not, the line has become part of a quoted value.

Arrow reads ahead in its own threads, which call Python for each block. A thread that does so while its reader
is being destroyed would deadlock; while the interpreter exits, it would abort the process.
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
_MORE = 7  # how many values the appended line has more than the first line, at least
# Maximum time to wait for Arrow's threads to finish their blocks, and the interval of polling.
_MOST_SECONDS, _LOOK_SECONDS = 10.0, 0.001


class MarkedReader:
    """Batches of a stream of UTF-8 text with the mark appended; an empty stream stays empty.

    After `close`, no thread of Arrow uses it.
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
        self._values = 0  # number of values of the mark, known after the first line
        self._rest = b""
        self.seen = False  # whether the mark was reported
        self._closed = False
        self._lock = threading.Lock()
        self._lent: list[weakref.ref[Any]] = []  # Python objects that Arrow's threads may use

    def open(self) -> None:
        """Start reading. Lent objects are not kept in variables, which tracebacks would keep alive."""
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
        """Stop reading, and wait until Arrow has released all lent objects."""
        self._closed = True
        if self._reader is not None:
            # Closed without the GIL: destroying the reader waits for the thread that reads ahead.
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
        """Return the next bytes; called by Arrow."""
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
        """Handle a row with another number of values than the header; called by pyarrow."""
        if row.actual_columns != self._values or not row.text.startswith(_MARK.decode()):
            return "error"
        self.seen = True
        return "skip"


class _Source:
    """The file object that Arrow reads; only Arrow keeps a reference to it."""

    closed = False

    def __init__(self, owner: MarkedReader) -> None:
        self._owner = owner

    def read(self, size: int = -1) -> memoryview:
        owner = self._owner
        del self  # a traceback would keep it alive
        return owner.read(size)

    def on_invalid_row(self, row: Any) -> str:
        return self._owner.on_invalid_row(row)

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        """Do nothing: the owner closes the stream."""


_OPEN: weakref.WeakSet[MarkedReader] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Close readers that are still open, before the interpreter ends threads that need Python."""
    for reader in list(_OPEN):
        reader.close()
