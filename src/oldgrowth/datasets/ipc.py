"""Rows of Arrow IPC files, in the file format (Feather) or the stream format."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing

import pyarrow as pa

from .batches import Span
from .files import SourceFile
from .ipc_layout import largest_batch, rows_of_batches
from .table_files import FilesDataset

EXTENSIONS = (".arrow", ".arrows", ".feather", ".ipc")
FILE_MAGIC = b"ARROW1"
OLD_MAGIC = b"FEA1"
STREAM_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


class IPCDataset(FilesDataset):
    """Rows of Arrow IPC files. Reading needs memory for the used columns of one record batch."""

    kind = "Arrow IPC"

    def _look(self, file: SourceFile) -> tuple[pa.Schema, int | None]:
        with closing(file.open_arrow()) as source:
            if is_file_format(source):
                opened = pa.ipc.open_file(source)
                counts = _counts(source, opened.num_record_batches)
                rows = read_to_count(file) if counts is None else sum(counts)
                return opened.schema.remove_metadata(), rows
            check_stream_end(source, file.size)
            return pa.ipc.open_stream(source).schema.remove_metadata(), None

    def _read(
        self, file: SourceFile, names: list[str], rows: int, span: Span
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        with closing(file.open_arrow()) as source:
            wanted = span if self._is_part else Span(span.start)
            for at, batch in self._batches_of(source, file.size, names, wanted):
                check_batch(batch)
                yield at, batch
                del batch  # it may be large: free it before the next one is read

    def _rows_of_units(self, file: SourceFile, rows: int) -> list[int]:
        with closing(file.open_arrow()) as source:
            return _counts(source, pa.ipc.open_file(source).num_record_batches) or [rows]

    @property
    def reading_bytes(self) -> int:
        return max((self._largest_batch(file) for file in self._files if file.system is None), default=0)

    def _largest_batch(self, file: SourceFile) -> int:
        used = [name for name in self._columns.used if name not in self._partitions]
        with file.watched(self.kind), closing(file.open_arrow()) as source:
            is_file = is_file_format(source)
            opened = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
            try:
                return largest_batch(source, opened.schema, used, is_file)
            except struct.error as error:
                raise pa.ArrowInvalid(f"a header is damaged: {error}") from error

    def _batches_of(
        self, source: pa.NativeFile, size: int, names: list[str], span: Span
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        if is_file_format(source):
            yield from _batches_of_file(source, names, span)
            return
        check_stream_end(source, size)
        schema = pa.ipc.open_stream(source).schema
        source.seek(0)
        at = 0
        for batch in pa.ipc.open_stream(source, options=projection(schema, names)):
            yield at, batch
            at += batch.num_rows
            del batch
        if source.tell() != size:
            raise pa.ArrowInvalid(f"the stream ends at byte {source.tell()}, but the file has {size} bytes")


def _batches_of_file(
    source: pa.NativeFile, names: list[str], span: Span
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield record batches and their first row numbers; those outside the span are skipped if possible."""
    schema = pa.ipc.open_file(source).schema
    reader = pa.ipc.open_file(source, options=projection(schema, names))
    part = span.start > 0 or span.stop is not None
    counts = _counts(source, reader.num_record_batches) if part else None
    at = 0
    for i in range(reader.num_record_batches):
        if counts is not None and not (at + counts[i] > span.start and (span.stop is None or at < span.stop)):
            at += counts[i]
            continue
        batch = reader.get_batch(i)
        yield at, batch
        at += batch.num_rows
        del batch


def _counts(source: pa.NativeFile, batches: int) -> list[int] | None:
    try:
        return rows_of_batches(source, batches)
    except struct.error as error:
        raise pa.ArrowInvalid(f"a header is damaged: {error}") from error


def check_batch(batch: pa.RecordBatch) -> None:
    """Refuse invalid offsets, codes and lengths, which would lead to reads outside the buffers."""
    batch.validate()
    for column in batch.columns:
        if not pa.types.is_primitive(column.type):
            column.validate(full=True)


def projection(schema: pa.Schema, names: list[str]) -> pa.ipc.IpcReadOptions:
    # An empty list would mean all fields; one is read to count rows if all columns come from the path.
    fields = [schema.get_field_index(name) for name in names] or [0]
    return pa.ipc.IpcReadOptions(included_fields=fields)


def is_file_format(source: pa.NativeFile) -> bool:
    begin = source.read(len(FILE_MAGIC))
    source.seek(0)
    if begin.startswith(OLD_MAGIC):
        raise pa.ArrowInvalid("version 1 of the Feather format is not supported")
    return bool(begin == FILE_MAGIC)


def check_stream_end(source: pa.NativeFile, size: int) -> None:
    """Refuse a stream without its end marker: truncated between two messages, it would read as complete."""
    source.seek(max(0, size - len(STREAM_END)))
    end = source.read()
    source.seek(0)
    if end != STREAM_END:
        raise pa.ArrowInvalid("the end-of-stream marker is missing")


def read_to_count(file: SourceFile) -> int:
    """Count the rows of a file whose layout is unusual, as written by older versions."""
    import pyarrow.dataset as pa_dataset  # here, because it imports pandas

    system = None
    if file.system is not None:
        system = pa.fs.PyFileSystem(pa.fs.FSSpecHandler(file.system))
    return int(pa_dataset.dataset(file.place, format="ipc", filesystem=system).count_rows())
