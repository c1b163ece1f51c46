"""The memory of the machine and of this process, and sizes as people write them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .. import _core
from ..checks import is_real, is_whole
from ..errors import ParameterError
from .control_groups import group_memory

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
          "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}  # fmt: skip
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([KMGT]I?)?B?\s*", re.IGNORECASE)
# Share of the free memory or disk that is used by default.
_AUTO_SHARE = 0.8
# Under a limit, freed blocks of at most this part of it are kept.
_KEPT_SHARE = 64
_MANY_BYTES = 2**32
# Memory of libraries that read files, beside what a dataset accounts for.
READING_BYTES = 24 * 2**20


def size_of(name: str, value: Any, whole: int) -> int:
    """Bytes, given as a number, a text like "2GB" or "512 MiB", or a share of `whole` as a float."""
    if isinstance(value, str) and (match := _SIZE.fullmatch(value)) and float(match[1]) > 0:
        number, unit = match.groups()
        if not unit and "." in number and 0 < float(number) <= 1:  # a share, from the command line
            return int(float(number) * whole)
        return int(float(number) * _UNITS[(unit or "").upper()])
    if is_whole(value) and value > 0:
        return int(value)
    if is_real(value) and not is_whole(value) and 0 < value <= 1:
        return int(value * whole)
    raise ParameterError(name, value, "a size like '2GB', a number of bytes, a share in (0, 1] or 'auto'")


def memory_limit_of(value: Any) -> int:
    """The limit in bytes; "auto" is what the process has already and 80 % of what is free."""
    if isinstance(value, str) and value == "auto":
        return resident_memory() + auto_room()
    return size_of("memory_limit", value, total_memory())


def check_memory_limit(value: Any) -> None:
    """Refuse an invalid limit, without asking the system for its memory."""
    if not (isinstance(value, str) and value == "auto"):
        size_of("memory_limit", value, 1)


def auto_room() -> int:
    """The part of the free memory that is used by default."""
    return int(_AUTO_SHARE * free_memory())


def peak_memory() -> int:
    """The peak of the resident memory of this process, in bytes; 0 if unknown."""
    try:  # Linux, where getrusage may give the peak of the process that started this one
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
    """The resident memory of this process, in bytes; its peak if unknown."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:
            return int(file.read().split()[1]) * 4096
    except (OSError, IndexError, ValueError):
        return peak_memory()


def release_memory() -> None:
    """Return memory that is free inside the process to the system, so that it does not count."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    _core.release_memory()


def keep_freed_memory(limit: int | None) -> None:
    """Have the process keep freed blocks until the end of a stage: the next bucket needs as much again, and
    new memory costs a page fault for each page. Under a limit, only blocks that are small beside it."""
    _core.keep_freed_blocks(_MANY_BYTES if limit is None else limit // _KEPT_SHARE)
    if limit is not None:
        _core.share_few_heaps()


@contextmanager
def freed_memory_kept(limit: int) -> Iterator[None]:
    """Freed blocks are kept here as if there was no limit."""
    _core.keep_freed_blocks(_MANY_BYTES)
    try:
        yield
    finally:
        keep_freed_memory(limit)


def share_one_heap() -> None:
    """Have all threads share one heap: each other one reserves 64 MB of addresses."""
    _core.share_one_heap()


def total_memory() -> int:
    """The memory of the machine, or what its control groups allow this process."""
    return min([_meminfo("MemTotal"), *(group.limit for group in group_memory())])


def free_memory() -> int:
    """The free memory of the machine, or what its control groups still allow this process."""
    left = [group.limit - group.used for group in group_memory()]
    return max(0, min([_meminfo("MemAvailable"), *left]))


def _meminfo(name: str) -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 4 * 2**30  # a low guess, if the system does not say
