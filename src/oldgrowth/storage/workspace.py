"""The directory in which a fit keeps what does not fit memory.

It is private to one process, locked while in use, and gone when the fit ends. A directory that a killed
process left behind is known by its marker and its free lock, and removed by the next fit. All bytes that go
to disk before the model does go through `SpillFile.append` and `Workspace.replace`.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from .. import _core
from ..errors import (
    CheckpointError,
    DamagedBlockError,
    DamagedCheckpointError,
    SharedCheckpointError,
    SpillDirectoryError,
    SpillFullError,
    SpillLimitError,
)
from ..messages.log import warn
from ..messages.warnings import DamagedPartWarning, LeftoverWarning
from ..system.limits import disk_space, nearest_existing
from ..system.signals import uninterrupted
from . import fit_directory
from .spill_file import OpenFiles, SpillFile

_PREFIX = "oldgrowth-spill-"


class Workspace:
    """A locked directory of spill files and small files that are replaced as a whole."""

    def __init__(self, path: Path, lock: int, persistent: bool, named: Path | None = None) -> None:
        self.path = path
        self.named = path if named is None else named  # as the person knows it
        self.persistent = persistent  # outlives an interrupted fit
        self._lock = lock
        self._files: dict[str, SpillFile] = {}
        self._unnamed: list[SpillFile] = []
        self._opening = threading.Lock()
        self.open_files = OpenFiles()
        self._unsynced_names = False
        self.bytes_written = self.bytes_read = 0
        self.stop = _core.Stop()  # set: nothing more is written
        self.limit: int | None = None  # on the bytes of all files together
        self._counting = threading.Lock()
        self._on_disk = self.used()  # of an interrupted fit

    def file(self, name: str) -> SpillFile:
        """The spill file of this name."""
        with self._opening:
            if name not in self._files:
                if self.has(name):
                    self.refuse_foreign(self.path / name)
                else:
                    self._unsynced_names = True
                self._files[name] = SpillFile(self, self.path / name)
            return self._files[name]

    def refuse_foreign(self, path: Path) -> None:
        """Refuse a file that no fit makes, such as a hard link to a file elsewhere."""
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_uid != os.geteuid():
            raise CheckpointError(self.named, f"{path} was not made by a fit")
        if found.st_mode & 0o022:
            mode = stat.S_IMODE(found.st_mode)
            raise SharedCheckpointError(self.named, path, f"other users can write to it (mode {mode:o})")

    def unnamed(self) -> SpillFile:
        """A file without a name, which is deleted when nobody uses it any more."""
        try:
            try:
                descriptor, path = tempfile.mkstemp(prefix="nameless-", dir=self.path)
            except FileNotFoundError:  # the directory was removed: what is trained is worth another place
                descriptor, path = tempfile.mkstemp(prefix="nameless-", dir=nearest_existing(self.path))
            with suppress(OSError):  # it is removed with the directory
                os.unlink(path)
        except OSError as error:
            raise self.write_failed(error, self.path, 0) from error
        self._unnamed.append(SpillFile(self, Path(path), descriptor))  # to be closed if the fit fails
        return self._unnamed[-1]

    def remove(self, name: str) -> None:
        """Remove a file. If that fails now, it is tried again at the end."""
        if name in self._files:
            self._files.pop(name).remove()
        else:
            with suppress(OSError):
                size = self._size(name)
                (self.path / name).unlink(missing_ok=True)
                self.give_back(size)

    def _size(self, name: str) -> int:
        """Bytes of a file, if it is there."""
        try:
            return os.lstat(self.path / name).st_size
        except FileNotFoundError:
            return 0

    def has(self, name: str) -> bool:
        return os.path.lexists(self.path / name)

    def names(self) -> list[str]:
        """The names of all files that the fit made here."""
        return fit_directory.made_by_fit(self.path)

    def read(self, name: str) -> bytes:
        """The contents of a small file."""
        path = self.path / name
        try:
            self.refuse_foreign(path)
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
                return file.read()
        except OSError as error:
            raise SpillDirectoryError(f"{path} could not be read: {error.strerror}.") from error

    def replace(self, name: str, data: bytes) -> None:
        """Write a small file completely or not at all, also if the machine fails."""
        temporary = self.path / f"{name}.new"
        self.take(len(data))
        try:
            before = self._size(name)
            if os.path.lexists(temporary):  # never written to: it may be another file's second name
                temporary.unlink()
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with os.fdopen(os.open(temporary, flags, 0o600), "wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            os.replace(temporary, self.path / name)
            fit_directory.sync_directory(self.path)
        except OSError as error:
            self.give_back(len(data))
            raise self.write_failed(error, temporary, len(data)) from error
        self.give_back(before)
        self.bytes_written += len(data)

    def sync_new_files(self) -> None:
        """Make sure that the names of files made since the last time outlive a power cut."""
        if self.persistent and self._unsynced_names:
            self.sync_names([self.path])
            self._unsynced_names = False

    def sync_names(self, directories: Iterable[Path]) -> None:
        """Make sure that the names in these directories outlive a power cut."""
        for path in directories:
            try:
                fit_directory.sync_directory(path)
            except OSError as error:
                raise self.write_failed(error, path, 0) from error

    def take(self, n_bytes: int) -> None:
        """Reserve disk space for the next bytes to be written; refused beyond the limit."""
        with self._counting:
            if self.limit is not None and self._on_disk + n_bytes > self.limit:
                raise SpillLimitError(self.path, self.limit, self._on_disk, n_bytes)
            self._on_disk += n_bytes

    def give_back(self, n_bytes: int) -> None:
        """Return disk space that was reserved and is not needed."""
        with self._counting:
            self._on_disk -= n_bytes

    def used(self) -> int:
        """Bytes of all files on disk now."""
        total = sum(file.size for file in self._unnamed)
        with suppress(OSError):  # the directory was removed, or cannot be read
            for entry in os.scandir(self.path):
                with suppress(FileNotFoundError):  # removed by another thread
                    total += entry.stat(follow_symlinks=False).st_size
        return total

    def free(self) -> int:
        """Free bytes on the disk, if known."""
        try:
            return disk_space(nearest_existing(self.path)).free
        except SpillDirectoryError:
            return 0

    def write_failed(self, error: OSError, path: Path, wanted: int) -> Exception:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            full = SpillFullError(self.path, wanted, self.used(), self.free())
            if self.persistent:
                full.replace("another spill_dir", "another checkpoint_dir")
            return full
        if not self.path.is_dir():
            return SpillDirectoryError(f"{self.path} was removed while the fit used it: fit again.")
        return SpillDirectoryError(f"{path} could not be written: {error.strerror}.")

    def damaged(self, path: Path, offset: int, wrong: str) -> Exception:
        """The error for bytes that differ from what was written. Whoever resumes from the directory finds
        them, too."""
        if self.persistent:
            return DamagedCheckpointError(path, f"{wrong} (at byte {offset:,})")
        return DamagedBlockError(path, offset, wrong)

    def impossible(self, path: Path, offset: int, wrong: str) -> Exception:
        """The error for bytes of another process with the right checksum, which no fit writes."""
        if not self.persistent:
            return self.damaged(path, offset, wrong)
        return DamagedCheckpointError(path, f"{wrong} (at byte {offset:,})", self.path)

    def lost(self, path: Path, what: str) -> None:
        """Warn that a file that another process left is damaged, and that its contents are computed again."""
        warn(DamagedPartWarning(path, what))

    def close(self, finished: bool) -> None:
        """Release the directory, and remove it unless a fit is to resume from it.

        If that fails, a finished fit is kept, and the error of a failed fit is the one raised.
        """
        with uninterrupted():
            self._close(finished)

    def _close(self, finished: bool) -> None:
        for file in self._unnamed:
            file.close()
        self.open_files.close_all()
        try:
            if finished or not self.persistent or not self.names():
                fit_directory.clear(self.path)
        except FileNotFoundError:
            pass  # the directory was removed by somebody else
        except OSError as error:
            _tell_of_leftovers(self.path, error)
        finally:
            with suppress(OSError):
                os.close(self._lock)


@contextmanager
def spill_workspace(spill_dir: Path | None, demo: bool = False) -> Iterator[Workspace]:
    """A new private directory in `spill_dir`, or in the system's directory for temporary files."""
    parent = Path(tempfile.gettempdir()) if spill_dir is None else spill_dir
    workspace = None
    try:
        with uninterrupted():
            workspace = new_workspace(parent, demo)
        yield workspace
    finally:
        if workspace is not None:
            workspace.close(finished=True)


