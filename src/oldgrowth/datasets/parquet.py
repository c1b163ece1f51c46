"""Rows of Parquet files, read a few pages at a time, however large the row groups are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..system.memory import release_memory
from .base import Span
from .files import SourceFile
from .parquet_footer import LARGE_FOOTER, footer_length, metadata_bytes, read_head
from .table import labels_are_text
from .table_files import FilesDataset

EXTENSIONS = (".parquet", ".pq", ".parq")
# Read ahead for each column, and for all of them: what keeps a large row group out of memory.
BUFFER_BYTES, ALL_BUFFERS, LEAST_BUFFER = 1 << 18, 1 << 25, 1 << 14
PAGE_BYTES = 1 << 20  # of a column, unpacked: what writers make by default
ALLOCATED = 1.75  # times what was asked for: what Arrow's allocator takes for it
BATCH_BYTES = 1 << 22  # decoded at a time, at most
LARGE_METADATA = 1 << 24
DECODED_CHUNKS = 8  # chunks decoded at a time: each time costs something for every column


class ParquetDataset(FilesDataset):
    """Rows of Parquet files."""

    kind = "Parquet"

    def __init__(self, files: list[SourceFile], target: Any, features: Any, weight: Any) -> None:
        self._meta_bytes = self._column_bytes = 0
        super().__init__(files, target, features, weight)

    def _look(self, file: SourceFile) -> tuple[pa.Schema, int | None]:
        """Metadata is not kept: it may be larger than the data in memory."""
        with closing(file.open_arrow()) as source:
            length = footer_length(source)
            if length > LARGE_FOOTER:
                head = read_head(source, length)
                opened, rows, groups = head.opened(), head.rows, head.groups
                # Of row groups that are much alike; they may be packed.
                largest = 4 * (file.size - length) // max(1, groups)
            else:
                opened = pq.ParquetFile(source)
                meta = opened.metadata
                rows, groups = sum(rows_of_groups(meta)), meta.num_row_groups
                largest = max((meta.row_group(i).total_byte_size for i in range(groups)), default=0)
            width = max(1, opened.metadata.num_columns)
            self._meta_bytes = max(self._meta_bytes, metadata_bytes(length, groups * width))
            self._column_bytes = max(self._column_bytes, largest // width)
            return opened.schema_arrow.remove_metadata(), int(rows)

    def _rows_of_units(self, file: SourceFile, rows: int) -> list[int]:
        with closing(file.open_arrow()) as source, released(self._meta_bytes):
            return rows_of_groups(pq.ParquetFile(source).metadata)

    @property
    def reading_bytes(self) -> int:
        """The metadata of a file, and of each column what is read ahead, a dictionary and a page."""
        columns = len(self._columns.used)
        column = _buffer_bytes(columns) + min(self._column_bytes, 2 * PAGE_BYTES)
        return self._meta_bytes + int(ALLOCATED * columns * column) + 2 * BATCH_BYTES

    def _row_bytes(self, names: list[str]) -> int:
        """Bytes of a decoded row, about."""
        types = [self._schema.field(name).type for name in names]
        return 1 + sum(kind.bit_width // 8 if pa.types.is_primitive(kind) else 16 for kind in types)

    def _read(
        self, file: SourceFile, names: list[str], rows: int, span: Span
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        text = [name for name in names if name == self.target and labels_are_text(self._schema, name)]
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
            wanted = max(1024, min(DECODED_CHUNKS * rows, BATCH_BYTES // self._row_bytes(names)))
            left = list(range(group, min(last, len(ends))))
            for batch in opened.iter_batches(wanted, row_groups=left, columns=names):
                yield at, batch
                at += batch.num_rows
            del opened


def rows_of_groups(meta: pq.FileMetaData) -> list[int]:
    counts = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
    if sum(counts) != meta.num_rows or min(counts, default=0) < 0:
        raise pa.ArrowInvalid(f"its row groups have {sum(counts)} rows, the file {meta.num_rows}")
    return counts


@contextmanager
def released(metadata: int) -> Iterator[None]:
    """Give large metadata back to the system when a file was read: malloc would keep its many pieces."""
    try:
        yield
    finally:
        if metadata > LARGE_METADATA:
            release_memory()


def _buffer_bytes(n_columns: int) -> int:
    return max(LEAST_BUFFER, min(BUFFER_BYTES, ALL_BUFFERS // max(1, n_columns)))
