"""Files that are written completely or not at all: temporary name, fsync, rename."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .. import _core
from ..errors import OldgrowthError, OutputError, UnwritableFileError
from ..messages.log import warn
from ..messages.warnings import LeftoverWarning
from .signals import ended_by_signals

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_STEM_BYTES = 180
_PART = re.compile(r"(?P<stem>.+)\.(?P<token>[0-9a-f]{8})-(?P<seal>[0-9a-f]{8})\.part", re.DOTALL)
_KINDS = {
    stat.S_ISLNK: "a symbolic link that leads back to itself",
    stat.S_ISDIR: "a directory",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
    stat.S_ISFIFO: "a pipe",
    stat.S_ISSOCK: "a socket",
}


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which gets its name when the block succeeds; otherwise nothing is left of it."""
    with ended_by_signals():
        yield from _new_file(path)


def check_replaceable(path: Path) -> Path:
    """The path to write, with links followed. Refuse to replace anything but a regular file."""
    final = Path(os.path.realpath(path))
    try:
        mode = os.lstat(final).st_mode
    except OSError:
        return final  # nothing is there, or writing will fail with a clear error
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in _KINDS.items() if is_kind(mode)), "something else")
        raise OutputError(path, kind)
    return final


def _new_file(path: Path) -> Iterator[BinaryIO]:
    final = check_replaceable(path)
    name = ""
    try:
        _reclaim(final.parent)
        name, handle = _open_part(final)
        try:
            with _NamedFile(handle, path) as raw, io.BufferedRandom(raw) as file:
                yield file
                _sync(file)
                check_replaceable(path)
                os.replace(name, final)
                name = ""
        except OSError:
            if name:
                raise
            # A failure to close it now does not matter: it is synced and has its name.
        _sync_directory(final.parent)
    except OSError as error:
        # Users know the final name, not the temporary one; errors of other files in the block stay.
        if isinstance(error, OldgrowthError):
            raise
        ours = not name or error.filename in (name, str(path)) or isinstance(error, _SyncError)
        if ours or error.errno in _FULL:
            raise UnwritableFileError(path, error) from error
        raise
    finally:
        if name:
            _discard(Path(name))


def _open_part(final: Path) -> tuple[str, int]:
    """A new file beside the final one, with the permissions of the file it replaces, or the default ones.

    It is locked while it is written: an unlocked one was left behind by a killed process.
    """
    while True:
        stem = os.fsdecode(os.fsencode(final.name)[:_STEM_BYTES])  # within the limit on names
        token = secrets.token_hex(4)
        name = str(final.with_name(f"{stem}.{token}-{_seal(stem, token)}.part"))
        try:
            handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            continue
        kept = False
        try:
            kept = _lock(handle) and _is_at(handle, name)  # else another process may remove it
        finally:
            if not kept:
                os.close(handle)
                with contextlib.suppress(OSError):
                    os.unlink(name)
        if not kept:
            continue
        with contextlib.suppress(OSError):
            os.fchmod(handle, os.stat(final).st_mode & 0o777)
        return name, handle


class _NamedFile(io.FileIO):
    """A file whose errors name its final path."""

    def __init__(self, handle: int, path: Path) -> None:
        super().__init__(handle, "r+")
        self._path = path

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from error

    def write(self, data: Any) -> int:
        with self._named():
            return super().write(data)

    def seek(self, position: int, whence: int = os.SEEK_SET, /) -> int:
        with self._named():
            return super().seek(position, whence)

    def tell(self) -> int:
        with self._named():
            return super().tell()

    def close(self) -> None:
        with self._named():
            super().close()

    def seekable(self) -> bool:
        return True  # it is a regular file; FileIO would take a failure for a pipe


def _discard(part: Path) -> None:
    """Remove an unfinished file. A failure is only a warning, so that the original error is raised."""
    for last in (False, True):
        try:
            part.unlink(missing_ok=True)
            return
        except OSError as error:
            if last:
                what = f"{part} could not be removed: {error.strerror}. It is incomplete: remove it."
                with contextlib.suppress(LeftoverWarning):
                    warn(what, LeftoverWarning)


def _seal(stem: str, token: str) -> str:
    """A checksum in the names of our temporary files, to recognize them."""
    sealed = np.frombuffer(os.fsencode(f"oldgrowth {stem} {token}"), dtype=np.uint8)
    return f"{_core.crc32c(sealed):08x}"


def _lock(handle: int) -> bool:
    """False if another process holds the lock. On file systems without locks nothing is reclaimed."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _is_at(handle: int, name: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(name))
    except FileNotFoundError:
        return False


def _reclaim(directory: Path) -> None:
    """Remove our temporary files that killed processes left behind."""
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            found = _PART.fullmatch(entry.name)
            if found is not None and found["seal"] == _seal(found["stem"], found["token"]):
                with contextlib.suppress(OSError):
                    _remove_unlocked(entry.path)


def _remove_unlocked(name: str) -> None:
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(handle)
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid() and status.st_nlink == 1:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises while another process writes it
            if _is_at(handle, name):
                os.unlink(name)
    finally:
        os.close(handle)


class _SyncError(OSError):
    pass


def _sync(file: BinaryIO) -> None:
    try:
        file.flush()
        os.fsync(file.fileno())
    except OSError as error:
        raise _SyncError(error.errno, error.strerror) from error


def _sync_directory(path: Path) -> None:
    """Make the new name survive a power cut, where directories can be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
