"""Rows of CSV files, compressed or not. Each value is checked against the type of its column."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import islice
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.csv as pa_csv

from ..errors import (
    BadValueError,
    BrokenLineError,
    DecimalCommaError,
    EncodingError,
    HeaderError,
    MissingColumnError,
    NoDataError,
    ParameterError,
    UnclosedQuoteError,
)
from ..messages.text import counted, human_bytes
from .batches import Span
from .columns import AllBut, check_names
from .csv_end import MarkedReader
from .csv_options import CSVOptions
from .csv_text import FIRST_BYTES, records, refuse_other_text
from .files import SourceFile
from .labels import type_class
from .odd_texts import with_odd_levels, with_odd_texts
from .sniffing import codec_of, refuse_foreign
from .table_files import FilesDataset

EXTENSIONS = tuple(end + packed for end in (".csv", ".tsv") for packed in ("", ".gz", ".bz2", ".zst"))
BLOCK_BYTES = 1 << 22
# Blocks that Arrow reads, parses and converts at the same time, in addition to two per thread. Threads beyond
# MOST_THREADS are idle.
BLOCKS_AT_ONCE, MOST_THREADS = 18, 16
UNPACKED = 8  # maximum ratio of memory for all blocks of a small file to its size
LINES_BYTES = 1 << 16  # bytes of a file from which the length of its lines is estimated
ROWS_VARY = 1.2  # safety factor for the number of rows estimated from the first lines
ROW = re.compile(r"Row #(\d+): (.*)", re.DOTALL)
MOST_EXPLAINED = 20  # text columns in which the first non-number is searched: each takes a pass over the file
COLUMN = re.compile(r"In CSV column #(\d+): ")
VALUE = re.compile(r"CSV conversion error to (.*?): invalid value '(.*)'", re.DOTALL)
COMMA = re.compile(r"\s*[-+]?\d*,\d+(?:[eE][-+]?\d+)?\s*")
WIDTH = re.compile(r"Expected (\d+) columns?, got (\d+)(?:: )?(.*)", re.DOTALL)


class CSVDataset(FilesDataset):
    """Rows of CSV files. Features are read as float64, even if their first values are whole numbers."""

    kind = "CSV"

    def __init__(
        self, files: list[SourceFile], target: Any, features: Any, weight: Any, **options: Any
    ) -> None:
        self._options = CSVOptions(**options)
        self._parsing = self._options.parsing(".tsv" in files[0].path.lower()[-9:])
        self._codecs: dict[str, str | None] = {}
        self._line_bytes = math.inf  # mean length of the first lines, in the file where it is smallest
        self._headers: dict[str, list[str]] = {}
        if self._options.header is False:  # columns are named by their numbers
            target, weight = _numbered(target), _numbered(weight)
            features = features if isinstance(features, AllBut) else _numbered(features)
        check_names(target, features, weight, files[0].path)
        self._asked = (target, weight, features)
        super().__init__(files, target, features, weight)
        if target is not None and pa.types.is_null(self._schema.field(target).type):
            column = pa.field(target, pa.string())  # no file has values in its first block
            self._schema = self._schema.set(self._schema.get_field_index(target), column)
        known = set(self._schema.names)
        unknown = [name for name in self._options.types if name not in known]
        if unknown:
            raise MissingColumnError(unknown, self._where, self._schema.names)

    def _with_files(self, first: int, last: int) -> FilesDataset:
        part = super()._with_files(first, last)
        assert isinstance(part, CSVDataset)
        paths = {file.path for file in part._files}
        part._codecs = {path: codec for path, codec in self._codecs.items() if path in paths}
        part._headers = {path: names for path, names in self._headers.items() if path in paths}
        return part

    @property
    def expected_rows(self) -> int | None:
        """An estimate from the length of the first lines, with some margin."""
        if self.n_rows is not None or self.nbytes is None or any(self._codecs.values()):
            return self.n_rows
        return int(ROWS_VARY * self.nbytes / self._line_bytes)

    @property
    def reading_bytes(self) -> int:
        """Blocks of a file in all stages of reading, or the whole of a small file."""
        blocks = BLOCKS_AT_ONCE + 2 * min(pa.cpu_count(), MOST_THREADS)
        packed = any(self._codecs.values())
        return blocks * BLOCK_BYTES if packed else min(blocks * BLOCK_BYTES, UNPACKED * (self.nbytes or 0))

    def _look(self, file: SourceFile) -> tuple[pa.Schema, int | None]:
        self._sniff(file)
        with self._explained(file, {}), self._opened(file, {}, []) as reader:
            schema = reader.schema
            self._headers[file.path] = schema.names
        self._check_header(file, schema.names)
        text = [field.name for field in schema if type_class(field.type) in ("text", "other")]
        for name in self._features_of(text)[:MOST_EXPLAINED]:
            self._check_numbers(file, name)
        return pa.schema([pa.field(field.name, self._type(field)) for field in schema]), None

    def _sniff(self, file: SourceFile) -> None:
        """Detect the compression of a file, and refuse it if its first bytes are not text as expected."""
        self._codecs[file.path] = codec_of(file)
        with file.watched(self.kind), closing(self._stream(file)) as stream:
            lines = bytes(stream.read(LINES_BYTES))
        self._line_bytes = min(self._line_bytes, len(lines) / max(1, lines.count(b"\n")))
        begin = lines[:FIRST_BYTES]
        refuse_foreign(file, begin)
        if self._options.encoding is None:
            refuse_other_text(file, begin)
        if self._options.header is False:
            with self._explained(file, {}), self._opened(file, {}, []) as reader:
                self._headers[file.path] = [str(i) for i in range(len(reader.schema))]

    def _check_header(self, file: SourceFile, names: list[str]) -> None:
        """Refuse a header that does not look like one."""
        options = self._options
        if options.delimiter is None and len(names) == 1:
            other = next((mark for mark in ";\t|" if mark in names[0]), None)
            if other is not None:
                raise HeaderError(
                    file.path,
                    f"is a single name, {names[0]!r}: if {other!r} separates columns",
                    "delimiter",
                    other,
                )
        counted = names == [str(i) for i in range(len(names))]
        if options.header is None and not counted and all(map(_is_number, names)):
            raise HeaderError(
                file.path, "contains numbers, not column names: if it is a row", "header", False
            )

    def _type(self, field: pa.Field) -> pa.DataType:
        """The type to read a column as: the first values may be missing, or whole by chance."""
        if field.name in self._options.types:
            return self._options.types[field.name]
        kind = type_class(field.type)
        if pa.types.is_binary(field.type):
            return pa.string()  # in another encoding: an error when the column is read
        if field.name == self._asked[0]:
            return pa.string() if kind == "other" else field.type
        return pa.float64() if kind in ("whole", "null") else field.type

    def _features_of(self, names: list[str]) -> list[str]:
        """Those of these columns that are features without a given type."""
        target, weight, features = self._asked
        others = {target, weight, *self._options.types}
        if isinstance(features, AllBut):
            others.update(features)
        elif features is not None:
            others.update(set(names).difference(features))
        return [name for name in names if name not in others]

    def _record(self, file: SourceFile, number: int) -> tuple[int, list[str]]:
        """The first line, counted from 1, and the values of a record of a file."""
        delimiter = self._parsing.delimiter
        with closing(self._stream(file)) as stream:
            found = records(stream, self._options.encoding, delimiter)
            return next(islice(found, number - 1, None), (number, []))

    def _check_numbers(self, file: SourceFile, name: str) -> None:
        """Report the first line that is not a number in a column that starts with a number."""
        text = {name: pa.string()}
        with self._explained(file, text), self._opened(file, text, [name]) as reader:
            begin = next(iter(reader), None)
        first = None if begin is None else begin.column(0).drop_null()[:1]
        if first is None or not len(first) or not _is_number(first[0].as_py()):
            return
        with suppress(pa.ArrowInvalid):  # the value is not in the first block, from which types are inferred
            self._explain(file, {name: pa.float64()}, pa.ArrowInvalid(""))

    def _read(
        self, file: SourceFile, names: list[str], rows: int, span: Span
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        types = {name: self._schema.field(name).type for name in names}
        target = self.target if self._may_be_odd(types) else None
        levels = [name for name in names if self._may_be_odd_level(name, types[name])]
        read_as = types | dict.fromkeys([*levels, *([] if target is None else [target])], pa.string())
        at = 0
        with self._explained(file, types), self._opened(file, read_as, names) as reader:
            for batch in reader:
                if target is not None:
                    batch = with_odd_texts(batch, target, types[target], self._options.decimal)
                for name in levels:
                    batch = with_odd_levels(batch, name, types[name], self._options.decimal)
                yield at, batch
                at += batch.num_rows
            if not reader.seen:
                raise UnclosedQuoteError(file.path, f"ends inside a quoted value, in row {at - 1}")

    def _may_be_odd(self, types: dict[str, pa.DataType]) -> bool:
        """Whether labels are read as numbers although no type was given."""
        return (
            self.target in types
            and self.target not in self._options.types
            and type_class(types[self.target]) in ("whole", "float", "bool")
        )

    def _may_be_odd_level(self, name: str, kind: pa.DataType) -> bool:
        """Whether levels are read as numbers although no type was given."""
        given = name in self._options.types
        return name in self._odd_levels and not given and type_class(kind) in ("whole", "float")

    @contextmanager
    def _opened(
        self, file: SourceFile, types: dict[str, pa.DataType], names: list[str], threads: bool = True
    ) -> Iterator[MarkedReader]:
        names_in_file = self._options.names or (None if self._has_header else self._headers.get(file.path))
        reading = pa_csv.ReadOptions(
            block_size=BLOCK_BYTES,
            use_threads=threads,
            column_names=names_in_file,
            autogenerate_column_names=not self._has_header and names_in_file is None,
        )
        converting = self._options.converting(types, names)
        stream, encoding = self._stream(file), self._options.encoding
        if encoding is not None:
            stream = pa.transcoding_input_stream(stream, encoding, "utf-8")
        with closing(MarkedReader(stream, reading, self._parsing, converting)) as reader:
            reader.open()
            yield reader

    @property
    def _has_header(self) -> bool:
        return self._options.header in (None, True)

    def _stream(self, file: SourceFile) -> pa.NativeFile:
        source, codec = file.open_arrow(), self._codecs[file.path]
        return source if codec is None else pa.CompressedInputStream(source, codec)

    @contextmanager
    def _explained(self, file: SourceFile, types: dict[str, pa.DataType]) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError as error:
            raise EncodingError(file.path, _not_in(self._options.encoding)) from error
        except pa.ArrowInvalid as error:
            file.check_unchanged()
            if "Empty CSV" in str(error):
                raise NoDataError(file.path, "it is empty") from error
            self._explain(file, types, error)

    def _explain(self, file: SourceFile, types: dict[str, pa.DataType], error: pa.ArrowInvalid) -> NoReturn:
        """Find the line of an error by reading again with one thread: with several, Arrow counts no lines."""
        try:
            with self._opened(file, types, list(types), threads=False) as reader:
                for _ in reader:
                    pass
        except pa.ArrowInvalid as counted:
            error = counted
        except UnicodeDecodeError as counted:
            raise EncodingError(file.path, _not_in(self._options.encoding)) from counted
        if "straddling" in str(error):
            what = f"has a line, or a quoted value, of more than {human_bytes(BLOCK_BYTES)}"
            raise UnclosedQuoteError(file.path, what) from error
        row, column = ROW.search(str(error)), COLUMN.search(str(error))
        if row is None:
            raise error
        if column is None:
            self._explain_width(file, int(row[1]), row[2], error)
        name = self._name(file, int(column[1]))
        line, _ = self._record(file, int(row[1]))
        if "UTF8" in row[2]:
            where = f"{file.path}, line {line}, column {name}"
            raise EncodingError(where, _not_in(self._options.encoding)) from error
        value = VALUE.search(row[2])
        if value is None:
            raise BadValueError(file.path, line, name, " ".join(row[2].split())) from error
        if COMMA.fullmatch(value[2]) and self._options.decimal is None:
            raise DecimalCommaError(file.path, line, name, value[2]) from error
        raise BadValueError(file.path, line, name, f"{value[2]!r} is not {_type_words(value[1])}") from error

    def _explain_width(self, file: SourceFile, number: int, what: str, error: pa.ArrowInvalid) -> NoReturn:
        """Raise the error for a record with too few or too many values."""
        width = WIDTH.search(what)
        if width is None:
            raise error
        wanted, got = int(width[1]), int(width[2])
        line, _ = self._record(file, number)
        if self._options.names is not None and number == 1:
            each = f"{counted(got, 'name')}, one for each value of line {line} of {file.path}"
            raise ParameterError("header", self._options.names, f"a list of {each}") from error
        if wanted == 1 and self._has_header:
            self._check_header(file, self._record(file, 1)[1])
        first = number == (2 if self._has_header else 1)
        raise BrokenLineError(file.path, line, (wanted, got), width[3].strip(), first) from error

    def _name(self, file: SourceFile, number: int) -> str:
        names = self._options.names or self._headers.get(file.path)
        if names is None:  # the file was not opened yet
            names = self._record(file, 1)[1]
        return names[number] if number < len(names) else f"number {number}"


_TYPE_WORDS = {"double": "a number", "float": "a number", "bool": "true or false", "string": "text"}


def _type_words(kind: str) -> str:
    return _TYPE_WORDS.get(kind, f"a whole number ({kind})" if "int" in kind else f"of type {kind}")


def _not_in(encoding: str | None) -> str:
    return f"contains bytes that are not valid {'UTF-8' if encoding is None else encoding}"


def _numbered(columns: Any) -> Any:
    """The names of columns in files without a header, from their numbers."""
    if isinstance(columns, list):
        return [_numbered(column) for column in columns]
    return str(columns) if isinstance(columns, int) and columns >= 0 else columns


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
