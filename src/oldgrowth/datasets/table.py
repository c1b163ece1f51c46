"""Rows of Arrow record batches: the base class of all sources with named columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .. import _core
from .base import COUNTED_ROWS, Dataset
from .batches import FloatsOrBytes, Span
from .columns import Columns, check_columns
from .labels import Labels, labels_from_arrow, type_class, weights_from_arrow
from .level_counts import RawColumns
from .levels import LevelCoder
from .odd_texts import ODD_TEXTS, OddTexts, odd_decimals, odd_levels, odd_rows


class TablePiece:
    """Rows of a record batch."""

    def __init__(
        self,
        first_row: int,
        where: str,
        batch: pa.RecordBatch,
        columns: Columns,
        carry: tuple[str, ...],
        coders: Sequence[LevelCoder | None] | None = None,
    ) -> None:
        self.first_row = first_row
        self.where = where
        self.rows = batch.num_rows
        self._batch = batch
        self._columns = columns
        self._carry = carry
        coders = coders or [None] * len(columns.features)
        raw = (
            raw_values(batch.column(name))
            if coder is None
            else (coder.codes(batch.column(name), where), None)
            for name, coder in zip(columns.features, coders, strict=True)
        )
        values, missing = zip(*raw, strict=True)
        self.n_features = len(values)
        self._features = _core.Columns(list(values), list(missing))

    @property
    def all_bytes(self) -> bool:
        return self._features.all_bytes

    def fill(self, out: FloatsOrBytes, start: int) -> None:
        self._features.fill(start, out)

    def labels(self, start: int, stop: int) -> Labels | None:
        name = self._columns.target
        if name is None:
            return None
        column = self._batch.column(name).slice(start, stop - start)
        return labels_from_arrow(column, self.first_row + start, name, self.where)

    def odd_texts(self, start: int, stop: int) -> OddTexts | None:
        name = self._columns.target
        if name is None:
            return None
        if self._batch.schema.get_field_index(ODD_TEXTS) < 0:
            return odd_decimals(self._batch.column(name).slice(start, stop - start))
        return odd_rows(self._batch.column(ODD_TEXTS).slice(start, stop - start))

    def weights(self, start: int, stop: int) -> npt.NDArray[np.float64] | None:
        name = self._columns.weight
        if name is None:
            return None
        column = self._batch.column(name).slice(start, stop - start)
        return weights_from_arrow(column, self.first_row + start, name, self.where)

    def carried(self, start: int, stop: int) -> pa.Table | None:
        if not self._carry:
            return None
        return pa.Table.from_batches([self._batch.select(list(self._carry)).slice(start, stop - start)])


def raw_values(column: pa.Array) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    """The numbers of a column, without a copy if possible, and a mask of missing values."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan, dtype=np.float32), None
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    dtype = column.type.to_pandas_dtype()
    values = np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * np.dtype(dtype).itemsize)
    return values.astype(np.float32) if dtype == np.float16 else values, missing


class TableDataset(Dataset):
    """A dataset with named columns of Arrow types."""

    def __init__(self, schema: pa.Schema, columns: Columns, n_rows: int | None, nbytes: int | None) -> None:
        self._schema = schema
        self._columns = columns
        self.feature_names = columns.features
        self.n_features = len(columns.features)
        self.target = columns.target
        self.weight = columns.weight
        self.n_rows = n_rows
        self.nbytes = nbytes

    @abstractmethod
    def _tables(
        self, names: tuple[str, ...], rows: int, span: Span
    ) -> Iterator[tuple[int, str, pa.RecordBatch]]:
        """Yield record batches with these columns: number of the first row, source, batch."""

    def _read_rows(self) -> int:
        """By one column alone."""
        tables = self._tables(self._columns.used[:1], COUNTED_ROWS, Span(self.first_row))
        return sum(batch.num_rows for _, _, batch in tables)

    def _read_weights(self, span: Span) -> Iterator[npt.NDArray[np.float64]]:
        """From their column alone."""
        name = self._columns.weight
        assert name is not None
        for first, where, batch in self._tables((name,), COUNTED_ROWS, span):
            start, stop = span.within(first).of(batch.num_rows)
            yield weights_from_arrow(
                batch.column(name).slice(start, stop - start), first + start, name, where
            )

    def _pieces(self, rows: int, span: Span, carry: tuple[str, ...]) -> Iterator[TablePiece]:
        columns = self._columns
        names = tuple(dict.fromkeys([*columns.used, *carry]))
        for first_row, where, batch in self._tables(names, rows, span):
            if batch.num_rows:
                yield TablePiece(first_row, where, batch, columns, carry, self._coders)
            del batch  # free it before the next one is read

    @property
    def text_features(self) -> tuple[int, ...]:
        return self._features_whose(lambda kind: type_class(kind) == "text")

    @property
    def typed_categories(self) -> tuple[int, ...]:
        return self._features_whose(lambda kind: type_class(kind) == "text" or pa.types.is_dictionary(kind))

    def _features_whose(self, test: Callable[[pa.DataType], bool]) -> tuple[int, ...]:
        names = enumerate(self._columns.features)
        return tuple(place for place, name in names if test(self._schema.field(name).type))

    def raw_columns(self, features: tuple[int, ...], start: int) -> Iterator[RawColumns]:
        names, weight = [self._columns.features[place] for place in features], self._columns.weight
        wanted = tuple(dict.fromkeys([*names, *([] if weight is None else [weight])]))
        span = Span(start, self._stop)
        for first, where, batch in self._with_odd_levels(names)._tables(wanted, COUNTED_ROWS, span):
            begin, end = span.within(first).of(batch.num_rows)
            if begin < end:
                part = batch.slice(begin, end - begin)
                places = [part.schema.get_field_index(odd_levels(name)) for name in names]
                odd = [None if place < 0 else part.column(place) for place in places]
                weights = None
                if weight is not None:
                    weights = weights_from_arrow(part.column(weight), first + begin, weight, where)
                columns = [part.column(name) for name in names]
                yield RawColumns(first + begin, where, columns, weights, odd)

    def _with_odd_levels(self, names: Sequence[str]) -> Self:
        """The same rows, with the text of numbers in these columns that may be told apart only by it."""
        return self

    def _column_names(self) -> Sequence[str]:
        return self._schema.names

    def _use_features(self, features: tuple[str, ...]) -> None:
        self._columns = self._columns.with_features(features)
        check_columns(self._schema, self._columns, self._where)

    def _types(self) -> str:
        counts: dict[str, int] = {}
        for name in self._columns.features:
            kind = str(self._schema.field(name).type)
            counts[kind] = counts.get(kind, 0) + 1
        return ", ".join(f"{count} {kind}" for kind, count in counts.items())

    def _described(self) -> list[tuple[str, str]]:
        return [("types", self._types())]

    def _roles(self) -> dict[str, Any]:
        """The columns in use, for a fingerprint."""
        columns = self._columns
        return {"features": list(columns.features), "target": columns.target, "weight": columns.weight}


def labels_are_text(schema: pa.Schema, name: str) -> bool:
    return type_class(schema.field(name).type) == "text"
