"""The checkpoint directory that the user names: empty, or with the files of an interrupted fit.

The files are in a subdirectory of their own. All others belong to somebody else and are left alone; if there
are any before the first fit, the directory is meant for something else, and is refused.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import CheckpointError, DirectoryInUseError, SharedCheckpointError, SpillDirectoryError
from . import fit_directory
from .workspace import Workspace

FILES = "oldgrowth-fit"


@contextmanager
def persistent_workspace(directory: Path, keep: bool = False) -> Iterator[Workspace]:
    """A workspace whose files are kept if the fit fails, or in any case if `keep`. Refused while another
    process uses it."""
    try:
        made = [path for path in (directory.absolute(), *directory.absolute().parents) if not path.exists()]
        lock = _taken(directory)
    except OSError as error:
        if isinstance(error, SpillDirectoryError):
            raise
        raise SpillDirectoryError(
            f"checkpoint_dir={str(directory)!r} cannot be used: {error.strerror}. "
            "Choose a directory that can be written to."
        ) from error
    if lock is None:
        raise DirectoryInUseError(directory)
    workspace = Workspace(directory / FILES, lock, persistent=True, named=directory)
    finished = False
    try:
        workspace.sync_names([workspace.path, directory, *(path.parent for path in made)])
        yield workspace
        finished = not keep
    finally:
        workspace.close(finished)


def clear_checkpoint(directory: Path) -> None:
    """Remove what a fit that kept its files has left in them."""
    with persistent_workspace(directory):
        pass  # a fit that ends well clears it


def bytes_used(directory: Path | None) -> int:
    """Bytes of the files of an interrupted fit, which are used again."""
    if directory is None or not (directory / FILES).is_dir():
        return 0
    with suppress(OSError):  # what cannot be looked at is refused when it is used
        return sum(entry.stat(follow_symlinks=False).st_size for entry in os.scandir(directory / FILES))
    return 0


def _taken(directory: Path) -> int | None:
    """The lock on the directory of the files, which is made if it does not exist."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    _refuse_shared(directory, directory)
    files = directory / FILES
    while True:
        _refuse_others(directory, files)
        with suppress(FileExistsError):
            files.mkdir(mode=0o700)
        _refuse_shared(directory, files)
        with suppress(FileNotFoundError):  # the process that had it has just removed it
            return fit_directory.take(files)


def _refuse_shared(directory: Path, path: Path) -> None:
    if why := fit_directory.others_can_write(path):
        raise SharedCheckpointError(directory, path, why)


def _refuse_others(directory: Path, files: Path) -> None:
    """Refuse a directory that is neither empty nor that of a fit."""
    others = sorted(name for name in os.listdir(directory) if name != FILES)
    try:
        inside = os.lstat(files)
    except FileNotFoundError:
        if others:
            raise CheckpointError(directory, f"it holds other files, such as {others[0]!r}") from None
        return
    if not stat.S_ISDIR(inside.st_mode):
        raise CheckpointError(directory, f"{FILES!r} in it is not a directory")
    if fit_directory.is_marked(files):
        return
    if not fit_directory.is_empty(files):
        raise CheckpointError(directory, f"{FILES!r} in it was not made by a fit")
    if others:
        raise CheckpointError(directory, f"it holds other files, such as {others[0]!r}")
