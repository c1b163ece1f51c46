"""Files of predictions: Parquet, CSV or .npy, written batch by batch, whole or not at all."""

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

# Columns while they are written: as they are, encoded, compressed; as text.
_PARQUET_COPIES, _CSV_COPIES = 4, 8
# What a Parquet file says of each column of each batch, at its end.
_PARQUET_COLUMN_BYTES = 400
_NPY_HEADER = 256  # room for a shape that is not known before the end
_NPY_MAGIC = b"\x93NUMPY\x01\x00"


class Output(Protocol):
    """What predictions are handed to, in the order of the rows."""

    def write(self, columns: pa.Table, matrix: npt.NDArray[Any]) -> None: ...


@contextmanager
def prediction_file(path: Path) -> Iterator[Output]:
    """A file to hand predictions to: its suffix decides which of the two forms of them it takes.

    To standard output they go as CSV.
    """
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
    """What `pa.array` makes of numbers, bools and texts; that imports pandas, which takes half a second."""
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
    """What writing takes: of a row of predictions with `result` bytes columns of `row` bytes are made."""
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
            raise DataError(f"A column that was to be kept has another type further down: {error}") from error
        self._writer.write_table(table)

    def finish(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._sink.send()

    def abandon(self) -> None:
        """Arrow would write the end of the file when it lets go of it, to a file that is closed by then."""
        self._sink.open = False
        if self._writer is not None:
            with suppress(Exception):
                self._writer.close()


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Dictionaries differ from batch to batch, and CSV has none."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


class _Sink:
    """Hands on what is written while `open`, but not that the file be closed."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._written = 0
        self.open = True

    def write(self, data: Any) -> int:
        self._written += len(data)
        return self._file.write(data) if self.open else len(data)

    def tell(self) -> int:
        return self._written  # standard output may not know

    def flush(self) -> None:
        pass  # done once, before the file gets its name

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
            raise DataError("These labels do not fit an array in a .npy file: save to .parquet or .csv.")
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
