"""Rows of sources that run again for each pass: polars LazyFrames and objects that export Arrow streams."""

from __future__ import annotations

import queue
import threading
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ..errors import ChangedSourceError, OldgrowthError, OnceOnlyError, ReadError
from .arrow_threads import start_arrow_threads
from .batches import Span
from .columns import choose_columns
from .frames import polars_schema, with_decimals
from .table import TableDataset

SLICE_VALUES = 1 << 21


class StreamDataset(TableDataset):
    """A stream of record batches; the number of rows is known only at its end."""

    def __init__(self, schema: pa.Schema, target: Any, features: Any, weight: Any) -> None:
        columns = choose_columns(schema, target, features, weight, self._where)
        super().__init__(schema, columns, None, None)

    @abstractmethod
    def _run(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Run the source from the beginning."""

    def _tables(
        self, names: tuple[str, ...], rows: int, span: Span
    ) -> Iterator[tuple[int, str, pa.RecordBatch]]:
        at = 0
        batches = self._run(list(names), rows)
        while True:
            try:
                batch = next(batches, None)
            except OldgrowthError:
                raise
            except Exception as error:
                raise ReadError(self.kind, at, error) from error
            if batch is None:
                return
            yield at, self._where, batch
            at += batch.num_rows

    def fingerprint(self) -> dict[str, Any]:
        return {"kind": self.kind, "source": None, **self._roles()}


class LazyFrameDataset(StreamDataset):
    """A polars LazyFrame, run by the streaming engine if available."""

    kind = "polars LazyFrame"

    def __init__(self, frame: Any, target: Any, features: Any, weight: Any) -> None:
        import polars as pl

        try:
            self._frame = with_decimals(frame)
            empty = pl.DataFrame(schema=self._frame.collect_schema())
        except (pl.exceptions.PolarsError, OSError) as error:
            raise ReadError(self.kind, 0, error) from error
        super().__init__(polars_schema(empty), target, features, weight)

    def _run(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        chosen = self._frame.select(names)
        step = max(1024, min(rows, SLICE_VALUES // len(names)))
        for frame in _collected(chosen, step):
            yield from frame.to_arrow().to_batches()


def _collected(frame: Any, rows: int) -> Iterator[Any]:
    if hasattr(frame, "sink_batches"):
        yield from _sunk(frame, rows)
        return
    start = 0  # older polars: slices are pushed down to the scan, so that each reads little more than itself
    while True:
        part = frame.slice(start, rows).collect()
        if not part.height:
            return
        yield part
        start += part.height


def _sunk(frame: Any, rows: int) -> Iterator[Any]:
    """Run the query in a thread that waits while its batches are not consumed.

    collect_batches is not used: if polars' engine panics, it ends as if there were no more rows.
    """
    results: queue.Queue[Any] = queue.Queue(maxsize=2)
    abandoned = threading.Event()

    def put(item: Any) -> bool:
        """Whether to stop."""
        while not abandoned.is_set():
            try:
                results.put(item, timeout=0.1)
            except queue.Full:
                continue
            return False
        return True

    def run() -> None:
        end: BaseException | None = None
        try:
            frame.sink_batches(put, chunk_size=rows, maintain_order=True)
        except BaseException as error:  # noqa: BLE001 - raised again by the reader; a panic is not an Exception
            end = error
        put(end)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while (item := results.get()) is not None:
            if isinstance(item, BaseException):
                raise RuntimeError(str(item)) from item
            yield item
    finally:
        abandoned.set()
        thread.join()


class ArrowStreamDataset(StreamDataset):
    """Any object with `__arrow_c_stream__` that returns the same stream each time."""

    def __init__(self, source: Any, target: Any, features: Any, weight: Any) -> None:
        self._source = source
        self.kind = f"Arrow stream of {type(source).__name__}"
        super().__init__(self._twice(), target, features, weight)

    def _twice(self) -> pa.Schema:
        """Return the schema; refuse a source whose second stream does not start with the same rows."""
        if isinstance(self._source, pa.RecordBatchReader):
            raise OnceOnlyError(f"A {type(self._source).__name__}")
        start_arrow_threads()  # the source may be read by Arrow
        try:
            reader = pa.RecordBatchReader.from_stream(self._source)
            begin = _first_batch(reader)
        except (pa.ArrowException, OSError) as error:
            raise ReadError(self.kind, 0, error) from error
        try:
            again = _first_batch(pa.RecordBatchReader.from_stream(self._source))
        except Exception as error:
            raise OnceOnlyError(f"The {self.kind}") from error
        if (begin is None) != (again is None) or (begin is not None and _differ(begin, again)):
            raise OnceOnlyError(f"The {self.kind}")
        return reader.schema.remove_metadata()

    def _run(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        reader = pa.RecordBatchReader.from_stream(self._source)
        if not reader.schema.equals(self._schema):
            raise ChangedSourceError(self._where, "its columns are different")
        for batch in reader:
            yield batch.select(names)


def _first_batch(reader: pa.RecordBatchReader) -> pa.RecordBatch | None:
    return next((batch for batch in reader if batch.num_rows), None)


def _differ(one: pa.RecordBatch, other: pa.RecordBatch) -> bool:
    """Whether the first rows of two batches differ; NaN equals NaN here."""
    if one.num_rows != other.num_rows or one.schema != other.schema:
        return True
    return repr(one.slice(0, 1000).to_pylist()) != repr(other.slice(0, 1000).to_pylist())
