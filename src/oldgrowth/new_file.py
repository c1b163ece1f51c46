"""Files that appear whole or not at all: temporary name, fsync, rename."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which gets its name when the block ends well; otherwise nothing is left of it."""
    final = Path(os.path.realpath(path))  # a link stays a link
    name = ""
    try:
        handle, name = tempfile.mkstemp(dir=final.parent, prefix=final.name, suffix=".part")
        with os.fdopen(handle, "w+b") as file:
            yield file
            _sync(file)
        os.chmod(name, 0o644)  # temporary files are private, results are not
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
            Path(name).unlink(missing_ok=True)


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
