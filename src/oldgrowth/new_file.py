"""Files that appear whole or not at all: temporary name, fsync, rename."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from .messages import warn
from .signals import ended_by_signals
from .user_warnings import LeftoverWarning

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which gets its name when the block ends well; otherwise nothing is left of it."""
    with ended_by_signals():
        yield from _new_file(path)


def _new_file(path: Path) -> Iterator[BinaryIO]:
    final = Path(os.path.realpath(path))  # a link stays a link
    name = ""
    try:
        name, handle = _open_part(final)
        with io.BufferedRandom(_NamedFile(handle, path)) as file:
            yield file
            _sync(file)
        os.replace(name, final)
        name = ""
        _sync_directory(final.parent)
    except OSError as error:
        # The person knows the final name, not the temporary one; what the block reads has names of its own.
        if error.errno in _FULL or not name or error.filename == name or isinstance(error, _SyncError):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        if name:
            _discard(Path(name))


def _open_part(final: Path) -> tuple[str, int]:
    """A new file beside the final one, with the rights of the file it will replace, or the usual ones."""
    while True:
        # Short enough, whatever the final name.
        name = str(final.with_name(f"{final.name[:60]}.{secrets.token_hex(4)}.part"))
        try:
            handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            continue
        with contextlib.suppress(OSError):
            os.fchmod(handle, os.stat(final).st_mode & 0o777)
        return name, handle


class _NamedFile(io.FileIO):
    """Names the file in what goes wrong with it."""

    def __init__(self, handle: int, path: Path) -> None:
        super().__init__(handle, "r+")
        self._path = path

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from error


def _discard(part: Path) -> None:
    """Remove what was begun; whatever that meets, the error that is seen is the one that led here."""
    for last in (False, True):
        try:
            part.unlink(missing_ok=True)
            return
        except OSError as error:
            if last:
                what = f"{part} could not be removed: {error.strerror}. It holds nothing whole: remove it."
                with contextlib.suppress(LeftoverWarning):
                    warn(what, LeftoverWarning)


class _SyncError(OSError):
    pass


def _sync(file: BinaryIO) -> None:
    try:
        file.flush()
        os.fsync(file.fileno())
    except OSError as error:
        raise _SyncError(error.errno, error.strerror) from error


def _sync_directory(path: Path) -> None:
    """So that the new name survives a power cut, on systems that let a directory be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
