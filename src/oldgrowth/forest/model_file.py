"""Writes and reads model files, which docs/formats.md describes.

Files are not trusted: lengths, offsets, checksums and then every index of the forest are checked; those of a
bottom tree in a mapped file when it is first used.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol, Self

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import (
    CorruptedModelFileError,
    MissingModelFileError,
    NewerModelFileError,
    NotAModelFileError,
    TruncatedModelFileError,
    UnreadableModelFileError,
)
from ..system.atomic_file import new_file
from .forest import CATEGORY_ARRAYS, MAPPED, TYPES, Forest, MappedArrays
from .model_meta import SavedForest, shape_of

VERSION = 2  # of a forest with categorical features; of others it is 1
PAGE = 4096
# The last byte is not text, and ends the output of programs that print the file.
_MAGIC = b"OLDGROW\x1a"
_HEADER = struct.Struct("<8sIIQ")  # magic, version, number of sections, length of the file
_ENTRY = struct.Struct("<16s8sQQI4x")  # name, type of the items, offset, length in bytes, CRC-32C
_CRC = struct.Struct("<I")  # of the first page up to here, in its last four bytes
_PART_BYTES = 1 << 26  # read and written at a time
_ALL_TYPES = TYPES | {"meta": np.dtype("u1")}
# A file of version 1 has no categories.
_TYPES = {name: kind for name, kind in _ALL_TYPES.items() if name not in CATEGORY_ARRAYS}


@dataclass(frozen=True)
class Section:
    """A part of the file; length and offset are in bytes."""

    name: str
    offset: int
    length: int
    crc: int

    @property
    def end(self) -> int:
        return self.offset + self.length


@dataclass(frozen=True)
class Model:
    """The contents of a file: the forest, its metadata, and the sections of both."""

    forest: Forest
    meta: dict[str, Any]
    sections: tuple[Section, ...]
    size: int


def _types_of(version: int) -> dict[str, np.dtype[Any]]:
    return _TYPES if version == 1 else _ALL_TYPES


def _page_after(end: int) -> int:
    return -(-end // PAGE) * PAGE


class ModelWriter:
    """Writes a file section by section, so that a forest never has to be in memory as a whole.

    The file appears under its name when the `with` block succeeds; otherwise nothing is left of it.

    >>> with ModelWriter(path) as writer:                              # doctest: +SKIP
    ...     writer.add("top_nodes", top_nodes)                         # and the other small arrays
    ...     writer.start("nodes")
    ...     for tree in trees:
    ...         writer.append(tree.nodes)
    ...     writer.finish()
    ...     writer.add_meta(meta)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).expanduser()
        self._sections: list[Section] = []
        self._open: tuple[str, int | None] | None = None
        self._crc = self._length = 0
        self._scope = self._whole_file()

    @contextlib.contextmanager
    def _whole_file(self) -> Iterator[None]:
        with new_file(self._path) as self._file:
            self._file.write(bytes(PAGE))  # the header comes last, when everything is known
            yield
            self._write_header()

    def __enter__(self) -> Self:
        self._scope.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scope.__exit__(kind, error, trace)

    def start(self, name: str, n_items: int | None = None, dtype: npt.DTypeLike | None = None) -> None:
        """Begin a section; `finish` checks that it has `n_items`, if given."""
        assert self._open is None, "finish the section first"
        assert name in _ALL_TYPES and name not in (s.name for s in self._sections)
        assert dtype is None or np.dtype(dtype) == _ALL_TYPES[name], f"{name} holds {_ALL_TYPES[name]}"
        end = self._file.tell()
        self._file.write(bytes(_page_after(end) - end))
        self._open, self._crc, self._length = (name, n_items), 0, 0

    def append(self, part: npt.NDArray[Any]) -> None:
        """Add items to the section that is open."""
        assert self._open is not None, "start a section first"
        dtype = _ALL_TYPES[self._open[0]]
        assert part.dtype == dtype and part.ndim == 1, f"{self._open[0]} holds {dtype}"
        step = _PART_BYTES // dtype.itemsize
        for first in range(0, len(part), step):
            data = np.ascontiguousarray(part[first : first + step]).view(np.uint8)
            self._crc = _core.crc32c(data, self._crc)
            self._file.write(data.data)
            self._length += data.nbytes

    def finish(self) -> None:
        """End the section that is open."""
        assert self._open is not None, "start a section first"
        name, n_items = self._open
        assert n_items is None or self._length == n_items * _ALL_TYPES[name].itemsize, (
            f"{name} is not complete"
        )
        offset = self._file.tell() - self._length
        self._sections.append(Section(name, offset, self._length, self._crc))
        self._open = None

    def add(self, name: str, array: npt.NDArray[Any]) -> None:
        """Write a whole section."""
        self.start(name, len(array))
        self.append(array)
        self.finish()

    def add_meta(self, meta: dict[str, Any]) -> None:
        """Write the metadata of the forest, see model_meta.py; may come last."""
        self.add("meta", np.frombuffer(json.dumps(meta, allow_nan=False).encode(), dtype=np.uint8))

    def _write_header(self) -> None:
        written = {s.name for s in self._sections}
        version = 2 if written.intersection(CATEGORY_ARRAYS) else 1
        missing = sorted(_types_of(version).keys() - written)
        assert self._open is None and not missing, f"{missing} not written"
        page = bytearray(PAGE)
        _HEADER.pack_into(page, 0, _MAGIC, version, len(self._sections), self._file.tell())
        for i, s in enumerate(self._sections):
            entry = (s.name.encode(), _ALL_TYPES[s.name].str.encode(), s.offset, s.length, s.crc)
            _ENTRY.pack_into(page, _HEADER.size + i * _ENTRY.size, *entry)
        _CRC.pack_into(page, PAGE - _CRC.size, _page_crc(page))
        self._file.seek(0)
        self._file.write(page)


