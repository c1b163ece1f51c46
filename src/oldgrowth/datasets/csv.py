"""Rows of CSV files, compressed by gzip or not; each line is checked against the types of its columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.csv as pa_csv

from ..errors import BadValueError, BrokenLineError, MissingColumnError, NoDataError, ParameterError
from .columns import AllBut
from .files import SourceFile
from .labels import type_class
from .table_files import FilesDataset

EXTENSIONS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
BLOCK_BYTES = 1 << 22
FIRST_LINE = 2  # after the header
ROW = re.compile(r"Row #(\d+): (.*)", re.DOTALL)
MOST_EXPLAINED = 20  # columns of text whose first text is looked for: each takes a pass over the file
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
        missing: Any = None,
        types: dict[str, Any] | None = None,
    ) -> None:
        tabs = files[0].path.lower().endswith((".tsv", ".tsv.gz"))
        if delimiter is not None and len(delimiter) != 1:
            raise ParameterError("delimiter", delimiter, "a single character")
        self._delimiter = delimiter or ("\t" if tabs else ",")
        self._missing = _texts(missing)
        self._given_types = {name: _arrow_type(kind) for name, kind in (types or {}).items()}
        self._headers: dict[str, list[str]] = {}
        self._asked = (target, weight, features)
        super().__init__(files, target, features, weight)
        known = set(self._schema.names)
        for name in self._given_types:
            if name not in known:
                raise MissingColumnError(name, self._where, self._schema.names)

    def _look(self, file: SourceFile) -> tuple[pa.Schema, int | None]:
        with self._explained(file, {}), closing(self._open(file, {}, None)) as reader:
            schema = reader.schema
        self._headers[file.path] = schema.names
        text = [field.name for field in schema if type_class(field.type) in ("text", "other")]
        for name in self._features_of(text)[:MOST_EXPLAINED]:
            self._check_numbers(file, name)
        return pa.schema([pa.field(field.name, self._type(field)) for field in schema]), None

    def _type(self, field: pa.Field) -> pa.DataType:
        """A decimal point may come only later in the file, and the first values may all be missing."""
        if field.name in self._given_types:
            return self._given_types[field.name]
        kind = type_class(field.type)
        if field.name == self._asked[0]:
            return pa.string() if kind in ("other", "null") else field.type
        return pa.float64() if kind in ("whole", "null") else field.type

    def _features_of(self, names: list[str]) -> list[str]:
        """Which of these columns are features whose types nobody gave."""
        target, weight, features = self._asked
        others = {target, weight, *self._given_types}
        if isinstance(features, AllBut):
            others.update(features)
        elif features is not None:
            others.update(set(names).difference(features))
        return [name for name in names if name not in others]

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


def _texts(missing: Any) -> list[str] | None:
    """The texts of missing values; one alone need not be in a list."""
    if missing is None:
        return None
    texts = [missing] if isinstance(missing, str) else missing
    if not isinstance(texts, Collection) or not all(isinstance(text, str) for text in texts):
        raise ParameterError("missing", missing, "a text such as '-9', or a list of them")
    return list(texts)


def _arrow_type(kind: Any) -> pa.DataType:
    if isinstance(kind, pa.DataType):
        return kind
    try:
        return pa.type_for_alias(str(kind))
    except ValueError as error:
        raise ParameterError(
            "types", kind, "names of Arrow types such as float64, int64, bool or string"
        ) from error
