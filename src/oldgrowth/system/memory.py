"""What memory there is, what this process has of it, and sizes as people write them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from .. import _core
from ..checks import is_real, is_whole
from ..errors import ParameterError
from .control_groups import group_memory

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
          "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}  # fmt: skip
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([KMGT]I?)?B?\s*", re.IGNORECASE)
# What is taken when nothing is said, of what is free.
_AUTO_SHARE = 0.8
# What libraries hold that read files, beside what a dataset knows of.
READING_BYTES = 24 * 2**20


def size_of(name: str, value: Any, whole: int) -> int:
    """Bytes from a number of them, a text like "2GB" or "512 MiB", or a share of `whole` as a float."""
    if isinstance(value, str) and (match := _SIZE.fullmatch(value)) and float(match[1]) > 0:
        number, unit = match.groups()
        if not unit and "." in number and 0 < float(number) <= 1:  # a share, as the command line gives it
            return int(float(number) * whole)
        return int(float(number) * _UNITS[(unit or "").upper()])
    if is_whole(value) and value > 0:
        return int(value)
    if is_real(value) and not is_whole(value) and 0 < value <= 1:
        return int(value * whole)
    raise ParameterError(name, value, "a size like '2GB', a number of bytes, a share in (0, 1] or 'auto'")


def memory_limit_of(value: Any) -> int:
    """The limit in bytes; "auto" is most of what is free, beside what the process has already."""
    if isinstance(value, str) and value == "auto":
        return resident_memory() + auto_room()
    return size_of("memory_limit", value, total_memory())


def check_memory_limit(value: Any) -> None:
    """Refuse a bad limit without asking the system."""
    if not (isinstance(value, str) and value == "auto"):
        size_of("memory_limit", value, 1)


def auto_room() -> int:
    """Most of what is free."""
    return int(_AUTO_SHARE * free_memory())


def peak_memory() -> int:
    """The largest resident size this process has had, in bytes; 0 where the system does not tell."""
    try:  # Linux; what getrusage says there may be the peak of the process that started this one
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def resident_memory() -> int:
    """What this process has now; its peak where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    except (OSError, IndexError, ValueError):
        return peak_memory()


def release_memory() -> None:
    """Give memory that is free inside the process back to the system, so that it does not count."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    _core.release_memory()


def return_memory_when_freed() -> None:
    """Have the process return memory to the system as soon as it is freed, not at the end of a stage."""
    _core.return_memory_when_freed()


def total_memory() -> int:
    """What the machine has, or the groups of this process may use."""
    return min([_meminfo("MemTotal"), *(group.limit for group in group_memory())])


def free_memory() -> int:
    """What the machine has free, or the groups of this process may still use."""
    left = [group.limit - group.used for group in group_memory()]
    return max(0, min([_meminfo("MemAvailable"), *left]))


def _meminfo(name: str) -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 4 * 2**30  # a modest guess where the system does not tell