class Arrays(Protocol):
    """The arrays of a forest, part by part."""

    saved_to: Path | None

    @property
    def array_names(self) -> tuple[str, ...]:
        """The arrays that it has, in their order."""

    def length(self, name: str) -> int:
        """The number of items of an array."""

    def parts(self, name: str) -> Iterator[npt.NDArray[Any]]:
        """The parts of an array, in order."""


def write_model(path: str | os.PathLike[str], forest: Arrays, meta: dict[str, Any]) -> None:
    """Write a forest and the metadata from `describe`."""
    with ModelWriter(path) as writer:
        for name in forest.array_names:
            writer.start(name, forest.length(name))
            for part in forest.parts(name):
                writer.append(part)
            writer.finish()
        writer.add_meta(meta)
    forest.saved_to = Path(path).expanduser().absolute()


def checksums_of(path: str | os.PathLike[str]) -> dict[str, int]:
    """The CRC-32C of each array of a forest, from the first page of its file alone."""
    path = Path(path).expanduser()
    with _naming(path), open(path, "rb", buffering=0, opener=_open_at_once) as file:
        size = os.fstat(file.fileno()).st_size
        sections = _read_header(path, _read(path, file, 0, min(size, PAGE)).tobytes(), size)
    return {section.name: section.crc for section in sections if section.name != "meta"}


def read_model(path: str | os.PathLike[str], mmap: bool = True) -> Model:
    """Read and check a file; with `mmap` the trees stay in it and are read as they are needed."""
    path = Path(path).expanduser()
    with _naming(path), open(path, "rb", buffering=0, opener=_open_at_once) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise NotAModelFileError(path, "it is not a regular file")
        size = status.st_size
        sections = _read_header(path, _read(path, file, 0, min(size, PAGE)).tobytes(), size)
        mapped = _core.MappedFile(file.fileno()) if mmap else None
        if mapped is not None and mapped.size != size:
            raise TruncatedModelFileError(path, mapped.size, size)  # it changed just now
        parts = _read_sections(path, file, sections, mapped)
    meta = _read_meta(path, parts.pop("meta"))
    try:
        n_features, n_classes = shape_of(meta)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptedModelFileError(path, "meta", str(error)) from error
    arrays = {name: part.view(_ALL_TYPES[name]) for name, part in parts.items()}
    trees = None
    if mapped is not None:
        trees = MappedArrays((mapped,), {s.name: s.crc for s in sections if s.name in MAPPED}, path)
    forest = Forest(n_features, n_classes, arrays, path, trees)
    if not mmap:
        forest.check()
    return Model(forest, meta, sections, size)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """A block whose system errors become errors that name the file."""
    try:
        yield
    except FileNotFoundError as error:
        raise MissingModelFileError(path, error) from error
    except OSError as error:
        if error.errno is None:
            raise
        if error.errno == errno.ENOMEM:  # the system's, not the file's
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise UnreadableModelFileError(path, error) from error


def load_for_prediction(path: str | os.PathLike[str]) -> SavedForest:
    """Load a saved forest for prediction, without importing scikit-learn."""
    return restored(path, read_model(path), SavedForest)


