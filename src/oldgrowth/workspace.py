"""The directory in which a fit keeps what does not fit memory.

It is private to one process, locked while in use, and gone when the fit ends. A directory that a killed
process left behind is recognised by its free lock and removed by the next fit. All bytes that go to disk
before the model does go through `SpillFile.append` and `Workspace.replace`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from .errors import DirectoryInUseError, SpillDirectoryError, SpillFullError, StoppedError

_PREFIX = "oldgrowth-spill-"
_LOCK = "lock"
# Says that a fit has ended and that its files are being removed.
_FINISHED = "finished"
# All that a fit leaves in its checkpoint directory; nothing else there is ever removed.
_OURS = re.compile(
    r"(checkpoint\.json|(sample|rounds|top-\d+|round-\d+(-split)?)\.npz)(\.new)?|nameless-\w+"
    r"|(sample|top-\d+)\.rows|(trees|oob)\.log"
)
# A directory without a lock may be one that another process is just making.
_UNLOCKED_SECONDS = 60
# One call to the system writes at most so many bytes.
_MOST_AT_ONCE = 2**30


class SpillFile:
    """A file that grows at its end and is read anywhere."""

    def __init__(self, space: Workspace, path: Path, fd: int) -> None:
        self.path = path
        self._space = space
        self._fd = fd
        self.size = os.fstat(fd).st_size

    def append(self, data: npt.NDArray[np.uint8] | bytes) -> int:
        """Write at the end; returns where the bytes begin."""
        begin = self.size
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        while len(view) > 0:
            if self._space.stop.is_set():
                raise StoppedError
            try:
                written = os.pwrite(self._fd, view[:_MOST_AT_ONCE], self.size)
            except OSError as error:
                raise self._space.write_failed(error, self.path, len(view)) from error
            self.size += written
            view = view[written:]
        self._space.bytes_written += self.size - begin
        return begin

    def read(self, offset: int, out: npt.NDArray[np.uint8]) -> None:
        """Fill the array from here on."""
        view = memoryview(out).cast("B")  # type: ignore[arg-type]
        while len(view) > 0:
            got = os.preadv(self._fd, [view[:_MOST_AT_ONCE]], offset)
            if got == 0:
                raise SpillDirectoryError(
                    f"{self.path} ends at byte {offset}, before the rows written to it."
                )
            offset += got
            view = view[got:]
        self._space.bytes_read += len(out)

    def expect(self, offset: int, size: int) -> None:
        """Tell the system that these bytes are read soon."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._fd, offset, size, os.POSIX_FADV_WILLNEED)

    def sync(self) -> None:
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            raise self._space.write_failed(error, self.path, 0) from error

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)
        self.size = size

    def mapped(self, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """All of it as an array that the system reads when it is used."""
        if self.size == 0:
            return np.zeros(0, dtype=dtype)
        with os.fdopen(os.dup(self._fd), "rb") as file:
            return np.memmap(file, dtype=dtype, mode="r")

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def remove(self) -> None:
        """Free the disk; what other threads read at the moment stays until they close."""
        self.close()
        self.path.unlink(missing_ok=True)


class Workspace:
    """A locked directory of spill files and small files that are replaced as a whole."""

    def __init__(self, path: Path, lock: int, lasting: bool) -> None:
        self.path = path
        self.lasting = lasting  # outlives an interrupted fit
        self._lock = lock
        self._files: dict[str, SpillFile] = {}
        self._nameless: list[SpillFile] = []
        self._opening = threading.Lock()
        self.bytes_written = self.bytes_read = 0
        self.stop = _core.Stop()  # set: nothing more is written

    def file(self, name: str) -> SpillFile:
        """The spill file of this name, opened once."""
        with self._opening:
            if name not in self._files:
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                path = self.path / name
                try:
                    self._files[name] = SpillFile(self, path, os.open(path, flags, 0o600))
                except OSError as error:
                    raise self.write_failed(error, path, 0) from error
            return self._files[name]

    def nameless(self) -> SpillFile:
        """A file that is gone when nobody uses it any more."""
        try:
            fd, path = tempfile.mkstemp(prefix="nameless-", dir=self.path)
        except OSError as error:
            raise self.write_failed(error, self.path, 0) from error
        os.unlink(path)
        self._nameless.append(SpillFile(self, Path(path), fd))  # to be closed if the fit fails
        return self._nameless[-1]

    def remove(self, name: str) -> None:
        if name in self._files:
            self._files.pop(name).remove()
        else:
            (self.path / name).unlink(missing_ok=True)

    def has(self, name: str) -> bool:
        return (self.path / name).exists()

    def read(self, name: str) -> bytes:
        """A small file as a whole."""
        path = self.path / name
        try:
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                return file.read()
        except OSError as error:
            raise SpillDirectoryError(f"{path} could not be read: {error.strerror}.") from error

    def replace(self, name: str, data: bytes) -> None:
        """Write a small file whole or not at all, also if the machine fails."""
        temporary = self.path / f"{name}.new"
        try:
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(fd, "wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            os.replace(temporary, self.path / name)
            directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        except OSError as error:
            raise self.write_failed(error, temporary, len(data)) from error
        self.bytes_written += len(data)

    def used(self) -> int:
        """Bytes of all files on disk now."""
        total = sum(file.size for file in self._nameless)
        for entry in os.scandir(self.path):
            with suppress(FileNotFoundError):  # removed by another thread
                total += entry.stat(follow_symlinks=False).st_size
        return total

    def free(self) -> int:
        return shutil.disk_usage(self.path).free

    def write_failed(self, error: OSError, path: Path, wanted: int) -> Exception:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return SpillFullError(self.path, wanted, self.used(), self.free())
        return SpillDirectoryError(f"{path} could not be written: {error.strerror}.")

    def close(self, finished: bool) -> None:
        """Release the directory; it stays only if it is to be taken up again."""
        for file in [*self._files.values(), *self._nameless]:
            file.close()
        if not self.lasting:
            shutil.rmtree(self.path)
        elif finished:
            self.clear()
        if self.lasting and not self._ours():  # also a directory that is not for us is left as it was
            (self.path / _LOCK).unlink(missing_ok=True)
        os.close(self._lock)

    def clear(self) -> None:
        """Remove what a fit left, also if it is killed while it does so."""
        os.close(os.open(self.path / _FINISHED, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        for path in self._ours():
            path.unlink()
        (self.path / _FINISHED).unlink()

    def _ours(self) -> list[Path]:
        return [Path(entry.path) for entry in os.scandir(self.path) if _OURS.fullmatch(entry.name)]


@contextmanager
def spill_space(spill_dir: Path | None) -> Iterator[Workspace]:
    """A new private directory in `spill_dir`, or in the system's place for temporary files."""
    parent = Path(tempfile.gettempdir()) if spill_dir is None else spill_dir
    try:
        parent.mkdir(parents=True, exist_ok=True)
        reclaim(parent)
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))  # readable by its owner alone
        lock = _locked(path / _LOCK)
    except OSError as error:
        raise SpillDirectoryError(
            f"spill_dir={str(parent)!r} cannot be used: {error.strerror}. "
            "Choose a directory that can be written to."
        ) from error
    assert lock is not None
    space = Workspace(path, lock, lasting=False)
    try:
        yield space
    finally:
        space.close(finished=True)


@contextmanager
def lasting_space(directory: Path, keep: bool = False) -> Iterator[Workspace]:
    """A directory that keeps its files when the fit does not end, or in any case if `keep`.

    Refused while another process has it.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _locked(directory / _LOCK)
    except OSError as error:
        raise SpillDirectoryError(
            f"checkpoint_dir={str(directory)!r} cannot be used: {error.strerror}. "
            "Choose a directory that can be written to."
        ) from error
    if lock is None:
        raise DirectoryInUseError(directory)
    space = Workspace(directory, lock, lasting=True)
    finished = False
    try:
        if space.has(_FINISHED):
            space.clear()
        yield space
        finished = not keep
    finally:
        space.close(finished)


def clear_lasting(directory: Path) -> None:
    """Remove what a fit that kept its files has left in them."""
    with lasting_space(directory):
        pass  # a fit that ends well clears it


def reclaim(parent: Path) -> int:
    """Remove what killed fits left here; returns how many directories."""
    removed = 0
    for entry in os.scandir(parent):
        if not entry.name.startswith(_PREFIX) or not entry.is_dir(follow_symlinks=False):
            continue
        with suppress(OSError):  # another process may be faster, or it is not ours to remove
            found = entry.stat(follow_symlinks=False)
            if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
                continue
            path = Path(entry.path)
            if not _marked(path / _LOCK) and time.time() - found.st_mtime < _UNLOCKED_SECONDS:
                continue
            lock = _locked(path / _LOCK)
            if lock is None:
                continue
            shutil.rmtree(path)
            os.close(lock)
            removed += 1
    return removed


def _marked(path: Path) -> bool:
    """Whether a lock was ever held."""
    return path.exists() and path.stat(follow_symlinks=False).st_size > 0


def _locked(path: Path) -> int | None:
    """A file descriptor that holds the lock until it is closed, or None if another process has it."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        if os.fstat(fd).st_nlink > 0:
            os.write(fd, b"locked")
            return fd
        os.close(fd)  # it was removed by the process that had it
