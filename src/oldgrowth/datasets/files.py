"""Finds the files of a path, directory, glob, list or URL, and detects changes to them."""

from __future__ import annotations

import io
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

import pyarrow as pa

from ..errors import (
    ChangedSourceError,
    DamagedFileError,
    MissingExtraError,
    NoDataError,
    OldgrowthError,
    UnreadableFileError,
)
from ..system.resource_limits import limit_error
from .arrow_threads import start_arrow_threads
from .walking import Chosen, check_regular, match, partition_of, split_glob, walk

# Errors that file readers raise: zipfile and h5py raise RuntimeError for damaged structures, pyarrow raises
# UnicodeDecodeError for damaged names.
READ_ERRORS = (
    *(OSError, EOFError, RuntimeError, UnicodeDecodeError),
    *(pa.ArrowException, zipfile.BadZipFile, zlib.error),
)

# What Arrow and HDF5 say if a file cannot be closed.
_CLOSING = re.compile(r"error closing file|unable to close file")


@dataclass(frozen=True)
class SourceFile:
    """A file with its size and time when it was found; `partition` has the key=value parts of its path."""

    path: str
    system: Any = None  # fsspec file system, None for a local file
    size: int = 0
    stamp: int | str = 0  # mtime in ns; for remote files whatever the file system provides
    partition: dict[str, str | None] = field(default_factory=dict)
    directory: str = ""  # that a relative path begins at, if not the working directory

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which may have another working directory."""
        return vars(self) | {"directory": self.directory or os.getcwd()}

    @property
    def place(self) -> str:
        """The path by which this process opens the file."""
        return self.path if self.system is not None else os.path.join(self.directory, self.path)

    def open(self) -> BinaryIO:
        if self.system is None:
            return io.BufferedReader(io.FileIO(self.place))
        opened: BinaryIO = self.system.open(self.path, "rb")
        return opened

    def open_arrow(self) -> pa.NativeFile:
        start_arrow_threads()
        # Not memory-mapped: truncating a mapped file would kill the process.
        if self.system is None:
            return pa.OSFile(self.place)
        return pa.PythonFile(self.system.open(self.path, "rb"), mode="r")

    def check_unchanged(self) -> None:
        try:
            now = stamp_of(self.place, self.system)
        except FileNotFoundError as error:
            raise ChangedSourceError(self.path, "the file was removed") from error
        if now[0] != self.size:
            raise ChangedSourceError(self.path, f"its size was {self.size:,} bytes and is now {now[0]:,}")
        if now[1] != self.stamp:
            raise ChangedSourceError(self.path, "it was modified")

    @contextmanager
    def watched(self, kind: str) -> Iterator[None]:
        """Raise an error if the file changes or fails inside the context."""
        self.check_unchanged()
        with self.blamed(kind):
            yield
        self.check_unchanged()

    @contextmanager
    def blamed(self, kind: str) -> Iterator[None]:
        """Turn read errors inside the context into errors that name this file."""
        try:
            yield
        except OldgrowthError:
            raise
        except READ_ERRORS as error:
            if (limit := limit_error(error)) is not None:
                raise limit from error
            system = isinstance(error, OSError) and error.errno is not None
            if system or _CLOSING.search(str(error)):  # an error of the system, not of the contents
                raise UnreadableFileError(self.path, error) from error
            self.check_unchanged()
            raise DamagedFileError(self.path, kind, error) from error

    def described(self) -> dict[str, Any]:
        """Path, size and time, for a fingerprint."""
        path = self.path if self.system is not None else os.path.abspath(self.place)
        return {"path": path, "size": self.size, "mtime_ns": self.stamp}


def stamp_of(path: str, system: Any) -> tuple[int, int | str]:
    """The size of a file and the time of its last change."""
    if system is None:
        status = os.stat(path)
        return status.st_size, status.st_mtime_ns
    system.invalidate_cache(path)
    info = system.info(path)
    for key in ("mtime", "LastModified", "last_modified", "updated", "created", "ETag"):
        if info.get(key) is not None:
            return int(info["size"]), str(info[key])
    return int(info["size"]), ""


def find_files(
    source: str | Path | Sequence[str | Path], extensions: Sequence[str], tell: bool = True
) -> list[SourceFile]:
    """Find the files of a path, directory, glob, URL or list; in directories and globs, sorted by path.

    In a directory, names that start with a dot or an underscore and names without one of the extensions
    are skipped, with a warning if they may be data and `tell` is set.
    """
    if isinstance(source, (str, Path)):
        return _find(str(source), extensions, tell)
    files = [file for path in source for file in _find(str(path), extensions, tell)]
    if not files:
        raise NoDataError("The list of files", "it is empty")
    folders = [os.path.dirname(file.path) for file in files]
    common = os.path.commonpath(folders) if len({os.path.isabs(folder) for folder in folders}) == 1 else ""
    return [_with_partition(file, file.path[len(common) :]) for file in files]


def is_url(path: str) -> bool:
    return "://" in path


def _find(path: str, extensions: Sequence[str], tell: bool) -> list[SourceFile]:
    if path.startswith("file://"):
        path = unquote(path.removeprefix("file://"))
    system = None
    if is_url(path):
        system, path = _remote(path)
    else:
        path = os.path.expanduser(path)
    if system is not None:
        root, found = _find_remote(path, system, extensions)
    else:
        root, found = _find_local(path, extensions, tell)
    if not found:
        raise NoDataError(repr(path), "no file matches")
    return [_with_partition(seen_now(name, system), name[len(root) :]) for name in sorted(found)]


def _find_local(path: str, extensions: Sequence[str], tell: bool) -> tuple[str, list[str]]:
    """The root directory of a path, and the files below it."""
    if os.path.isdir(path):
        root = path.rstrip("/") or "/"
        chosen = Chosen(root, extensions)
        found = walk(root, chosen)
        if found and tell:
            chosen.say()
        return root, found
    if os.path.lexists(path):
        check_regular(path)
        return path, [path]
    return split_glob(path)[0], match(path)


def _find_remote(path: str, system: Any, extensions: Sequence[str]) -> tuple[str, list[str]]:
    if system.isfile(path):
        return path, [path]
    if system.isdir(path):
        root = path.rstrip("/")
        chosen = Chosen(root, extensions)
        # The generic find of fsspec ignores directories that it cannot list, unless told otherwise.
        general = type(system).find is _fsspec().AbstractFileSystem.find
        names = system.find(root, on_error="raise") if general else system.find(root)
        found = [name for name in names if chosen.is_data(name)]
        if found:
            chosen.say()
        return root, found
    return split_glob(path)[0], [name for name in system.glob(path) if system.isfile(name)]


def _fsspec() -> Any:
    import fsspec

    return fsspec


def _remote(path: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError as error:
        raise MissingExtraError("fsspec>=2024.2", f"The URL {path}") from error
    try:
        system, inner = fsspec.core.url_to_fs(path)
    except (ValueError, ImportError) as error:
        raise NoDataError(repr(path), str(error)) from error
    local = isinstance(system, fsspec.implementations.local.LocalFileSystem)
    return (None if local else system), inner


def seen_now(path: str, system: Any = None) -> SourceFile:
    """A file with its current size and time."""
    size, stamp = stamp_of(path, system)
    return SourceFile(path, system, size, stamp)


def _with_partition(file: SourceFile, inner: str) -> SourceFile:
    """The file with the key=value directories of a part of its path added."""
    partition = {**file.partition, **partition_of(inner)}
    return SourceFile(file.path, file.system, file.size, file.stamp, partition)
