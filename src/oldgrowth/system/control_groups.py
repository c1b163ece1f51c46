"""Memory limits of the control group of this process (a container, a Slurm job, a systemd unit) and of all
groups above it; and which directories are in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc/self")
# File systems whose files are in memory.
_MEMORY_FILE_SYSTEMS = frozenset(("tmpfs", "ramfs"))


@dataclass(frozen=True)
class GroupMemory:
    """The limit and the usage of a group; cached pages of files that can be dropped do not count."""

    limit: int
    used: int


@dataclass(frozen=True)
class _Mount:
    root: str  # the part of the file system that is mounted
    point: Path
    kind: str
    options: str


def group_memory(proc: Path = _PROC) -> list[GroupMemory]:
    """The memory of each group of this process that has a limit."""
    mounts = list(_mounts(proc))
    found = []
    for line in _text(proc / "cgroup").splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        names: tuple[tuple[str, ...], str, str]
        if number == "0" and not controllers:
            mount = next((m for m in mounts if m.kind == "cgroup2"), None)
            names = ("memory.max", "memory.high"), "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            mount = next((m for m in mounts if m.kind == "cgroup" and "memory" in m.options.split(",")), None)
            names = ("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        if mount is not None:
            found += [g for directory in _levels(mount, path) if (g := _memory_of(directory, *names))]
    return found


def is_memory(directory: Path, proc: Path = _PROC) -> bool:
    """Whether the files of a directory are in memory, as in /dev/shm and, on some systems, /tmp."""
    directory = directory.absolute()
    holding = [m for m in _mounts(proc) if directory == m.point or m.point in directory.parents]
    if not holding:
        return False
    deepest = max(len(m.point.parts) for m in holding)
    return [m for m in holding if len(m.point.parts) == deepest][-1].kind in _MEMORY_FILE_SYSTEMS


def _levels(mount: _Mount, path: str) -> Iterator[Path]:
    """The directories of a group and of the groups above it, as far as they are visible."""
    inside = path
    if mount.root != "/" and (path == mount.root or path.startswith(mount.root + "/")):
        inside = path[len(mount.root) :]
    parts = [part for part in inside.split("/") if part not in ("", ".", "..")]
    for n in range(len(parts), -1, -1):
        yield mount.point.joinpath(*parts[:n])


def _memory_of(directory: Path, limits: tuple[str, ...], usage: str, reclaimable: str) -> GroupMemory | None:
    found = [int(text) for name in limits if (text := _text(directory / name).strip()).isdigit()]
    if not found:
        return None
    used = _text(directory / usage).strip()
    stat = dict(line.split()[:2] for line in _text(directory / "memory.stat").splitlines() if " " in line)
    dropped = int(stat.get(reclaimable, "0"))
    return GroupMemory(min(found), max(0, int(used) - dropped) if used.isdigit() else 0)


def _mounts(proc: Path) -> Iterator[_Mount]:
    for line in _text(proc / "mountinfo").splitlines():
        before, separator, after = line.partition(" - ")
        fields, more = before.split(" "), after.split(" ")
        if separator and len(fields) >= 5 and len(more) >= 3:
            yield _Mount(_unescaped(fields[3]), Path(_unescaped(fields[4])), more[0], more[2])


def _unescaped(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


def _text(path: Path) -> str:
    """The contents of a file; empty if there is none."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
