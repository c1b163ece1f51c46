"""The limits of a fit on memory and disk, as given by the caller."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ..checks import path_of
from ..errors import SpillDirectoryError
from .control_groups import is_memory
from .memory import auto_room, memory_limit_of, resident_memory, size_of


@dataclass(frozen=True)
class Limits:
    """What the caller allows, and the memory of the process when the fit began."""

    store: str
    memory: int
    memory_given: bool
    resident: int
    spill_dir: Path | None
    spill_limit: int | None
    checkpoint_dir: Path | None
    spills_to_memory: bool = False  # the directory is in memory, too

    @property
    def directory(self) -> Path:
        """Where files are written."""
        return self.checkpoint_dir or _directory(self.spill_dir)


def limits_of(params: dict[str, Any]) -> Limits:
    store = params.get("store", "auto")
    names = ("spill_dir", "checkpoint_dir")
    paths = [None if params[name] is None else path_of(name, params[name]) for name in names]
    given = params.get("spill_limit", "auto")
    spill_limit = None
    if not (isinstance(given, str) and given == "auto"):
        disk = disk_space(nearest_existing(paths[1] or _directory(paths[0])))
        spill_limit = size_of("spill_limit", given, disk.total)
    memory = params["memory_limit"]
    auto = isinstance(memory, str) and memory == "auto"
    limits = Limits(
        store, memory_limit_of(memory), not auto, resident_memory(), paths[0], spill_limit, paths[1]
    )
    return _shared_with_files(limits) if is_memory(nearest_existing(limits.directory)) else limits


def nearest_existing(path: Path) -> Path:
    """The directory, or the nearest one above it that exists."""
    path = path.absolute()
    while not os.path.exists(path) and path != path.parent:
        path = path.parent
    return path


class DiskSpace(NamedTuple):
    """Size and free space of the disk of a directory, in bytes."""

    total: int
    free: int


def disk_space(directory: Path) -> DiskSpace:
    try:
        usage = shutil.disk_usage(directory)
    except OSError as error:
        raise SpillDirectoryError(
            f"{directory} cannot be used: the free space of its disk is not known "
            f"({error.strerror}). Choose another spill_dir."
        ) from error
    return DiskSpace(usage.total, usage.free)


def _shared_with_files(limits: Limits) -> Limits:
    """The limits if files are in memory, too: they get what the process leaves, or half of all if no limit
    was given."""
    memory = limits.memory if limits.memory_given else limits.resident + auto_room() // 2
    left = max(0, auto_room() - max(0, memory - limits.resident))
    spill_limit = left if limits.spill_limit is None else min(left, limits.spill_limit)
    return replace(limits, memory=memory, spill_limit=spill_limit, spills_to_memory=True)


def _directory(spill_dir: Path | None) -> Path:
    return Path(tempfile.gettempdir()) if spill_dir is None else spill_dir
