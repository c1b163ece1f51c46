"""Rows of Parquet files, read a few pages at a time, however large the row groups are."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..system.memory import release_memory
from .batches import Span
from .files import SourceFile
from .parquet_footer import LARGE_FOOTER, footer_length, metadata_bytes, read_head
from .parquet_pages import column_bytes, unknown_column_bytes
from .table import labels_are_text
from .table_files import FilesDataset

EXTENSIONS = (".parquet", ".pq", ".parq")
# Maximum read-ahead for each column and for all columns, and minimum for a column: row groups may be large.
BUFFER_BYTES, ALL_BUFFERS, LEAST_BUFFER = 1 << 18, 1 << 25, 1 << 14
ALLOCATED = 1.3  # measured ratio of memory that Arrow allocates to the size of dictionaries and pages
LEAST_WIDTH = 4  # minimum bytes of a number in Parquet
# Maximum bytes and rows decoded at a time: more for many columns and where there is much memory, as each call
# has a cost per column.
BATCH_BYTES, MOST_BATCH_BYTES, BATCH_ROWS = 1 << 22, 1 << 23, 4096
LARGE_BATCH_BYTES, MUCH_MEMORY = 1 << 24, 1 << 29
# Measured maximum memory for decoding, as a multiple of the decoded rows.
DECODED_FORMS = 6
LARGE_METADATA = 1 << 24
DECODED_CHUNKS = 8  # chunks decoded at a time, because each call has a cost per column


class ParquetDataset(FilesDataset):
    """Rows of Parquet files."""

    kind = "Parquet"
    _batch_bytes = BATCH_BYTES

    def __init__(self, files: list[SourceFile], target: Any, features: Any, weight: Any) -> None:
        self._meta_bytes = 0
        self._largest_group = -1
        self._column_bytes: dict[str, int] = {}  # of the largest row group
        super().__init__(files, target, features, weight)

    def _look(self, file: SourceFile) -> tuple[pa.Schema, int | None]:
        """Read the schema and the number of rows. Metadata is not kept: it can be larger than the data."""
        with closing(file.open_arrow()) as source:
            length = footer_length(source)
            if length > LARGE_FOOTER:
                head = read_head(source, length)
                opened, rows, groups = head.opened(), head.rows, head.groups
                # Assumes row groups of similar size, compressed to a quarter.
                largest = 4 * (file.size - length) // max(1, groups)
                if largest > self._largest_group:
                    column = unknown_column_bytes(largest // max(1, opened.metadata.num_columns))
                    self._largest_group = largest
                    self._column_bytes = dict.fromkeys(opened.schema_arrow.names, column)
            else:
                opened = pq.ParquetFile(source)
                meta = opened.metadata
                rows, groups = sum(rows_of_groups(meta)), meta.num_row_groups
                self._look_at_pages(source, opened)
            self._meta_bytes = max(
                self._meta_bytes, metadata_bytes(length, groups * opened.metadata.num_columns)
            )
            return opened.schema_arrow.remove_metadata(), int(rows)

    def _rows_of_units(self, file: SourceFile, rows: int) -> list[int]:
        with closing(file.open_arrow()) as source, released(self._meta_bytes):
            return rows_of_groups(pq.ParquetFile(source).metadata)

    def _look_at_pages(self, source: pa.NativeFile, opened: pq.ParquetFile) -> None:
        """Record the memory that the columns of the largest row group so far take."""
        meta = opened.metadata
        sizes = [meta.row_group(i).total_byte_size for i in range(meta.num_row_groups)]
        if sizes and max(sizes) > self._largest_group:
            self._largest_group = max(sizes)
            group = meta.row_group(sizes.index(self._largest_group))
            self._column_bytes = {}
            for i, taken in enumerate(column_bytes(source, group)):
                name = opened.schema.column(i).path.split(".")[0]
                self._column_bytes[name] = self._column_bytes.get(name, 0) + taken

    @property
    def reading_bytes(self) -> int:
        """The metadata of a file, and the read-ahead, a dictionary and a page of each column."""
        names = self._columns.used
        usual = max(self._column_bytes.values(), default=0)  # for names with a dot
        columns = sum(self._column_bytes.get(name, usual) for name in names)
        buffers = len(names) * _buffer_bytes(len(names))
        decoding = DECODED_FORMS * min(self._batch_bytes, self._row_bytes(names) * (self.n_rows or 0))
        return self._meta_bytes + int(ALLOCATED * columns) + buffers + decoding

    def within_memory(self, room: int) -> ParquetDataset:
        large = copy.copy(self)
        large._batch_bytes = LARGE_BATCH_BYTES if room >= MUCH_MEMORY else BATCH_BYTES
        return large

    def _row_bytes(self, names: Sequence[str]) -> int:
        """Approximate size in bytes of a decoded row."""
        return 1 + sum(self._widths[name] for name in names)

    @cached_property
    def _widths(self) -> dict[str, int]:
        """Approximate size in bytes of a decoded value of each column."""
        types = [(field.name, field.type) for field in self._schema]
        widths = ((name, kind.bit_width // 8 if pa.types.is_primitive(kind) else 16) for name, kind in types)
        return {name: max(LEAST_WIDTH, width) for name, width in widths}

    def _read(
        self, file: SourceFile, names: list[str], rows: int, span: Span
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        coded = {self.target, *(self._columns.features[place] for place in self.text_features)}
        text = [name for name in names if name in coded and labels_are_text(self._schema, name)]
        with closing(file.open_arrow()) as source, released(self._meta_bytes):
            opened = pq.ParquetFile(
                source,
                pre_buffer=False,
                buffer_size=_buffer_bytes(len(names)),
                read_dictionary=text,
                page_checksum_verification=True,
            )
            ends = np.cumsum(rows_of_groups(opened.metadata), dtype=np.int64)
            group = int(np.searchsorted(ends, span.start, side="right"))
            last = len(ends) if span.stop is None else int(np.searchsorted(ends, span.stop)) + 1
            at = int(ends[group - 1]) if group else 0
            most_bytes = max(self._batch_bytes, _bytes_for_columns(len(names)))
            wanted = max(1024, min(DECODED_CHUNKS * rows, most_bytes // self._row_bytes(names)))
            left = list(range(group, min(last, len(ends))))
            for batch in opened.iter_batches(wanted, row_groups=left, columns=names):
                yield at, batch
                at += batch.num_rows
            del opened


def rows_of_groups(meta: pq.FileMetaData) -> list[int]:
    counts = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
    if sum(counts) != meta.num_rows or min(counts, default=0) < 0:
        raise pa.ArrowInvalid(f"its row groups have {sum(counts):,} rows, but the file has {meta.num_rows:,}")
    return counts


@contextmanager
def released(metadata: int) -> Iterator[None]:
    """Return the memory of large metadata to the system after reading; malloc would keep its many pieces."""
    try:
        yield
    finally:
        if metadata > LARGE_METADATA:
            release_memory()


def _buffer_bytes(n_columns: int) -> int:
    return max(LEAST_BUFFER, min(BUFFER_BYTES, ALL_BUFFERS // max(1, n_columns)))


def _bytes_for_columns(n_columns: int) -> int:
    return min(MOST_BATCH_BYTES, LEAST_WIDTH * n_columns * BATCH_ROWS)
