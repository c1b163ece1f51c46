"""The files of a workspace, of which only some are open at a time."""

from __future__ import annotations

import errno
import os
import threading
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import SpillDirectoryError, StoppedError

# Descriptors for all files of a fit together: systems allow a process 256 to 1,024 of them.
_MOST_OPEN = 48
# The most bytes that one system call reads or writes.
_MOST_AT_ONCE = 2**30


class Directory(Protocol):
    """What a file needs from the workspace that contains it."""

    stop: _core.Stop
    open_files: OpenFiles
    bytes_written: int
    bytes_read: int

    def take(self, n_bytes: int) -> None: ...
    def give_back(self, n_bytes: int) -> None: ...
    def sync_new_files(self) -> None: ...
    def write_failed(self, error: OSError, path: Path, wanted: int) -> Exception: ...
    def damaged(self, path: Path, offset: int, wrong: str) -> Exception: ...
    def impossible(self, path: Path, offset: int, wrong: str) -> Exception: ...
    def lost(self, path: Path, what: str) -> None: ...


@dataclass
class _OpenFile:
    descriptor: int
    users: int = 0


class OpenFiles:
    """Opens files when they are used, and closes the least recently used ones."""

    def __init__(self) -> None:
        self._open: OrderedDict[Path, _OpenFile] = OrderedDict()
        self._lock = threading.Lock()

    def use(self, path: Path, flags: int = 0) -> UsedFile:
        """A descriptor that stays open in a `with` block; `flags` are for a file that is not open yet."""
        return UsedFile(self, path, flags)

    def begin(self, path: Path, flags: int) -> _OpenFile:
        """Open the file if need be, and keep it open until `end`."""
        with self._lock:
            file = self._open.get(path)
            if file is None:
                self._close_idle(_MOST_OPEN - 1)
                file = self._open[path] = _OpenFile(self._opened(path, flags))
            self._open.move_to_end(path)
            file.users += 1
            return file

    def end(self, file: _OpenFile) -> None:
        with self._lock:
            file.users -= 1

    def close(self, path: Path) -> None:
        with self._lock:
            if path in self._open:
                _close(self._open.pop(path).descriptor)

    def close_all(self) -> None:
        with self._lock:
            while self._open:
                _close(self._open.popitem()[1].descriptor)

    def _opened(self, path: Path, flags: int) -> int:
        flags |= os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(path, flags, 0o600)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
        self._close_idle(0)
        return os.open(path, flags, 0o600)

    def _close_idle(self, most: int) -> None:
        for path in [path for path, file in self._open.items() if not file.users]:
            if len(self._open) <= most:
                break
            _close(self._open.pop(path).descriptor)


class UsedFile:
    """The descriptor of a file, open in a `with` block. A class, because small reads are many."""

    def __init__(self, files: OpenFiles, path: Path, flags: int) -> None:
        self._files, self._path, self._flags = files, path, flags

    def __enter__(self) -> int:
        self._file = self._files.begin(self._path, self._flags)
        return self._file.descriptor

    def __exit__(self, *_: object) -> None:
        self._files.end(self._file)


