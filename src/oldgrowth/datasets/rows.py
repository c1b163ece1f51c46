"""Arrays read by ranges of rows: from memory, from .npy files and from members of .npz files."""

from __future__ import annotations

import errno
import math
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import DamagedFileError, PythonObjectsError, SpillFullError
from .files import SourceFile

SMALL_BYTES = 1 << 24  # maximum size of an array that is decompressed in memory

Reader: TypeAlias = Callable[[int, int], npt.NDArray[Any]]


class Rows(Protocol):
    """An array of one or two dimensions; `reader` reads ranges of its rows."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    where: str
    reading_bytes: int  # see Dataset.reading_bytes

    @property
    def file(self) -> SourceFile | None: ...

    @property
    def files(self) -> Sequence[SourceFile]:
        """The file and others that contain values of the array."""
        ...

    def reader(self, unpack_dir: Path | None = None) -> AbstractContextManager[Reader]:
        """Open the array; a large one that must be decompressed is written to this directory."""
        ...

    def only(self, start: int, stop: int) -> Rows:
        """The same array, of which no other rows will be read: their numbers stay."""
        ...


def is_same_array(one: Rows, other: Rows) -> bool:
    """Whether both are the same array in memory, or the same part of the same file."""
    if isinstance(one, MemoryRows) and isinstance(other, MemoryRows):
        return one.values is other.values
    return one.file is not None and other.file is not None and one.where == other.where


def refuse_objects(rows: Rows) -> None:
    """Refuse Python objects in NumPy files: they are pickled, and loading a pickle can run code."""
    if isinstance(rows, NpyRows | NpzRows) and rows.dtype.hasobject:
        raise PythonObjectsError(rows.where)


class MemoryRows:
    """An array in memory, or a memory map."""

    file = None
    files = ()
    reading_bytes = 0

    def __init__(self, values: npt.NDArray[Any], where: str, first_row: int = 0) -> None:
        self.values = values
        self.shape = values.shape
        self.dtype = values.dtype
        self.where = where
        self._first = first_row  # the number of its first row

    def reader(self, unpack_dir: Path | None = None) -> AbstractContextManager[Reader]:
        return nullcontext(lambda start, stop: self.values[start - self._first : stop - self._first])

    def only(self, start: int, stop: int) -> MemoryRows:
        return MemoryRows(self.values[start - self._first : stop - self._first], self.where, start)


class NpyRows:
    """A .npy file, read without memory-mapping: truncating a mapped file would kill the process."""

    kind = "a .npy file"
    reading_bytes = 0

    def __init__(self, file: SourceFile) -> None:
        self.file, self.files = file, [file]
        self.where = file.path
        with file.watched(self.kind), file.open() as source:
            self.shape, self._by_column, self.dtype = read_header(source, file.path)
            self._offset = source.tell()
        check_length(file.path, self._offset, self.shape, self.dtype, file.size)

    @contextmanager
    def reader(self, unpack_dir: Path | None = None) -> Iterator[Reader]:
        with self.file.watched(self.kind), self.file.open() as source:
            yield lambda start, stop: self._read(source, start, stop)

    def only(self, start: int, stop: int) -> NpyRows:
        return self

    def _read(self, source: BinaryIO, start: int, stop: int) -> npt.NDArray[Any]:
        with self.file.blamed(self.kind):
            return self._rows(source, start, stop)

    def _rows(self, source: BinaryIO, start: int, stop: int) -> npt.NDArray[Any]:
        if not self._by_column:
            width = math.prod(self.shape[1:])
            values = self._part(source, start * width, (stop - start) * width)
            return values.reshape(stop - start, *self.shape[1:])
        return rows_of_columns(source, self._offset, self.shape, self.dtype, (start, stop))

    def _part(self, source: BinaryIO, first: int, count: int) -> npt.NDArray[Any]:
        source.seek(self._offset + first * self.dtype.itemsize)
        return read_values(source, count, self.dtype)


def rows_of_columns(
    source: Any, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any], rows: tuple[int, int]
) -> npt.NDArray[Any]:
    """Rows of a file in Fortran order, where the values of a column are contiguous."""
    start, stop = rows
    out = np.empty((shape[1], stop - start), dtype=dtype)
    for column in range(shape[1]):
        source.seek(offset + (column * shape[0] + start) * dtype.itemsize)
        out[column] = read_values(source, stop - start, dtype)
    return out.T


class NpzRows:
    """A member of a .npz file, compressed or not, read sequentially."""

    kind = "a .npz file"
    reading_bytes = 0

    def __init__(self, file: SourceFile, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
        self.file, self.files = file, [file]
        self.where = f"{file.path} ({info.filename.removesuffix('.npy')})"
        self._member = info.filename
        with archive.open(info) as opened:
            self.shape, self._by_column, self.dtype = read_header(opened, self.where)
            offset = opened.tell()
        check_length(self.where, offset, self.shape, self.dtype, info.file_size)

    @contextmanager
    def reader(self, unpack_dir: Path | None = None) -> Iterator[Reader]:
        with ExitStack() as stack:
            stack.enter_context(self.file.watched(self.kind))
            archive = stack.enter_context(zipfile.ZipFile(stack.enter_context(self.file.open())))
            source = stack.enter_context(archive.open(self._member))
            read_header(source, self.where)
            if self._by_column:
                yield from self._by_columns(source, unpack_dir)
                return
            offset, width = source.tell(), math.prod(self.shape[1:]) * self.dtype.itemsize

            def read(start: int, stop: int) -> npt.NDArray[Any]:
                with self.file.blamed(self.kind):
                    source.seek(offset + start * width)
                    values = read_values(source, (stop - start) * width // self.dtype.itemsize, self.dtype)
                    if stop == self.shape[0]:
                        source.read(1)  # zipfile verifies the checksum at the end of the member
                return values.reshape(stop - start, *self.shape[1:])

            yield read

    def only(self, start: int, stop: int) -> NpzRows:
        return self

    def _by_columns(self, source: Any, unpack_dir: Path | None) -> Iterator[Reader]:
        """Read an array in Fortran order: it is decompressed first, unless small to a temporary file, because
        compressed data can only be read sequentially."""
        size = math.prod(self.shape) * self.dtype.itemsize
        folder = tempfile.gettempdir() if unpack_dir is None else str(unpack_dir)
        with tempfile.SpooledTemporaryFile(SMALL_BYTES, dir=folder) as unpacked:
            try:
                shutil.copyfileobj(source, unpacked, 1 << 20)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                raise SpillFullError(folder, size, 0, shutil.disk_usage(folder).free) from error
            yield lambda start, stop: rows_of_columns(unpacked, 0, self.shape, self.dtype, (start, stop))


def npz_members(file: SourceFile) -> dict[str, NpzRows]:
    """The arrays of a .npz file by name."""
    with file.watched(NpzRows.kind), file.open() as source, zipfile.ZipFile(source) as archive:
        found = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        return {info.filename.removesuffix(".npy"): NpzRows(file, archive, info) for info in found}


def read_header(source: Any, where: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether the order is Fortran's, and type of a .npy file."""
    try:
        version = np.lib.format.read_magic(source)
        if version == (1, 0):
            shape, by_column, dtype = np.lib.format.read_array_header_1_0(source)
        else:
            shape, by_column, dtype = np.lib.format.read_array_header_2_0(source)
    except (ValueError, EOFError) as error:
        raise DamagedFileError(where, NpyRows.kind, error) from error
    return shape, by_column and len(shape) > 1, dtype


def check_length(where: str, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any], size: int) -> None:
    wanted = offset + math.prod(shape) * dtype.itemsize
    if wanted != size and not dtype.hasobject:  # the size of objects is unknown
        raise DamagedFileError(
            where, NpyRows.kind, f"by its header it should have {wanted:,} bytes, but it has {size:,}"
        )


def read_values(source: Any, count: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Read exactly `count` values, or raise an error."""
    values = np.empty(count, dtype=dtype)
    room = memoryview(values.view(np.uint8)) if count else memoryview(b"")  # type: ignore[arg-type]
    at = 0
    while at < len(room):
        got = source.readinto(room[at:])
        if not got:
            raise EOFError(f"{len(room) - at:,} bytes are missing")
        at += got
    return values
