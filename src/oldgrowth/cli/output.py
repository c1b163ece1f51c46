"""Prediction files (Parquet, CSV or .npy), written batch by batch. A file that fails does not appear."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from ..errors import DataError
from ..forest.batch_predict import Needs
from ..system.atomic_file import new_file
from .options import STANDARD

# Copies of the columns while they are written: plain, encoded and compressed, or as text.
_PARQUET_COPIES, _CSV_COPIES = 4, 8
# Metadata of a Parquet file for each column of each batch.
_PARQUET_COLUMN_BYTES = 400
_NPY_HEADER = 256  # room for the shape, which is known only at the end
_NPY_MAGIC = b"\x93NUMPY\x01\x00"


class Output(Protocol):
    """Takes predictions in the order of the rows."""

    def write(self, columns: pa.Table, matrix: npt.NDArray[Any]) -> None: ...


@contextmanager
def prediction_file(path: Path) -> Iterator[Output]:
    """A file for predictions, in the format of its suffix; standard output gets CSV."""
    with nullcontext(sys.stdout.buffer) if path == STANDARD else new_file(path) as file:
        suffix = ".csv" if path == STANDARD else path.suffix.lower()
        output = _NpyOutput(file) if suffix == ".npy" else _TableOutput(file, suffix)
        try:
            yield output
            output.finish()
        except BaseException:
            output.abandon()
            raise


def arrow_array(values: npt.NDArray[Any]) -> pa.Array:
    """As `pa.array` for numbers, bools and text, which would import pandas and take half a second."""
    if values.dtype.kind == "b":
        return arrow_array(values.view(np.uint8)).cast(pa.bool_())
    if values.dtype.kind in "iuf":
        buffers = [None, pa.py_buffer(np.ascontiguousarray(values))]
        return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)
    texts = [str(text).encode() for text in values.tolist()]
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
    return pa.Array.from_buffers(pa.large_string(), len(texts), buffers).cast(pa.string())


def needs_of(path: Path, result: int, row: int, n_columns: int) -> Needs:
    """The memory for writing: each row has `result` bytes of predictions and `row` bytes of columns."""
    if path.suffix.lower() == ".npy":
        return Needs(result, row)
    if path.suffix.lower() == ".csv":
        return Needs(result, _CSV_COPIES * row)
    return Needs(result, _PARQUET_COPIES * row, held_batch=_PARQUET_COLUMN_BYTES * n_columns)


class _TableOutput:
    def __init__(self, file: BinaryIO, suffix: str) -> None:
        # Arrow closes what it writes to, but the file must still be synced.
        self._sink = _Sink(file)
        self._file = pa.PythonFile(self._sink, mode="w")
        self._suffix = suffix
        self._writer: Any = None

    def write(self, columns: pa.Table, matrix: npt.NDArray[Any]) -> None:
        if self._writer is None:
            self._schema = pa.schema([pa.field(f.name, _plain_type(f.type)) for f in columns.schema])
            kind = pq.ParquetWriter if self._suffix == ".parquet" else pa_csv.CSVWriter
            self._writer = kind(self._file, self._schema)
        try:
            table = columns.cast(self._schema)
        except pa.ArrowInvalid as error:
            raise DataError(f"A column of --keep changes its type between batches: {error}") from error
        self._writer.write_table(table)

    def finish(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._sink.send()

    def abandon(self) -> None:
        """Close the writer without writing: Arrow would do it later, when the file is closed."""
        self._sink.open = False
        if self._writer is not None:
            with suppress(Exception):
                self._writer.close()


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """The type without dictionary encoding: dictionaries differ between batches, and CSV has none."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


class _Sink:
    """Passes on what is written while `open`, but does not close the file."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._written = 0
        self.open = True

    def write(self, data: Any) -> int:
        self._written += len(data)
        return self._file.write(data) if self.open else len(data)

    def tell(self) -> int:
        return self._written  # standard output may have no position

    def flush(self) -> None:
        pass  # done once, at the end

    def send(self) -> None:
        self._file.flush()

    def close(self) -> None:
        pass


class _NpyOutput:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._rows = 0
        self._dtype: np.dtype[Any] | None = None
        self._width: tuple[int, ...] = ()
        file.write(bytes(_NPY_HEADER))

    def write(self, columns: pa.Table, matrix: npt.NDArray[Any]) -> None:
        if matrix.dtype.hasobject:
            raise DataError("A .npy file cannot hold these labels: use .parquet or .csv.")
        self._dtype, self._width = matrix.dtype, matrix.shape[1:]
        self._file.write(np.ascontiguousarray(matrix).view(np.uint8).data)
        self._rows += len(matrix)

    def finish(self) -> None:
        dtype = np.dtype(np.float64) if self._dtype is None else self._dtype
        shape = (self._rows, *self._width)
        about = repr({"descr": dtype.str, "fortran_order": False, "shape": shape}).encode()
        length = _NPY_HEADER - len(_NPY_MAGIC) - 2
        self._file.seek(0)
        self._file.write(_NPY_MAGIC + length.to_bytes(2, "little") + about.ljust(length - 1) + b"\n")

    def abandon(self) -> None:
        pass
