"""Rows of CSV files, compressed by gzip or not; each line is checked against the types of its columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.csv as pa_csv

from ..errors import BadValueError, BrokenLineError, NoDataError, ParameterError
from .files import SourceFile
from .labels import type_class
from .table_files import FilesDataset

EXTENSIONS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
BLOCK_BYTES = 1 << 22
FIRST_LINE = 2  # after the header
ROW = re.compile(r"Row #(\d+): (.*)", re.DOTALL)
COLUMN = re.compile(r"In CSV column #(\d+): ")


class CSVDataset(FilesDataset):
    """Rows of CSV files with a header; features are read as float64, whatever their first lines look like."""

    kind = "CSV"

    def __init__(
        self,
        files: list[SourceFile],
        target: Any,
        features: Any,
        weight: Any,
        delimiter: str | None = None,
        missing: Sequence[str] | None = None,
        types: dict[str, Any] | None = None,
    ) -> None:
        tabs = files[0].path.lower().endswith((".tsv", ".tsv.gz"))
        if delimiter is not None and len(delimiter) != 1:
            raise ParameterError("delimiter", delimiter, "a single character")
        self._delimiter = delimiter or ("\t" if tabs else ",")
        self._missing = None if missing is None else list(missing)
        self._given_types = {name: _arrow_type(kind) for name, kind in (types or {}).items()}
        self._headers: dict[str, list[str]] = {}
        self._asked = (target, weight, features)
        super().__init__(files, target, features, weight)

    def _look(self, file: SourceFile) -> tuple[pa.Schema, int | None]:
        with self._explained(file, {}), closing(self._open(file, {}, None)) as reader:
            schema = reader.schema
        self._headers[file.path] = schema.names
        for field in schema:
            if type_class(field.type) in ("text", "other") and self._is_feature(field.name):
                self._check_numbers(file, field.name)
        return pa.schema([pa.field(field.name, self._type(field)) for field in schema]), None

    def _type(self, field: pa.Field) -> pa.DataType:
        """A decimal point may come only later in the file, and the first values may all be missing."""
        if field.name in self._given_types:
            return self._given_types[field.name]
        kind = type_class(field.type)
        if field.name == self._asked[0]:
            return pa.string() if kind in ("other", "null") else field.type
        return pa.float64() if kind in ("whole", "null") else field.type

    def _is_feature(self, name: str) -> bool:
        target, weight, features = self._asked
        if name in self._given_types or name in (target, weight):
            return False
        return features is None or name in features

    def _check_numbers(self, file: SourceFile, name: str) -> None:
        """A column that begins with a number is one of numbers: name the line that is none, not the type."""
        try:
            self._explain(file, {name: pa.float64()}, pa.ArrowInvalid(""))
        except BadValueError as error:
            if error.line > FIRST_LINE:
                raise
        except pa.ArrowInvalid:
            pass  # the value is not in the first block, which is what types are guessed from

    def _read(
        self, file: SourceFile, names: list[str], rows: int, skip: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        types = {name: self._schema.field(name).type for name in names}
        at = 0
        with self._explained(file, types), closing(self._open(file, types, names)) as reader:
            for batch in reader:
                yield at, batch
                at += batch.num_rows

    def _open(
        self, file: SourceFile, types: dict[str, pa.DataType], names: list[str] | None, threads: bool = True
    ) -> pa_csv.CSVStreamingReader:
        source = file.open_arrow()
        if file.path.lower().endswith(".gz"):
            source = pa.CompressedInputStream(source, "gzip")
        convert = pa_csv.ConvertOptions(
            column_types={**self._given_types, **types},
            include_columns=names or [],
            null_values=self._missing,
            strings_can_be_null=True,
        )
        return pa_csv.open_csv(
            source,
            read_options=pa_csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=threads),
            parse_options=pa_csv.ParseOptions(delimiter=self._delimiter),
            convert_options=convert,
        )

    @contextmanager
    def _explained(self, file: SourceFile, types: dict[str, pa.DataType]) -> Iterator[None]:
        try:
            yield
        except pa.ArrowInvalid as error:
            file.check_unchanged()
            if "Empty CSV" in str(error):
                raise NoDataError(file.path, "it is empty") from error
            self._explain(file, types, error)

    def _explain(self, file: SourceFile, types: dict[str, pa.DataType], error: pa.ArrowInvalid) -> NoReturn:
        """Find the line of an error: only one thread alone counts lines, so read once more with one."""
        try:
            with closing(self._open(file, types, list(types), threads=False)) as reader:
                for _ in reader:
                    pass
        except pa.ArrowInvalid as counted:
            error = counted
        row, column = ROW.search(str(error)), COLUMN.search(str(error))
        if row is None:
            raise error
        what = " ".join(row[2].split())
        if column is None:
            raise BrokenLineError(file.path, int(row[1]), what) from error
        raise BadValueError(file.path, int(row[1]), self._name(file, types, int(column[1])), what) from error

    def _name(self, file: SourceFile, types: dict[str, pa.DataType], number: int) -> str:
        names = self._headers.get(file.path, list(types))
        return names[number] if number < len(names) else f"#{number}"


def _arrow_type(kind: Any) -> pa.DataType:
    if isinstance(kind, pa.DataType):
        return kind
    try:
        return pa.type_for_alias(str(kind))
    except ValueError as error:
        raise ParameterError(
            "types", kind, "names of Arrow types such as float64, int64, bool or string"
        ) from error
