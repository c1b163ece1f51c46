"""Clear errors for memory and threads that the system refuses.

Libraries report these in different ways, some as if a file were damaged.
"""

from __future__ import annotations

import errno
import re
import threading
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any, TypeVar, cast

from ..errors import OldgrowthError, OutOfMemoryError, ThreadLimitError
from ..messages.text import human_bytes
from .memory import resident_memory

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

# The messages of Python, Arrow and polars.
_NO_THREAD = re.compile(r"start new thread|launch worker thread|spawn \w*\s*thread", re.IGNORECASE)


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


def limit_error(error: BaseException) -> OldgrowthError | None:
    """The error to raise for one that says that the system refused memory or threads; None for others."""
    if isinstance(error, OldgrowthError):
        return None
    text = " ".join(str(error).split()).rstrip(".")
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return OutOfMemoryError(text, human_bytes(resident_memory()), _limited("RLIMIT_AS"))
    if _NO_THREAD.search(text):
        return ThreadLimitError(text, threading.active_count(), _limited("RLIMIT_AS"))
    return None


def _limited(name: str) -> str | None:
    """A limit of the process, if there is one."""
    if resource is None:
        return None
    limit = resource.getrlimit(getattr(resource, name))[0]
    return None if limit == resource.RLIM_INFINITY else human_bytes(limit)
