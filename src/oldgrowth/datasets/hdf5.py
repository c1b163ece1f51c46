"""Rows of HDF5 files: a matrix X with labels beside it, or one dataset for each column."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import (
    DamagedFileError,
    DataError,
    MissingColumnError,
    MissingExtraError,
    NoDataError,
)
from .base import Dataset
from .columns import choose_columns
from .files import SourceFile
from .matrix import Beside, MatrixDataset
from .numpy_files import beside, single
from .rows import Reader
from .table import TableDataset

EXTENSIONS = (".h5", ".hdf5", ".he5")
SLICE_VALUES = 1 << 21


class H5Rows:
    """A dataset of an HDF5 file."""

    def __init__(self, file: SourceFile, path: str) -> None:
        self.file = file
        self.where = f"{file.path} ({path})"
        self._path = path
        with opened(file) as h5:
            self.shape = h5[path].shape
            self.dtype = np.dtype(object) if is_text(h5[path]) else h5[path].dtype

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        with opened(self.file) as h5:
            data = h5[self._path]
            yield lambda start, stop: read_rows(self.file, data, start, stop)


class HDF5Columns(TableDataset):
    """An HDF5 file in which each column is a dataset of one dimension."""

    kind = "HDF5"

    def __init__(self, file: SourceFile, names: list[str], target: Any, features: Any, weight: Any) -> None:
        self._file = file
        with opened(file) as h5:
            lengths = {name: h5[name].shape[0] for name in names}
            schema = pa.schema([(name, arrow_type(h5[name])) for name in names])
        columns = choose_columns(schema, target, features, weight, file.path)
        rows = lengths[columns.features[0]]
        for name in columns.used:
            if lengths[name] != rows:
                raise DataError(
                    f"The columns of {file.path} differ in length: {columns.features[0]} has {rows} rows, "
                    f"{name} has {lengths[name]}."
                )
        if not rows:
            raise NoDataError(file.path, "it has no rows")
        super().__init__(schema, columns, rows, file.size)

    @property
    def _where(self) -> str:
        return self._file.path

    def _tables(
        self, names: tuple[str, ...], rows: int, start: int
    ) -> Iterator[tuple[int, str, pa.RecordBatch]]:
        step = min(max(rows, 1024), max(1024, SLICE_VALUES // len(names)))
        assert self.n_rows is not None
        with opened(self._file) as h5:
            data = {name: h5[name] for name in names}
            for first in range(start, self.n_rows, step):
                last = min(first + step, self.n_rows)
                arrays = {name: pa.array(read_rows(self._file, data[name], first, last)) for name in names}
                yield first, self._where, pa.RecordBatch.from_pydict(arrays)

    def _described(self) -> list[tuple[str, str]]:
        return [("files", self._file.path), *super()._described()]

    def fingerprint(self) -> dict[str, Any]:
        return {"kind": self.kind, "files": [self._file.described()], **self._roles()}


def open_hdf5(files: list[SourceFile], target: Any, features: Any, weight: Any) -> Dataset:
    """Open an HDF5 file; `features` is the path of X, or a list of the columns."""
    file = single(files)
    shapes = dataset_shapes(file)
    flat = [name for name, shape in shapes.items() if len(shape) == 1]
    names = None if features is None or isinstance(features, str) else list(features)
    if (names is None and features is None and "X" not in shapes) or (names and set(names) <= set(flat)):
        return HDF5Columns(file, flat, target, names, weight)
    path = features.strip("/") if isinstance(features, str) else "X"
    if path not in shapes:
        missing = path if names is None else next((name for name in names if name not in shapes), path)
        raise MissingColumnError(missing, file.path, shapes)
    x = H5Rows(file, path)
    if target is None and "y" in shapes:
        target = "y"

    def found(value: Any, role: str) -> Beside | None:
        if isinstance(value, str) and not value.endswith(".npy"):
            name = value.strip("/")
            if name not in shapes:
                raise MissingColumnError(value, file.path, shapes)
            return Beside(name, H5Rows(file, name))
        return beside(value, role, shapes[path][-1] if shapes[path] else 0)

    others = {name: H5Rows(file, name) for name in flat if shapes[name] == shapes[path][:1]}
    return MatrixDataset("HDF5", x, found(target, "target"), found(weight, "weight"), names, dict(others))


@contextmanager
def opened(file: SourceFile) -> Iterator[Any]:
    try:
        import h5py
    except ImportError as error:
        raise MissingExtraError("h5py", "hdf5", f"The HDF5 file {file.path}") from error
    with file.watched("HDF5"), ExitStack() as stack:
        source = file.path if file.system is None else stack.enter_context(file.open())
        try:
            yield stack.enter_context(h5py.File(source, "r"))
        except KeyError as error:  # names are checked before: what is then not found is damaged
            raise DamagedFileError(file.path, "HDF5", error) from error


def dataset_shapes(file: SourceFile) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}

    def note(name: str, item: Any) -> None:
        if getattr(item, "shape", None) is not None:
            shapes[str(name)] = item.shape

    with opened(file) as h5:
        h5.visititems(note)
    if not shapes:
        raise NoDataError(file.path, "it has no datasets")
    return shapes


def is_text(data: Any) -> bool:
    import h5py

    return h5py.check_string_dtype(data.dtype) is not None


def arrow_type(data: Any) -> pa.DataType:
    if is_text(data):
        return pa.string()
    if data.dtype.kind not in "biuf":
        return pa.binary()
    return pa.from_numpy_dtype(data.dtype.newbyteorder("="))


def read_rows(file: SourceFile, data: Any, start: int, stop: int) -> npt.NDArray[Any]:
    """Rows of a dataset in the byte order of this machine."""
    with file.blamed("HDF5"):
        values: npt.NDArray[Any] = (data.asstr() if is_text(data) else data)[start:stop]
        if len(values) != stop - start:
            raise EOFError(f"it ends at row {start + len(values)}")
    return values.astype(values.dtype.newbyteorder("="), copy=False)
