"""Memory that reading a column of a Parquet file takes: its dictionary, a page, and what is read ahead."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from .thrift import Cursor

PAGE_BYTES = 1 << 20  # of a column, decompressed: what writers make by default, also of a dictionary
HEADER_BYTES = 1 << 12  # of a page, at most, as far as it is read here
MOST_HEADERS = 16  # columns whose first page is looked at
# Fields of a page's header.
_UNCOMPRESSED_SIZE, _DATA_PAGE, _DATA_PAGE_2, _NUM_VALUES = 2, 5, 8, 1


def column_bytes(source: pa.NativeFile, group: pq.RowGroupMetaData) -> list[int]:
    """Memory for each column of a row group, beside what is read ahead.

    A dictionary is held as it is in the file and decoded. Some columns' headers tell how many rows the pages
    have, and how well the dictionaries are compressed.
    """
    columns = [group.column(i) for i in range(group.num_columns)]
    sample = columns[:: max(1, len(columns) // MOST_HEADERS)]
    page_rows = max((_first_page_rows(source, column) for column in sample), default=0)
    expansion = _dictionary_expansion(source, [column for column in sample if _dictionary_bytes(column)])
    return [_column_bytes(column, page_rows, expansion) for column in columns]


def unknown_column_bytes(total: int) -> int:
    """Memory for a column of which only its size in a row group is known."""
    return min(2 * total, 3 * PAGE_BYTES)


def _column_bytes(column: pq.ColumnChunkMetaData, page_rows: int, expansion: float) -> int:
    total, rows = column.total_uncompressed_size, max(1, column.num_values)
    dictionary = int(min(total, PAGE_BYTES, expansion * _dictionary_bytes(column)))
    page = (total - dictionary) * min(page_rows, rows) // rows
    return 2 * dictionary + page


def _dictionary_bytes(column: pq.ColumnChunkMetaData) -> int:
    """Bytes of a column's dictionary in the file."""
    if column.dictionary_page_offset is None:
        return 0
    return max(0, column.data_page_offset - column.dictionary_page_offset)


def _dictionary_expansion(source: pa.NativeFile, columns: list[pq.ColumnChunkMetaData]) -> float:
    """How much larger dictionaries are in memory than in the file."""
    path, sizes = [{_UNCOMPRESSED_SIZE}], [_dictionary_bytes(column) for column in columns]
    decompressed = [
        _in_header(source, column.dictionary_page_offset, path, size)
        for column, size in zip(columns, sizes, strict=True)
    ]
    return max(1.0, sum(decompressed) / max(1, sum(sizes)))


def _first_page_rows(source: pa.NativeFile, column: pq.ColumnChunkMetaData) -> int:
    """Rows of a column's first page of data; all of them where its header cannot be read."""
    path = [{_DATA_PAGE, _DATA_PAGE_2}, {_NUM_VALUES}]
    return _in_header(source, column.data_page_offset, path, column.num_values)


def _in_header(source: pa.NativeFile, offset: int, path: list[set[int]], otherwise: int) -> int:
    """A number in the header of the page at an offset: one of these fields of a struct, then one within."""
    source.seek(offset)
    at = Cursor(bytes(source.read(HEADER_BYTES)))
    try:
        for wanted in path:
            field, kind = at.field(0)
            while kind != 0 and field not in wanted:
                at.skip(kind)
                field, kind = at.field(field)
            if kind == 0:
                return otherwise
        return at.zigzag()
    except (IndexError, pa.ArrowInvalid):
        return otherwise
