"""Rows of HDF5 files: a matrix X with separate labels, or one dataset for each column."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..checks import flag
from ..errors import (
    DamagedFileError,
    DataError,
    MissingColumnError,
    MissingExtraError,
    NoDataError,
    NoMemberError,
)
from ..messages.log import warn
from ..messages.surface import listed
from .base import Dataset
from .batches import Span
from .columns import AllBut, choose_columns
from .files import SourceFile, seen_now
from .hdf5_links import Links
from .hdf5_storage import StorageCheck, check_written, is_elsewhere
from .matrix import Beside, MatrixDataset
from .numpy_files import beside, member_of, single
from .partition_edges import row_edges
from .rows import Reader, Rows
from .table import TableDataset

EXTENSIONS = (".h5", ".hdf5", ".he5")
SLICE_VALUES = 1 << 21
CACHE_BYTES = 1 << 20  # HDF5's chunk cache for each dataset


class H5Rows:
    """A dataset of an HDF5 file."""

    def __init__(self, source: HDF5Source, path: str) -> None:
        self.file = source.file
        self.where = f"{source.file.path} ({path})"
        self._source = source
        self._path = path
        self.shape = source.shapes[path]
        self.reading_bytes = 2 * source.chunk_bytes.get(path, 0)  # compressed and decompressed, or copied
        self.dtype = np.dtype(object) if is_text(source.types[path]) else source.types[path]

    @property
    def files(self) -> list[SourceFile]:
        return self._source.files

    @contextmanager
    def reader(self, unpack_dir: Path | None = None) -> Iterator[Reader]:
        with self._source.opened() as h5:
            data = self._source.data(h5, self._path)
            yield lambda start, stop: read_rows(self.file, data, start, stop)

    def only(self, start: int, stop: int) -> H5Rows:
        return self


class HDF5Columns(TableDataset):
    """An HDF5 file in which each column is a one-dimensional dataset."""

    kind = "HDF5"

    def __init__(self, source: HDF5Source, target: Any, features: Any, weight: Any) -> None:
        self._source = source
        self._file = file = source.file
        lengths = {name: shape[0] for name, shape in source.shapes.items() if len(shape) == 1}
        schema = pa.schema([(name, arrow_type(source.types[name])) for name in lengths])
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
        source.check(columns.used)
        super().__init__(schema, columns, rows, file.size)

    @property
    def reading_bytes(self) -> int:
        chunks = [self._source.chunk_bytes.get(name, 0) for name in self._columns.used]
        return 2 * max(chunks) + sum(min(chunk, CACHE_BYTES) for chunk in chunks)

    @property
    def _where(self) -> str:
        return self._file.path

    def _tables(
        self, names: tuple[str, ...], rows: int, span: Span
    ) -> Iterator[tuple[int, str, pa.RecordBatch]]:
        step = min(max(rows, 1024), max(1024, SLICE_VALUES // len(names)))
        stop = self._stop
        assert stop is not None
        with self._source.opened() as h5:
            data = {name: self._source.data(h5, name) for name in names}
            for first in range(span.start, stop, step):
                last = min(first + step, stop)
                arrays = {name: pa.array(read_rows(self._file, data[name], first, last)) for name in names}
                yield first, self._where, pa.RecordBatch.from_pydict(arrays)

    def _edges(self, n: int) -> list[int]:
        return row_edges(self.first_row, self.n_rows, n)

    def _described(self) -> list[tuple[str, str]]:
        return [("files", self._file.path), *super()._described()]

    def fingerprint(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "files": [file.described() for file in self._source.files],
            **self._roles(),
        }


def open_hdf5(
    files: list[SourceFile], target: Any, features: Any, weight: Any, external_files: bool = False
) -> Dataset:
    """Open an HDF5 file; `features` is the path of X, or a list of columns."""
    source = HDF5Source(single(files), flag("external_files", external_files))
    file, shapes = source.file, source.shapes
    features = member_of(features, [name for name, shape in shapes.items() if len(shape) == 2])
    names = None if features is None or isinstance(features, str) else features
    source.check_links(_asked(target, weight, features, source))
    by_column = names is not None and all(len(shapes.get(name, ())) == 1 for name in names)
    if "X" not in shapes and (features is None or isinstance(features, AllBut)):
        by_column = True
    if by_column and not ("X" in shapes and isinstance(features, AllBut)):
        if names is None or isinstance(names, AllBut):
            _check_left_out(source, {target, weight, *(names or ())})
        return HDF5Columns(source, target, names, weight)
    path = features.strip("/") if isinstance(features, str) else "X"
    if path not in shapes:
        missing = [name for name in names or () if name not in shapes] or path
        raise MissingColumnError(missing, file.path, shapes, "dataset")
    x = source.rows(path)
    if target is None and "y" in shapes:
        target = "y"

    def found(value: Any, role: str) -> Beside | None:
        if isinstance(value, str) and not value.endswith(".npy"):
            name = value.strip("/")
            if name not in shapes:
                raise MissingColumnError(value, file.path, shapes, "dataset")
            return Beside(name, source.rows(name))
        return beside(value, role, shapes[path][-1] if shapes[path] else 0)

    others: dict[str, Rows] = {
        name: H5Rows(source, name)
        for name, shape in shapes.items()
        if len(shape) == 1 and shape == shapes[path][:1]
    }
    return MatrixDataset("HDF5", x, found(target, "target"), found(weight, "weight"), names, others)


def _asked(target: Any, weight: Any, features: Any, source: HDF5Source) -> list[str]:
    """The names of datasets to read, including links; by default X and y, or all."""
    left_out = features if isinstance(features, AllBut) else ()
    if features is None or isinstance(features, AllBut):
        every = {*source.shapes, *source.links.broken}
        chosen = ["X", "y"] if "X" in every else [name for name in every if name not in left_out]
    else:
        chosen = [features] if isinstance(features, str) else list(features)
    given = [name for name in (*chosen, target, weight) if isinstance(name, str)]
    return sorted(name.strip("/") for name in given)


def _check_left_out(source: HDF5Source, named: set[Any]) -> None:
    """Refuse to use single columns as features if the file also has a matrix."""
    for name, shape in source.shapes.items():
        if len(shape) > 1 and name not in named:
            raise NoMemberError(
                source.file.path, "dataset", [n for n, s in source.shapes.items() if len(s) == 2] or [name]
            )
    scalars = [name for name, shape in source.shapes.items() if not shape and name not in named]
    if scalars:
        warn(
            f"Skipped in {source.file.path}: {listed(scalars, 5)}. Datasets without rows are not read.",
            UserWarning,
            stacklevel=5,
        )


class HDF5Source:
    """An HDF5 file and its datasets; values in other files are read only if allowed."""

    def __init__(self, file: SourceFile, external_files: bool) -> None:
        self.file = file
        self._external_files = external_files
        self.links = Links(file, external_files)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.types: dict[str, np.dtype[Any]] = {}
        self.chunk_bytes: dict[str, int] = {}  # of chunked datasets; a chunk is read whole
        self._elsewhere: set[str] = set()
        self._others: dict[str, SourceFile] = {}
        with self.opened() as h5:
            self._look(h5)
        if not self.shapes and not self.links.broken:
            raise NoDataError(file.path, "it has no datasets")

    def _look(self, h5: Any) -> None:
        """List the datasets by the low-level API: creating h5py's objects is slow with many columns."""
        import h5py

        for name, found in self.links.datasets(h5.id):
            if (shape := found.shape) is None:
                continue
            self.shapes[name], self.types[name] = shape, found.dtype
            plist = found.get_create_plist()
            if is_elsewhere(plist):
                self._elsewhere.add(name)
            elif plist.get_layout() == h5py.h5d.CHUNKED:
                self.chunk_bytes[name] = math.prod(plist.get_chunk()) * self.types[name].itemsize

    def rows(self, path: str) -> H5Rows:
        self.check([path])
        return H5Rows(self, path)

    def check_links(self, paths: Iterable[str]) -> None:
        """Refuse broken links, and links to other files unless allowed."""
        for path in paths:
            if path in self.links.broken:
                raise self.links.broken[path]

    def check(self, paths: Iterable[str]) -> None:
        """Refuse datasets whose values are incomplete, or in other files without permission."""
        with self.opened() as h5:
            for path in paths:
                data = self.data(h5, path)
                if path not in self._elsewhere:
                    check_written(f"{self.file.path} ({path})", data)

    def data(self, h5: Any, path: str) -> Any:
        data = h5[path]
        file, other = self.file, self.links.elsewhere.get(path)
        if other is not None:
            file = self._others.setdefault(other, seen_now(other))
            file.check_unchanged()
        if path in self._elsewhere:
            storage = StorageCheck(self._external_files)
            storage.check(file, data.file, data)
            for found, file in storage.files.items():
                self._others.setdefault(found, file).check_unchanged()
        return data

    @property
    def files(self) -> list[SourceFile]:
        """The file itself and other files with values of the datasets in use."""
        return [self.file, *self._others.values()]

    @contextmanager
    def opened(self) -> Iterator[Any]:
        try:
            import h5py
        except ImportError as error:
            raise MissingExtraError("h5py>=3.10", f"The HDF5 file {self.file.path}") from error
        file = self.file
        with file.watched("HDF5"), ExitStack() as stack:
            source = file.place if file.system is None else stack.enter_context(file.open())
            try:
                yield stack.enter_context(h5py.File(source, "r"))
                for other in self._others.values():
                    other.check_unchanged()
            except KeyError as error:  # names were checked before, so the file is damaged
                raise DamagedFileError(file.path, "HDF5", error) from error


def is_text(dtype: np.dtype[Any]) -> bool:
    import h5py

    return h5py.check_string_dtype(dtype) is not None


def arrow_type(dtype: np.dtype[Any]) -> pa.DataType:
    if is_text(dtype):
        return pa.string()
    if dtype.kind not in "biuf":
        return pa.binary()
    return pa.from_numpy_dtype(dtype.newbyteorder("="))


def read_rows(file: SourceFile, data: Any, start: int, stop: int) -> npt.NDArray[Any]:
    """Rows of a dataset in the byte order of this machine."""
    with file.blamed("HDF5"):
        values: npt.NDArray[Any] = (data.asstr() if is_text(data.dtype) else data)[start:stop]
        if len(values) != stop - start:
            raise EOFError(f"it ends at row {start + len(values)}")
    return values.astype(values.dtype.newbyteorder("="), copy=False)
