"""The files of a map: checked before anything is written, and renamed into place when all are complete."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ...checks import file_path_of
from ...errors import (
    CheckpointError,
    DirectoryInUseError,
    MapInUseError,
    MapTooLargeError,
    ParameterError,
    SameFileError,
    SpillDirectoryError,
    UnfinishedMapError,
    UnwritableFileError,
)
from ...storage.checkpoint_dir import persistent_workspace
from ...storage.workspace import Workspace
from ...system.atomic_file import check_replaceable, new_file
from ...system.limits import disk_space
from ..scenes.scene import Scene
from .cog import CopyFailed

# Files that GDAL keeps beside a raster: names of categories and statistics, overviews, a mask.
SIDECAR = ".aux.xml"
_SIDECARS = (SIDECAR, ".ovr", ".msk")
SUFFIXES = (".tif", ".tiff")
_LONGEST_NAME = 200
# The parameters that name files of layers.
_PARAMETERS = {"classes": "path", "values": "path"}


class Outputs:
    """Where the layers of a map go, as they were named and with links followed."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self.named = {name: file_path_of(_parameter(name), path) for name, path in named.items()}
        self.paths = {name: check_replaceable(path) for name, path in self.named.items()}
        self.first = next(iter(self.named.values()))
        first = next(iter(self.paths.values()))
        self.directory = first.with_name(f".{_shortened(first.name)}.unfinished")

    def check(self, scene: Scene, forest: Any, raw_bytes: int) -> None:
        """Refuse files that are read, that are written twice, or that cannot be written."""
        read = _files_read(scene, forest)
        for name, path in self.paths.items():
            for other in self.paths:
                if other != name and _is_same(path, self.paths[other]):
                    what = f"also the file of the {other} of the map"
                    raise SameFileError(_parameter(name), self.named[name], what)
            for file, what in read:
                if _is_same(path, file):
                    raise SameFileError(_parameter(name), self.named[name], what)
            _check_directory(self.named[name], path.parent)
            _check_name(self.named[name], path)
            if self.named[name].suffix.lower() not in SUFFIXES:
                raise ParameterError(
                    _parameter(name), str(self.named[name]), f"a file that ends in {SUFFIXES[0]}"
                )
        free = disk_space(self.directory.parent).free + _bytes_in(self.directory)
        if free < raw_bytes:
            raise MapTooLargeError(self.first, raw_bytes, free)

    @contextmanager
    def workspace(self) -> Iterator[Workspace]:
        """A directory for what is not finished, which another process with the same outputs cannot have."""
        try:
            with persistent_workspace(self.directory) as workspace:
                yield workspace
        except DirectoryInUseError as error:
            raise MapInUseError(self.first) from error
        except (SpillDirectoryError, CheckpointError, CopyFailed, OSError) as error:
            raise self._failed(error) from error
        finally:
            with suppress(OSError):  # it is not empty, unless nothing is left to be resumed
                self.directory.rmdir()

    def _failed(self, error: Exception) -> Exception:
        """The error to raise for one of the system, of the workspace or of GDAL."""
        if isinstance(error, UnwritableFileError | UnfinishedMapError):
            return error
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        number, why = getattr(cause, "errno", None), getattr(cause, "strerror", None)
        if isinstance(error, CopyFailed):
            number, why = errno.EIO, str(error).strip().rstrip(".")
            if disk_space(self.directory.parent).free < _bytes_in(self.directory):  # GDAL does not tell
                number, why = errno.ENOSPC, f"the disk is probably full ({why})"
        if isinstance(error, CheckpointError) or not number:
            return UnwritableFileError(self.first, OSError(errno.EACCES, str(error).rstrip(".")))
        if not self.directory.exists():
            return UnwritableFileError(self.first, OSError(number, why or os.strerror(number)))
        return UnfinishedMapError(self.first, self.directory, number, why or os.strerror(number))

    def publish(self, finished: Mapping[str, Path]) -> None:
        """Give all files their names: from one to the next it takes moments."""
        for name, path in self.paths.items():
            check_replaceable(path)
            try:
                for suffix in _SIDECARS:  # of the file that is replaced
                    with suppress(FileNotFoundError, IsADirectoryError):
                        path.with_name(path.name + suffix).unlink()
                _move(finished[name], path)
                beside = finished[name].with_name(finished[name].name + SIDECAR)
                if beside.exists():
                    _move(beside, path.with_name(path.name + SIDECAR))
            except OSError as error:
                if isinstance(error, UnwritableFileError):
                    raise
                raise UnwritableFileError(self.named[name], error) from error


def _parameter(name: str) -> str:
    return _PARAMETERS.get(name, name)


def _files_read(scene: Scene, forest: Any) -> list[tuple[Path, str]]:
    """The files of a scene, of its labels and of a forest, and what they are."""
    identity = scene.fingerprint()
    labels = identity["labels"] or {"files": []}
    read = [(Path(file["path"]), "one of the files of the scene") for file in identity["files"]]
    read += [(Path(file["path"]), "one of the files of the scene's labels") for file in labels["files"]]
    model = getattr(forest.forest_, "path", None)
    return read if model is None else [*read, (Path(model), "the file of the forest")]


def _shortened(name: str) -> str:
    """A name within the limit of file systems, with room for an ending."""
    encoded = os.fsencode(name)
    if len(encoded) <= _LONGEST_NAME:
        return name
    return f"{os.fsdecode(encoded[: _LONGEST_NAME - 20])}-{hashlib.sha256(encoded).hexdigest()[:16]}"


def _is_same(path: Path, other: Path) -> bool:
    if path == Path(os.path.realpath(other)):
        return True
    with suppress(OSError):
        return path.samefile(other)
    return False


def _check_directory(path: Path, directory: Path) -> None:
    """Find out now what would fail after hours."""
    number = 0
    if not directory.exists():
        number = errno.ENOENT
    elif not directory.is_dir():
        number = errno.ENOTDIR
    elif not os.access(directory, os.W_OK | os.X_OK):
        number = errno.EROFS if os.statvfs(directory).f_flag & os.ST_RDONLY else errno.EACCES
    if number:
        raise UnwritableFileError(path, OSError(number, os.strerror(number)))


def _check_name(path: Path, final: Path) -> None:
    """Refuse a name that is too long for files beside the map, which are removed and written with it."""
    longest = 255
    with suppress(OSError, ValueError):
        longest = os.pathconf(final.parent, "PC_NAME_MAX")
    size = len(os.fsencode(final.name + SIDECAR))
    if size > longest:
        why = f"its name is too long: with {SIDECAR}, it has {size} bytes, and {longest} are allowed"
        raise UnwritableFileError(path, OSError(errno.ENAMETOOLONG, why))


def _bytes_in(directory: Path) -> int:
    """Of the files of an unfinished map."""
    found = 0
    with suppress(OSError):
        for folder, _, names in os.walk(directory):
            found += sum(os.lstat(os.path.join(folder, name)).st_size for name in names)
    return found


def _move(file: Path, path: Path) -> None:
    """Rename a complete file, or copy it to another file system; it appears whole."""
    with suppress(OSError):
        file.chmod(path.stat().st_mode & 0o777)  # that of the file it replaces
    try:
        os.replace(file, path)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with new_file(path) as out, open(file, "rb") as source:
            shutil.copyfileobj(source, out, 1 << 20)
        return
    with suppress(OSError):
        handle = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