def restored(path: str | os.PathLike[str], model: Model, make: Callable[..., Any]) -> Any:
    """The result of `make` for the contents of a file; invalid metadata is an error that names the file."""
    try:
        return make(model.meta, model.forest)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise CorruptedModelFileError(Path(path), "meta", f"{type(error).__name__} {error}") from error


def _page_crc(page: bytes | bytearray) -> int:
    return int(_core.crc32c(np.frombuffer(page, dtype=np.uint8)[: PAGE - _CRC.size]))


def _read_header(path: Path, page: bytes, size: int) -> tuple[Section, ...]:
    """The sections, which must follow one another in the file, each beginning on a new page."""
    if page[: len(_MAGIC)] != _MAGIC[: len(page)]:
        raise NotAModelFileError(path)
    if len(page) < PAGE:
        raise TruncatedModelFileError(path, size, PAGE)
    if _CRC.unpack_from(page, PAGE - _CRC.size)[0] != _page_crc(page):
        raise CorruptedModelFileError(path, "header", "the checksum differs")
    _, version, count, length = _HEADER.unpack_from(page)
    if version > VERSION:
        raise NewerModelFileError(path, version, VERSION)
    if size < length:
        raise TruncatedModelFileError(path, size, length)
    if size > length:
        raise CorruptedModelFileError(path, "header", f"{size:,} bytes instead of {length:,}")
    if version == 0 or count != len(_types_of(version)):
        raise CorruptedModelFileError(path, "header", f"version {version} with {count} sections")
    sections: list[Section] = []
    end = PAGE
    for i in range(count):
        name, dtype, *place = _ENTRY.unpack_from(page, _HEADER.size + i * _ENTRY.size)
        section = Section(name.rstrip(b"\0").decode("ascii", "replace"), *place)
        known = _types_of(version).get(section.name)
        if known is None or section.name in (s.name for s in sections):
            raise CorruptedModelFileError(path, "header", f"an unexpected section {section.name!r}")
        if dtype.rstrip(b"\0") != known.str.encode() or section.length % known.itemsize:
            raise CorruptedModelFileError(path, section.name, "its items are of another type")
        if section.offset != _page_after(end) or section.end > size:
            raise CorruptedModelFileError(path, section.name, "its offset is wrong")
        sections.append(section)
        end = section.end
    if end != size:
        raise CorruptedModelFileError(path, "header", "the sections do not fill the file")
    return tuple(sections)


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for the other end of a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _read(path: Path, file: BinaryIO, offset: int, size: int) -> npt.NDArray[np.uint8]:
    """Bytes of the file, which was long enough when it was opened."""
    data = np.empty(size, dtype=np.uint8)
    done = 0
    while done < size:
        got = os.preadv(file.fileno(), [data[done : done + _PART_BYTES].data], offset + done)
        if got == 0:
            raise TruncatedModelFileError(path, offset + done, offset + size)
        done += got
    return data


def _read_sections(
    path: Path, file: BinaryIO, sections: tuple[Section, ...], mapped: _core.MappedFile | None
) -> dict[str, npt.NDArray[np.uint8]]:
    """The bytes of each section. Checksums must match, and bytes between sections must be zero.

    Trees stay in a mapped file and are not read yet; everything else is copied, so that it cannot change.
    """
    parts, end = {}, PAGE
    for section in sections:
        if _read(path, file, end, section.offset - end).any():
            raise CorruptedModelFileError(path, section.name, "the bytes before it are not zero")
        if mapped is not None and section.name in MAPPED:
            part = mapped.bytes[section.offset : section.end]
        else:
            part = _read(path, file, section.offset, section.length)
            if _core.crc32c(part) != section.crc:
                raise CorruptedModelFileError(path, section.name, "the checksum differs")
        parts[section.name], end = part, section.end
    return parts


def _read_meta(path: Path, part: npt.NDArray[np.uint8]) -> dict[str, Any]:
    # Empty brackets would take 25 times their bytes in memory.
    if np.count_nonzero((part == ord("{")) | (part == ord("["))) > 64 + len(part) // 5:
        raise CorruptedModelFileError(path, "meta", "it has too many brackets")
    try:
        meta = json.loads(part.tobytes())
    except (ValueError, RecursionError) as error:
        raise CorruptedModelFileError(path, "meta", str(error)) from error
    if not isinstance(meta, dict):
        raise CorruptedModelFileError(path, "meta", "it is not an object")
    return meta
