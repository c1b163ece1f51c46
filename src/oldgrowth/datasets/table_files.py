"""Datasets of one or more files with named columns: the base class of Parquet, Arrow IPC and CSV datasets."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, Self

import pyarrow as pa

from ..errors import ChangedSourceError, DifferentFilesError, NoDataError
from .base import Partition, shortened
from .batches import Span
from .columns import Columns, check_columns, check_same, choose_columns, with_types_of
from .files import SourceFile
from .odd_texts import ODD_LEVEL, odd_levels
from .partition_edges import nearest_edges
from .table import TableDataset


class FilesDataset(TableDataset):
    """Rows of files in sequence; directories named key=value are columns too."""

    kind: str
    _skipped = 0  # rows of the first file before the first row of the partition
    _odd_levels: Sequence[str] = ()  # columns whose numbers are read with their text

    def __init__(self, files: list[SourceFile], target: Any, features: Any, weight: Any) -> None:
        self._files = files
        self._partitions = partition_types(files, target)
        first = files[0]
        columns: Columns | None = None
        rows: list[int | None] = []
        for file in files:
            with file.watched(self.kind):
                own, count = self._look(file)
            schema = self._with_partitions(own)
            if columns is None:
                whole = schema
                columns = choose_columns(schema, target, features, weight, file.path)
            else:
                check_same(whole, first.path, schema, file.path, columns)
                whole = with_types_of(whole, schema)
            rows.append(count)
        assert columns is not None
        check_columns(whole, columns, self._where)
        known = [count for count in rows if count is not None]
        total = sum(known) if len(known) == len(rows) else None
        if total == 0:
            raise NoDataError(self._where, "it has no rows")
        self._file_rows = rows
        super().__init__(whole, columns, total, sum(file.size for file in files))

    def _look(self, file: SourceFile) -> tuple[pa.Schema, int | None]:
        """Return the columns of a file and its number of rows, if known without reading the file."""
        raise NotImplementedError

    def _read(
        self, file: SourceFile, names: list[str], rows: int, span: Span
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches of a file and the number of their first row; rows outside the span may be omitted."""
        raise NotImplementedError

    def _rows_of_units(self, file: SourceFile, rows: int) -> list[int]:
        """The number of rows of each part of a file of `rows` rows that can be read independently."""
        return [rows]

    def _cut(self, n: int) -> list[Partition]:
        known = [rows for rows in self._file_rows if rows is not None]
        if len(known) < len(self._files):
            return self._cut_between_files(n)
        first = self.first_row - self._skipped
        units = [0]
        for file, rows in zip(self._files, known, strict=True):
            with file.watched(self.kind):
                units += self._rows_of_units(file, rows)
        stop = first + sum(known) if self._stop is None else self._stop
        edges = [min(max(first + rows, self.first_row), stop) for rows in accumulate(units)]
        parts = [self._part(start, stop) for start, stop in pairwise(nearest_edges(edges, n))]
        return [Partition(part, part.first_row, part.n_rows) for part in parts]

    def _cut_between_files(self, n: int) -> list[Partition]:
        """Group files so that partitions have about the same number of bytes."""
        places = list(accumulate((max(1, file.size) for file in self._files), initial=0))
        edges = [places.index(edge) for edge in nearest_edges(places, n)]
        return [Partition(self._with_files(first, last), None, None) for first, last in pairwise(edges)]

    def _part(self, start: int, stop: int) -> FilesDataset:
        ends = list(
            accumulate((rows or 0 for rows in self._file_rows), initial=self.first_row - self._skipped)
        )
        first = max(i for i, end in enumerate(ends[:-1]) if end <= start or i == 0)
        last = max(first + 1, sum(end < stop for end in ends[:-1]))
        part = self._with_files(first, last)
        part._skipped = start - ends[first]
        part.first_row, part.n_rows = start, stop - start
        return part

    def _with_files(self, first: int, last: int) -> FilesDataset:
        """The dataset restricted to these files."""
        part = copy.copy(self)
        part._files, part._file_rows = self._files[first:last], self._file_rows[first:last]
        part.nbytes = sum(file.size for file in part._files)
        part.n_rows, part._is_part = None, True
        return part

    def _tables(
        self, names: tuple[str, ...], rows: int, span: Span
    ) -> Iterator[tuple[int, str, pa.RecordBatch]]:
        before = self.first_row - self._skipped
        for i, file in enumerate(self._files):
            known = self._file_rows[i]
            if known is not None and before + known <= span.start:
                before += known
                continue
            if span.stop is not None and before >= span.stop and self._is_part:
                return
            own = [name for name in names if name not in self._partitions]
            end = 0
            with file.watched(self.kind):
                for first, batch in self._read(file, own, rows, span.within(before)):
                    end = first + batch.num_rows
                    yield before + first, file.path, self._add_partitions(batch, file, names)
                    del batch
            if (
                known is not None
                and end != known
                and not (span.stop is not None and span.stop <= before + end)
            ):
                raise ChangedSourceError(file.path, f"it had {known:,} rows and now has {end:,}")
            if known is None:
                self._file_rows[i] = end
            before += end

    def _with_partitions(self, schema: pa.Schema) -> pa.Schema:
        for name in [name for name in self._partitions if name in schema.names]:
            del self._partitions[name]  # a column in the file takes precedence
        return pa.schema([*schema, *(pa.field(name, kind) for name, kind in self._partitions.items())])

    def _add_partitions(
        self, batch: pa.RecordBatch, file: SourceFile, names: Sequence[str]
    ) -> pa.RecordBatch:
        wanted = [name for name in names if name in self._partitions]
        if not wanted:
            return batch
        arrays = {name: batch.column(name) for name in batch.schema.names}
        for name in wanted:
            kind = self._partitions[name]
            text = pa.scalar(file.partition[name], pa.string())
            arrays[name] = pa.repeat(text.cast(kind), batch.num_rows)
            if name in self._odd_levels and kind != pa.string() and re.search(ODD_LEVEL, text.as_py() or ""):
                arrays[odd_levels(name)] = pa.repeat(text, batch.num_rows)
        return pa.RecordBatch.from_pydict(arrays)

    def _with_odd_levels(self, names: Sequence[str]) -> Self:
        written = copy.copy(self)
        written._odd_levels = names
        return written

    @property
    def _where(self) -> str:
        return (
            self._files[0].path if len(self._files) == 1 else f"the {len(self._files)} files of the dataset"
        )

    def _described(self) -> list[tuple[str, str]]:
        return [("files", shortened([file.path for file in self._files], 3)), *super()._described()]

    def fingerprint(self) -> dict[str, Any]:
        return {"kind": self.kind, "files": [file.described() for file in self._files], **self._roles()}


def partition_types(files: list[SourceFile], target: Any) -> dict[str, pa.DataType]:
    """The types of key=value columns: int64 or float64 if all values are numbers, else string.

    Labels are strings as well if two of them would be the same number, such as 07 and 7.
    """
    first = files[0]
    for file in files:
        for name in first.partition.keys() ^ file.partition.keys():
            here = name in file.partition
            what = (
                "is a key=value directory, but not in" if here else "is missing, but a key=value directory in"
            )
            raise DifferentFilesError(file.path, name, what, first.path)
    return {
        name: _narrowest([file.partition[name] for file in files], name == target) for name in first.partition
    }


def _narrowest(values: list[str | None], apart: bool) -> pa.DataType:
    text = pa.array(values, pa.string()).unique()
    for kind in (pa.int64(), pa.float64()):
        try:
            numbers = text.cast(kind)
        except pa.ArrowInvalid:
            continue
        if not apart or len(set(numbers.to_pylist())) == len(
            text
        ):  # unique of Arrow distinguishes 0.0 and -0.0
            return kind
    return pa.string()
