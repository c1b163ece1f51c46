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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from . import _core
from .errors import DirectoryInUseError, LeftoverWarning, SpillDirectoryError, SpillFullError
from .messages import warn
from .signals import uninterrupted
from .spill_file import OpenFiles, SpillFile

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


class Workspace:
    """A locked directory of spill files and small files that are replaced as a whole."""

    def __init__(self, path: Path, lock: int, lasting: bool) -> None:
        self.path = path
        self.lasting = lasting  # outlives an interrupted fit
        self._lock = lock
        self._files: dict[str, SpillFile] = {}
        self._nameless: list[SpillFile] = []
        self._opening = threading.Lock()
        self.open_files = OpenFiles()
        self.bytes_written = self.bytes_read = 0
        self.stop = _core.Stop()  # set: nothing more is written

    def file(self, name: str) -> SpillFile:
        """The spill file of this name."""
        with self._opening:
            if name not in self._files:
                self._files[name] = SpillFile(self, self.path / name)
            return self._files[name]

    def nameless(self) -> SpillFile:
        """A file that is gone when nobody uses it any more."""
        try:
            try:
                descriptor, path = tempfile.mkstemp(prefix="nameless-", dir=self.path)
            except FileNotFoundError:  # the directory was removed: what is trained is worth another place
                descriptor, path = tempfile.mkstemp(prefix="nameless-", dir=nearest_existing(self.path))
            with suppress(OSError):  # it is removed with the directory
                os.unlink(path)
        except OSError as error:
            raise self.write_failed(error, self.path, 0) from error
        self._nameless.append(SpillFile(self, Path(path), descriptor))  # to be closed if the fit fails
        return self._nameless[-1]

    def remove(self, name: str) -> None:
        """A file that is not needed any more; what cannot be removed now is tried again in the end."""
        if name in self._files:
            self._files.pop(name).remove()
        else:
            with suppress(OSError):
                (self.path / name).unlink(missing_ok=True)

    def has(self, name: str) -> bool:
        return (self.path / name).exists()

    def read(self, name: str) -> bytes:
        """A small file as a whole."""
        path = self.path / name
        try:
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
                return file.read()
        except OSError as error:
            raise SpillDirectoryError(f"{path} could not be read: {error.strerror}.") from error

    def replace(self, name: str, data: bytes) -> None:
        """Write a small file whole or not at all, also if the machine fails."""
        temporary = self.path / f"{name}.new"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(temporary, flags, 0o600), "wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            os.replace(temporary, self.path / name)
            directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        except OSError as error:
            raise self.write_failed(error, temporary, len(data)) from error
        self.bytes_written += len(data)

    def take(self, n_bytes: int) -> None:
        """Room on disk for what is written next."""

    def give_back(self, n_bytes: int) -> None:
        """Room on disk that was taken and is not needed."""

    def used(self) -> int:
        """Bytes of all files on disk now."""
        total = sum(file.size for file in self._nameless)
        with suppress(OSError):  # the directory was removed, or cannot be read
            for entry in os.scandir(self.path):
                with suppress(FileNotFoundError):  # removed by another thread
                    total += entry.stat(follow_symlinks=False).st_size
        return total

    def free(self) -> int:
        """Bytes that are free on the disk, if it tells."""
        try:
            return shutil.disk_usage(nearest_existing(self.path)).free
        except OSError:
            return 0

    def write_failed(self, error: OSError, path: Path, wanted: int) -> Exception:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return SpillFullError(self.path, wanted, self.used(), self.free())
        if not self.path.is_dir():
            return SpillDirectoryError(f"{self.path} was removed while the fit used it.")
        return SpillDirectoryError(f"{path} could not be written: {error.strerror}.")

    def close(self, finished: bool) -> None:
        """Release the directory; it stays only if it is to be taken up again.

        Whatever fails here, a fit that is finished is kept, and the error of one that failed is the one seen.
        """
        with uninterrupted():
            self._close(finished)

    def _close(self, finished: bool) -> None:
        for file in self._nameless:
            file.close()
        self.open_files.close_all()
        try:
            if not self.lasting:
                _remove_tree(self.path)
            elif finished:
                self.clear()
            if self.lasting and not self._ours():  # also a directory that is not for us is left as it was
                _remove([self.path / _LOCK])
        except FileNotFoundError:
            pass  # the directory was removed by somebody else
        except OSError as error:
            _tell_of_leftovers(self.path, error)
        finally:
            with suppress(OSError):
                os.close(self._lock)

    def clear(self) -> None:
        """Remove what a fit left, also if it is killed while it does so."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with suppress(OSError):  # a full disk must not keep its files
            os.close(os.open(self.path / _FINISHED, flags, 0o600))
        _remove(self._ours())
        _remove([self.path / _FINISHED])

    def _ours(self) -> list[Path]:
        return [Path(entry.path) for entry in os.scandir(self.path) if _OURS.fullmatch(entry.name)]


@contextmanager
def spill_space(spill_dir: Path | None) -> Iterator[Workspace]:
    """A new private directory in `spill_dir`, or in the system's place for temporary files."""
    parent = Path(tempfile.gettempdir()) if spill_dir is None else spill_dir
    space = None
    try:
        with uninterrupted():
            space = _new_space(parent)
        yield space
    finally:
        if space is not None:
            space.close(finished=True)


def _new_space(parent: Path) -> Workspace:
    path = None
    try:
        parent.mkdir(parents=True, exist_ok=True)
        reclaim(parent)
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))  # readable by its owner alone
        lock = _locked(path / _LOCK)
    except OSError as error:
        if path is not None:
            shutil.rmtree(path, ignore_errors=True)
        raise SpillDirectoryError(
            f"spill_dir={str(parent)!r} cannot be used: {error.strerror}. "
            "Choose a directory that can be written to."
        ) from error
    assert lock is not None
    return Workspace(path, lock, lasting=False)


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
            try:
                space.clear()
            except OSError as error:
                raise SpillDirectoryError(
                    f"checkpoint_dir={str(directory)!r} holds what a finished fit left, and {error.filename} "
                    f"could not be removed: {error.strerror}."
                ) from error
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
            try:
                shutil.rmtree(path)
            finally:
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
            if os.fstat(fd).st_nlink > 0:
                os.write(fd, b"locked")
                return fd
            os.close(fd)  # it was removed by the process that had it
        except BlockingIOError:
            os.close(fd)
            return None
        except OSError:
            with suppress(OSError):
                if os.fstat(fd).st_size == 0:  # it was made just now
                    path.unlink()
            os.close(fd)
            raise


def nearest_existing(path: Path) -> Path:
    """The directory, or the nearest one above it that exists."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path


def _remove(paths: Iterable[Path]) -> None:
    """All that can be removed is, before what cannot is an error."""
    again = []
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError:
            again.append(path)
    for path in again:
        path.unlink(missing_ok=True)


def _remove_tree(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        shutil.rmtree(path)


def _tell_of_leftovers(path: Path, error: OSError) -> None:
    """Warn, unless a warning is an error and would hide the one that a fit ends with."""
    what = (
        f"{error.filename or path} could not be removed: {error.strerror}. The forest is not affected, but "
        f"files of the fit are left in {path}: remove them."
    )
    failed = error.__context__
    if failed is not None:
        failed.add_note(what)
    with suppress(LeftoverWarning) if failed is not None else nullcontext():
        warn(what, LeftoverWarning)
