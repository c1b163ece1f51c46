"""Rows of data frames and tables in memory, converted to Arrow a slice at a time."""

from __future__ import annotations

import zlib
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import DataError, NoDataError
from ..messages.surface import listed
from .batches import Span
from .columns import check_unique, choose_columns, unusable
from .labels import CodedLabels
from .levels import LevelCoder, Levels
from .partition_edges import row_edges
from .table import TableDataset, TablePiece

SAMPLED_ROWS = 4096
SLICE_VALUES = 1 << 21
INFERRED_ROWS = 1000  # rows from which the type of an unused object column is inferred


class FrameDataset(TableDataset):
    """A table in memory that can be cut into slices."""

    def __init__(
        self, schema: pa.Schema, target: Any, features: Any, weight: Any, rows: int, nbytes: int
    ) -> None:
        columns = choose_columns(schema, target, features, weight, self._where)
        if not rows:
            raise NoDataError(self._where, "it has no rows")
        super().__init__(schema, columns, rows, nbytes)

    @abstractmethod
    def _slice(self, names: list[str], start: int, rows: int) -> pa.Table:
        """Return these columns of a range of rows."""

    @abstractmethod
    def _take(self, names: list[str], rows: npt.NDArray[np.intp]) -> pa.Table:
        """Return these columns of the rows with these numbers."""

    @abstractmethod
    def _length(self) -> int:
        """Return the current number of rows."""

    def _tables(
        self, names: tuple[str, ...], rows: int, span: Span
    ) -> Iterator[tuple[int, str, pa.RecordBatch]]:
        step = min(max(rows, 1024), max(1024, SLICE_VALUES // len(names)))
        for first in range(span.start, self.first_row + self._length(), step):
            at = first
            for batch in self._slice(list(names), first - self.first_row, step).to_batches():
                yield at, self._where, batch
                at += batch.num_rows

    @abstractmethod
    def _keep(self, start: int, rows: int) -> None:
        """Let go of all rows but these."""

    def _edges(self, n: int) -> list[int]:
        return row_edges(self.first_row, self.n_rows, n)

    def _part(self, start: int, stop: int) -> FrameDataset:
        part = super()._part(start, stop)
        assert isinstance(part, FrameDataset)
        part._keep(start - self.first_row, stop - start)
        return part

    def fingerprint(self) -> dict[str, Any]:
        rows = np.linspace(0, self._length() - 1, min(SAMPLED_ROWS, self._length())).astype(np.intp)
        table = self._take(list(self._columns.used), rows).combine_chunks()
        crc = 0
        for batch in table.to_batches():
            crc = zlib.crc32(self._bytes(batch), crc)
        types = [str(self._schema.field(name).type) for name in self._columns.used]
        shape = [self.n_rows, self.n_features]
        return {"kind": self.kind, "shape": shape, "types": types, "crc": crc, **self._roles()}

    def _bytes(self, batch: pa.RecordBatch) -> bytes:
        """The values of some rows."""
        text = {self._columns.features[place] for place in self.typed_categories}
        none = Levels(())
        coders = [LevelCoder(none, name) if name in text else None for name in self._columns.features]
        piece = TablePiece(0, self._where, batch, self._columns, (), coders)
        x = np.empty((piece.rows, piece.n_features), dtype=np.float32)
        piece.fill(x, 0)
        labels = piece.labels(0, piece.rows)
        if isinstance(labels, CodedLabels):
            told = "\0".join(labels.decoded().tolist()).encode()
        else:
            told = b"" if labels is None else labels.tobytes()
        weights = piece.weights(0, piece.rows)
        levels = "".join(repr(batch.column(name).to_pylist()) for name in sorted(text)).encode()
        return x.tobytes() + told + (b"" if weights is None else weights.tobytes()) + levels


class ArrowTableDataset(FrameDataset):
    """A pyarrow table."""

    kind = "Arrow table"

    def __init__(self, table: pa.Table, target: Any, features: Any, weight: Any) -> None:
        self._table = table
        super().__init__(table.schema, target, features, weight, table.num_rows, table.nbytes)

    def _slice(self, names: list[str], start: int, rows: int) -> pa.Table:
        return self._table.select(names).slice(start, rows)

    def _take(self, names: list[str], rows: npt.NDArray[np.intp]) -> pa.Table:
        return self._table.select(names).take(pa.array(rows))

    def _length(self) -> int:
        return int(self._table.num_rows)

    def _keep(self, start: int, rows: int) -> None:
        self._table = self._table.slice(start, rows)

    def __getstate__(self) -> dict[str, Any]:
        """With the table as an IPC stream: pickled by itself, a slice has all rows of its table with it."""
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, self._table.schema) as writer:
            writer.write_table(self._table)
        return {**vars(self), "_table": out.getvalue()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._table = pa.ipc.open_stream(state["_table"]).read_all()


class PolarsDataset(FrameDataset):
    """A polars data frame."""

    kind = "polars DataFrame"

    def __init__(self, frame: Any, target: Any, features: Any, weight: Any) -> None:
        self._frame = with_decimals(frame)
        schema = polars_schema(self._frame.head(0))
        super().__init__(schema, target, features, weight, frame.height, int(frame.estimated_size()))

    def _slice(self, names: list[str], start: int, rows: int) -> pa.Table:
        return self._frame.select(names).slice(start, rows).to_arrow()

    def _take(self, names: list[str], rows: npt.NDArray[np.intp]) -> pa.Table:
        return self._frame.select(names)[rows].to_arrow()

    def _length(self) -> int:
        return int(self._frame.height)

    def _keep(self, start: int, rows: int) -> None:
        self._frame = self._frame.slice(start, rows)


def with_decimals(frame: Any) -> Any:
    """A polars frame, lazy or not, with 128-bit integers, which Arrow lacks, cast to decimals."""
    wide = [name for name, dtype in frame.collect_schema().items() if str(dtype) in ("Int128", "UInt128")]
    if not wide:
        return frame
    import polars as pl

    try:
        return frame.with_columns(pl.col(wide).cast(pl.Decimal(38, 0)))
    except pl.exceptions.PolarsError as error:
        raise DataError(
            f"Columns {listed(wide)} contain numbers of more than 38 digits: cast them to floats."
        ) from error


def polars_schema(empty: Any) -> pa.Schema:
    """The Arrow types of the columns of an empty polars frame; columns without one are unusable."""
    fields = []
    for column in empty.iter_columns():
        if str(column.dtype) == "Object":  # Arrow would get addresses
            fields.append(unusable(column.name, "Object of polars"))
            continue
        try:
            fields.append(pa.field(column.name, column.to_arrow().type))
        except Exception:  # noqa: BLE001 - errors or panics of polars: the type has no Arrow equivalent
            fields.append(unusable(column.name, str(column.dtype)))
    return pa.schema(fields)


class PandasDataset(FrameDataset):
    """A pandas data frame; the index is not a column, and column names are converted to text."""

    kind = "pandas DataFrame"

    def __init__(self, frame: Any, target: Any, features: Any, weight: Any) -> None:
        self._frame = frame
        names = [str(name) for name in frame.columns]
        check_unique(pa.schema([(name, pa.null()) for name in names]), self._where)
        self._places = {name: i for i, name in enumerate(names)}
        used = set(names) if features is None else {*features, target, weight}
        known: dict[Any, pa.DataType] = {}  # Arrow types by pandas types, except for objects
        fields = []
        for name, dtype in zip(names, frame.dtypes, strict=True):
            if dtype in known:
                fields.append(pa.field(name, known[dtype]))
                continue
            fields.append(self._infer(name, name in used))
            if dtype != np.dtype(object):
                known[dtype] = fields[-1].type
        schema = pa.schema(fields)
        super().__init__(
            schema, target, features, weight, len(frame), int(frame.memory_usage(index=False).sum())
        )

    def _infer(self, name: str, used: bool) -> pa.Field:
        """Infer the Arrow type of a column; for an object column, from its values."""
        column = self._frame.iloc[:, self._places[name]]
        if column.dtype != object:
            column = column.iloc[:0]
        elif not used:
            column = column.iloc[:INFERRED_ROWS]
        try:
            return pa.field(name, pa.array(column, from_pandas=True).type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            kinds = sorted({type(value).__name__ for value in column if value is not None})
            held = f" with {' and '.join(kinds[:5])}" if kinds else ""
            return unusable(name, f"{column.dtype}{held}")

    def _slice(self, names: list[str], start: int, rows: int) -> pa.Table:
        return self._converted(names, slice(start, start + rows))

    def _take(self, names: list[str], rows: npt.NDArray[np.intp]) -> pa.Table:
        return self._converted(names, rows)

    def _converted(self, names: list[str], rows: Any) -> pa.Table:
        frame = self._frame.iloc[rows]
        used = set(self._columns.used)
        by_type: dict[Any, list[str]] = {}  # numeric columns are converted together: there may be many
        arrays: dict[str, pa.Array] = dict.fromkeys(names)
        dtypes = self._frame.dtypes.to_numpy()
        for name in names:
            dtype = dtypes[self._places[name]]
            if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
                by_type.setdefault(dtype, []).append(name)
                continue
            column = frame.iloc[:, self._places[name]]
            kind = self._schema.field(name).type if name in used else None
            arrays[name] = pa.array(column, type=kind, from_pandas=True)
        for alike in by_type.values():
            values = frame.iloc[:, [self._places[name] for name in alike]].to_numpy()
            # NaN is not converted to null: both mean missing, and finding it takes a pass.
            for name, column in zip(alike, np.asfortranarray(values).T, strict=True):
                arrays[name] = pa.array(column)
        return pa.table(arrays)

    def _length(self) -> int:
        return len(self._frame)

    def _keep(self, start: int, rows: int) -> None:
        self._frame = self._frame.iloc[start : start + rows]
