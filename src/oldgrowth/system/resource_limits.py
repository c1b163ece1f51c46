"""Clear errors for memory and threads that the system refuses.

Libraries report these in different ways, some as if a file were damaged.
"""

from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar, cast

from ..errors import OldgrowthError, OutOfMemoryError, ThreadLimitError
from ..messages.text import human_bytes
from .memory import keep_freed_memory, resident_memory, share_one_heap

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

# Address space without which libraries fail in ways that nobody can catch, and that of the stack of a thread
# if stacks are not limited.
_LEAST_ADDRESSES, _USUAL_STACK = 64 * 2**20, 8 * 2**20

# The messages of Python, Arrow and polars.
_NO_THREAD = re.compile(r"start new thread|launch worker thread|spawn \w*\s*thread", re.IGNORECASE)
# The messages of the dynamic linker.
_NO_ROOM = re.compile(r"failed to map segment|cannot (allocate|map|create) |out of memory", re.IGNORECASE)


class _ClearLimits:
    """A block in which errors about memory and threads become our own; it has no state and costs nothing."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and (clear := limit_error(error)) is not None:
            raise clear from error


clear_limits = _ClearLimits()
_Method = TypeVar("_Method", bound=Callable[..., Any])


def clear_about_limits(method: _Method) -> _Method:
    """A method that runs in such a block."""

    @wraps(method)
    def wrapped(*args: Any, **options: Any) -> Any:
        with clear_limits:
            return method(*args, **options)

    return cast(_Method, wrapped)


def check_address_space() -> None:
    """Refuse to start work if the limit on addresses (ulimit -v) leaves too little for a single thread.

    When it is used up, libraries and the C runtime may end the process instead of reporting an error.
    """
    limit = _limit("RLIMIT_AS")
    if limit is None:
        return
    share_one_heap()
    keep_freed_memory(0)
    left, needed = _addresses_left(limit), _addresses_needed(threads=1)
    if left is not None and left < needed:
        reason = f"{human_bytes(left)} of its addresses are left, {human_bytes(needed)} are needed"
        raise OutOfMemoryError(reason, human_bytes(resident_memory()), human_bytes(limit))


def addresses_for(threads: int) -> bool:
    """Whether the limit on addresses, if there is one, leaves enough for so many more threads."""
    limit = _limit("RLIMIT_AS")
    left = None if limit is None else _addresses_left(limit)
    return left is None or left >= _addresses_needed(threads)


def _addresses_left(limit: int) -> int | None:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError):  # another system than Linux
        return None
    return max(0, limit - pages * resource.getpagesize())


def _addresses_needed(threads: int) -> int:
    """Those of the stacks of so many threads, and those that must be left then."""
    return _LEAST_ADDRESSES + threads * (_limit("RLIMIT_STACK") or _USUAL_STACK)


def limit_error(error: BaseException) -> OldgrowthError | None:
    """The error to raise for one that says that the system refused memory or threads; None for others."""
    if isinstance(error, OldgrowthError):
        return None
    text = " ".join(str(error).split()).rstrip(".")
    if isinstance(error, ImportError) and _NO_ROOM.search(text):
        text = f"{Path(text.split(':')[0]).name} could not be loaded"
        return OutOfMemoryError(text, human_bytes(resident_memory()), _address_space())
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return OutOfMemoryError(text, human_bytes(resident_memory()), _address_space())
    if _NO_THREAD.search(text):
        return ThreadLimitError(_running_threads(), _thread_limit(), _address_space())
    return None


def _running_threads() -> int:
    """The threads of this process, with those of libraries."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:  # another system than Linux
        return threading.active_count()


def _thread_limit() -> str | None:
    limit = _limit("RLIMIT_NPROC")
    return None if limit is None else f"{limit:,}"


def _address_space() -> str | None:
    limit = _limit("RLIMIT_AS")
    return None if limit is None else human_bytes(limit)


def _limit(name: str) -> int | None:
    """A limit of the process, if there is one."""
    if resource is None:
        return None
    limit = resource.getrlimit(getattr(resource, name))[0]
    return None if limit == resource.RLIM_INFINITY else limit