class SpillFile:
    """A file that is appended to and read at any position."""

    def __init__(self, workspace: Directory, path: Path, unnamed: int | None = None) -> None:
        """The file at `path`, made if need be; or an unnamed one, by its descriptor, which it closes."""
        self.path = path
        self._workspace = workspace
        self._unnamed = unnamed
        try:
            with self._descriptor(os.O_CREAT) as descriptor:
                self.size = os.fstat(descriptor).st_size
        except OSError as error:
            if unnamed is not None:
                _close(unnamed)
            raise workspace.write_failed(error, path, 0) from error

    def _descriptor(self, flags: int = 0) -> AbstractContextManager[int]:
        if self._unnamed is not None:
            return nullcontext(self._unnamed)
        return self._workspace.open_files.use(self.path, flags)

    def append(self, data: npt.NDArray[np.uint8] | bytes) -> int:
        """Write at the end; returns the position of the first byte."""
        begin = self.size
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        self._workspace.take(len(view))
        try:
            with self._descriptor() as descriptor:
                while len(view) > 0:
                    if self._workspace.stop.is_set():
                        raise StoppedError
                    written = os.pwrite(descriptor, view[:_MOST_AT_ONCE], self.size)
                    self.size += written
                    view = view[written:]
        except OSError as error:
            raise self._workspace.write_failed(error, self.path, len(view)) from error
        finally:
            self._workspace.give_back(len(view))
        self._workspace.bytes_written += self.size - begin
        return begin

    def overwrite(self, offset: int, data: bytes) -> None:
        """Replace bytes that were appended."""
        try:
            with self._descriptor() as descriptor:
                while data:
                    written = os.pwrite(descriptor, data, offset)
                    offset += written
                    data = data[written:]
        except OSError as error:
            raise self._workspace.write_failed(error, self.path, len(data)) from error

    def read(self, offset: int, out: npt.NDArray[np.uint8]) -> None:
        """Fill the array with the bytes from this position on."""
        view = memoryview(out).cast("B")  # type: ignore[arg-type]
        try:
            with self._descriptor() as descriptor:
                while len(view) > 0:
                    got = os.preadv(descriptor, [view[:_MOST_AT_ONCE]], offset)
                    if got == 0:
                        raise self.damaged(offset, "it ends here, before what was written to it")
                    offset += got
                    view = view[got:]
        except SpillDirectoryError:
            raise
        except OSError as error:
            raise self._read_failed(error) from error
        self._workspace.bytes_read += len(out)

    def _read_failed(self, error: OSError) -> SpillDirectoryError:
        what = "was removed while the fit used it" if error.errno == errno.ENOENT else "could not be read"
        return SpillDirectoryError(f"{self.path} {what}: {error.strerror}.")

    def damaged(self, offset: int, wrong: str) -> Exception:
        """The error for bytes that differ from what was written at this position."""
        return self._workspace.damaged(self.path, offset, wrong)

    def impossible(self, offset: int, wrong: str) -> Exception:
        """The error for intact bytes at this position that no fit writes."""
        return self._workspace.impossible(self.path, offset, wrong)

    def lost(self, offset: int, what: str) -> None:
        """Warn that what another process wrote at this position is damaged, and is done again."""
        self._workspace.lost(self.path, f"{what} (at byte {offset:,})")

    def expect(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Tell the operating system that bytes will be read soon: position and number of each range."""
        if hasattr(os, "posix_fadvise"):
            # Whatever is wrong with the file is seen, and said, when it is read.
            with suppress(OSError), self._descriptor() as descriptor:
                for offset, size in ranges:
                    os.posix_fadvise(descriptor, offset, size, os.POSIX_FADV_WILLNEED)

    def sync(self) -> None:
        try:
            with self._descriptor() as descriptor:
                os.fdatasync(descriptor)
        except OSError as error:
            raise self._workspace.write_failed(error, self.path, 0) from error
        self._workspace.sync_new_files()

    def truncate(self, size: int) -> None:
        """Cut off the end. Even if that fails, later bytes are written from there on."""
        before, self.size = self.size, size
        try:
            with self._descriptor() as descriptor:
                os.ftruncate(descriptor, size)
        except OSError as error:
            raise self._workspace.write_failed(error, self.path, 0) from error
        finally:
            self._workspace.give_back(before - size)

    def mapped(self) -> _core.MappedFile:
        """The whole file, mapped into memory."""
        try:
            with self._descriptor() as descriptor:
                return _core.MappedFile(descriptor)
        except OSError as error:
            raise self._read_failed(error) from error

    def close(self) -> None:
        if self._unnamed is None:
            self._workspace.open_files.close(self.path)
        elif self._unnamed >= 0:
            _close(self._unnamed)
            self._unnamed = -1

    def remove(self) -> None:
        """Remove the file. If its name cannot be removed now, its space is freed; the directory is cleared at
        the end."""
        self.close()
        try:
            self.path.unlink(missing_ok=True)
        except OSError:
            with suppress(OSError):
                os.truncate(self.path, 0)
        self._workspace.give_back(self.size)


def _close(descriptor: int) -> None:
    with suppress(OSError):  # what was written and matters is synced before
        os.close(descriptor)