def new_workspace(
    parent: Path, demo: bool = False, spared: Callable[[Path], bool] = lambda path: False
) -> Workspace:
    """A new private directory in `parent`, which is rid of what killed fits left, unless that is `spared`."""
    path = None
    try:
        parent.mkdir(parents=True, exist_ok=True)
        reclaim(parent, spared)
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))  # readable by its owner alone
        lock = fit_directory.take(path, demo)
    except OSError as error:
        if path is not None:
            fit_directory.discard(path)
        raise SpillDirectoryError(
            f"spill_dir={str(parent)!r} cannot be used: {error.strerror}. "
            "Choose a directory that can be written to."
        ) from error
    assert lock is not None
    return Workspace(path, lock, persistent=False)


def reclaim(parent: Path, spared: Callable[[Path], bool] = lambda path: False) -> int:
    """Remove the directories that killed fits left here, known by their markers; returns their number."""
    removed = 0
    for path, lock in left_behind(parent, lambda path: not spared(path)):
        with suppress(OSError):  # it is not ours to remove
            try:
                fit_directory.clear(path)
            finally:
                os.close(lock)
            removed += 1
    return removed


def left_behind(parent: Path, wanted: Callable[[Path], bool]) -> Iterator[tuple[Path, int]]:
    """The directories that killed fits left here, if they are wanted, and the lock of each."""
    for entry in os.scandir(parent):
        if not entry.name.startswith(_PREFIX) or not entry.is_dir(follow_symlinks=False):
            continue
        path, lock = Path(entry.path), None
        with suppress(OSError):  # another process may be faster
            if fit_directory.others_can_write(path) or not fit_directory.is_marked(path):
                continue
            lock = fit_directory.take(path) if wanted(path) else None
        if lock is not None:
            yield path, lock


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
