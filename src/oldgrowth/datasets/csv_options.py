"""The options of `open_dataset` for CSV files, with their checks."""

from __future__ import annotations

import codecs
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from ..errors import ParameterError
from .columns import first_twice

NAMES = ("delimiter", "missing", "types", "header", "decimal", "encoding")


@dataclass(frozen=True)
class CSVOptions:
    """Options of a CSV source; None means detected from the file, or pyarrow's default."""

    delimiter: str | None = None
    missing: Any = None  # text or texts that mark missing values
    types: Any = None  # Arrow types by column name
    header: Any = None  # whether the first line is a header, or the column names of files without one
    decimal: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        for name in ("delimiter", "decimal"):
            given = getattr(self, name)
            if given is not None and not (isinstance(given, str) and len(given) == 1 and given.isascii()):
                raise ParameterError(name, given, "a single ASCII character")
        if self.delimiter is not None and self.delimiter in '\r\n\0"':
            raise ParameterError(
                "delimiter", self.delimiter, "a character other than a quote, NUL or a line ending"
            )
        if self.decimal is not None and self.decimal not in ".,":
            raise ParameterError("decimal", self.decimal, "a point or a comma")
        if self.encoding is not None and not _is_encoding(self.encoding):
            raise ParameterError(
                "encoding", self.encoding, "the name of an encoding, such as utf-16 or latin-1"
            )
        if self.missing is not None:
            object.__setattr__(self, "missing", _texts(self.missing))
        object.__setattr__(self, "types", _types(self.types))
        if self.header is not None and not isinstance(self.header, bool):
            object.__setattr__(self, "header", _names(self.header))

    @property
    def names(self) -> list[str] | None:
        """The given column names of files without a header."""
        return self.header if isinstance(self.header, list) else None

    def parsing(self, tabs: bool) -> pa_csv.ParseOptions:
        delimiter = self.delimiter or ("\t" if tabs else ",")
        if delimiter == self.decimal:
            raise ParameterError(
                "decimal", self.decimal, lambda say: f"different from {say('delimiter', delimiter)}"
            )
        return pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)

    def converting(self, types: dict[str, pa.DataType], names: list[str]) -> pa_csv.ConvertOptions:
        return pa_csv.ConvertOptions(
            column_types={**self.types, **types},
            include_columns=names,
            null_values=self.missing,
            strings_can_be_null=True,
            decimal_point=self.decimal or ".",
        )


def _texts(missing: Any) -> list[str]:
    """The texts that mark missing values, as a list."""
    texts = [missing] if isinstance(missing, str) else missing
    known = isinstance(texts, Collection) and not isinstance(texts, bytes | Mapping)
    if not known or not all(isinstance(text, str) for text in texts):
        raise ParameterError("missing", missing, "a string such as '-9', or a list of strings")
    return list(texts)


def _types(types: Any) -> dict[str, pa.DataType]:
    if types is None:
        return {}
    if not isinstance(types, Mapping) or not all(isinstance(name, str) for name in types):
        raise ParameterError("types", types, "a dict of column names and types")
    return {name: _arrow_type(kind) for name, kind in types.items()}


def _arrow_type(kind: Any) -> pa.DataType:
    if isinstance(kind, pa.DataType):
        return kind
    try:
        return pa.type_for_alias(str(kind))
    except ValueError as error:
        raise ParameterError("types", kind, "Arrow types such as float64, int64, bool or string") from error


def _names(header: Any) -> list[str]:
    listed = list(header) if isinstance(header, Collection) and not isinstance(header, str | bytes) else []
    if not listed or not all(isinstance(name, str) for name in listed):
        raise ParameterError("header", header, "True, False, or a list of column names")
    if (twice := first_twice(listed)) is not None:
        raise ParameterError("header", header, f"a list of distinct names, but {twice!r} occurs twice")
    return listed


def _is_encoding(encoding: Any) -> bool:
    try:
        return isinstance(encoding, str) and codecs.lookup(encoding)._is_text_encoding
    except (LookupError, ValueError):
        return False
