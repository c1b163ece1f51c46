"""A directory with the files of one fit: known by a marker with contents, locked while in use.

Nothing in a directory is written or removed before its marker has said that the directory is a fit's, and
then only what a fit makes. The marker is a symbolic link that leads nowhere: it has its contents from the
moment it exists, also if the machine fails in the next one.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
from contextlib import suppress
from pathlib import Path

_MARKER, _LOCK = "oldgrowth", "lock"
# What the marker says: that a fit works here, or that one has ended and its files are being removed.
_IN_USE, _FINISHED = "files-of-a-fit", "files-of-a-finished-fit"
# Of the demo: the directory with all that is in it.
_DEMO = "files-of-the-demo"
_LONGEST_MARK = 100
# All that a fit makes, beside the marker and the lock, and what is kept of standard input.
_MADE = re.compile(
    r"(checkpoint\.json|(levels|sample|rounds|top-\d{5,}|round-\d{5,}(-split)?)\.npz)(\.new)?|nameless-\w+"
    r"|(cluster|(spill|learn)-\d+|route-\d+-\d+|split-\d+-\d+-\d+)\.npz(\.new)?"
    r"|((part|range)-\d+-|split-\d+-\d+-\d+-)?(sample|top-\d{5,})\.rows|(trees|oob)\.log|oldgrowth\.new"
    r"|part-\d+\.arrow|standard-input[.a-z0-9]*"
    r"|map-[a-z]+(\.[a-z]+)+|shared-\d+\.og(\..+\.part)?"
)
_NO_SYMLINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


def is_marked(path: Path) -> bool:
    """Whether a directory belongs to a fit."""
    return _mark(path) is not None


def is_empty(path: Path) -> bool:
    """Whether a directory is empty, except for the lock of a fit that ended before it wrote anything."""
    names = os.listdir(path)
    if names == [_LOCK]:
        found = os.lstat(path / _LOCK)
        return stat.S_ISREG(found.st_mode) and found.st_size == 0
    return not names


def made_by_fit(path: Path) -> list[str]:
    """The names of the files that the fit made in its directory."""
    return [name for name in os.listdir(path) if _MADE.fullmatch(name)]


def others_can_write(path: Path) -> str:
    """How somebody else could change what is in a directory; empty if nobody can."""
    found = os.stat(path)
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    if found.st_mode & 0o022:
        return f"other users can write to it (its mode is {stat.S_IMODE(found.st_mode):o})"
    return ""


def take(path: Path, demo: bool = False) -> int | None:
    """Lock and mark a directory that is empty or belongs to a fit; None if another process has it locked.

    The lock is held until the file descriptor is closed. Files of a finished fit are removed.
    """
    held = lock(path)
    if held is None:
        return None
    try:
        mark = _mark(path)
        if mark == _FINISHED:
            _remove([path / name for name in made_by_fit(path)])
        if mark not in (_IN_USE, _DEMO):
            _set_mark(path, _DEMO if demo else _IN_USE)
    except BaseException:
        os.close(held)
        raise
    return held


def clear(path: Path) -> None:
    """Remove the files of a fit, then the directory if it is empty. The caller holds its lock. All removable
    files are removed before an error is raised for the others."""
    mark = _mark(path)
    if mark == _DEMO:
        shutil.rmtree(path, ignore_errors=True)
        if path.exists():
            shutil.rmtree(path)
        return
    if mark is not None:
        with suppress(OSError):  # a full disk must not keep its files
            _set_mark(path, _FINISHED)
    try:
        made = made_by_fit(path)
    except OSError:  # a second time, as with all that fails here
        made = made_by_fit(path)
    _remove([path / name for name in made])
    _remove([path / _MARKER])
    _remove([path / _LOCK])
    for last in (False, True):
        try:
            path.rmdir()
            return
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):  # somebody put something else into it
                return
            if last:
                raise


def discard(path: Path) -> None:
    """Remove a directory that was just made and could not be locked."""
    for name in (_MARKER, f"{_MARKER}.new", _LOCK):
        with suppress(OSError):
            (path / name).unlink()
    with suppress(OSError):
        path.rmdir()


def sync_directory(path: Path) -> None:
    """So that names in it survive a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(paths: list[Path]) -> None:
    again = []
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError:
            again.append(path)
    for path in again:
        path.unlink(missing_ok=True)


def _mark(path: Path) -> str | None:
    marker = path / _MARKER
    text: str | None = None
    with suppress(OSError):
        text = os.readlink(marker)
    if text is None:  # a file system without symbolic links, or a copy that followed them
        with suppress(OSError, UnicodeDecodeError):
            found = os.lstat(marker)
            if stat.S_ISREG(found.st_mode) and found.st_size <= _LONGEST_MARK:
                text = marker.read_text()
    return text if text in (_IN_USE, _FINISHED, _DEMO) else None


def _set_mark(path: Path, text: str) -> None:
    """Sets the marker, or replaces it at once."""
    marker, new = path / _MARKER, path / f"{_MARKER}.new"
    if os.path.lexists(new):
        new.unlink()
    try:
        if _mark(path) is None:
            os.symlink(text, marker)
            return
        os.symlink(text, new)
    except OSError as error:
        if error.errno not in _NO_SYMLINKS:
            raise
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    os.replace(new, marker)


def lock(path: Path) -> int | None:
    """Lock a directory by a file in it, which is never written to: to open one destroys nothing."""
    name = path / _LOCK
    while True:
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(name, fd):
                return fd
        except BlockingIOError:
            os.close(fd)
            return None
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # it was removed by the process that had it


def _is_still(name: Path, fd: int) -> bool:
    try:
        return os.path.samestat(os.lstat(name), os.fstat(fd))
    except FileNotFoundError:
        return False
