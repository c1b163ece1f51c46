"""Where the tasks of a fit run. Threads of this process are the first engine (`system/threads.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import ParamSpec, Protocol, TypeVar

from .. import _core

P = ParamSpec("P")
T = TypeVar("T")


class Engine(Protocol):
    """Runs functions on workers and returns their results.

    Tasks and results are plain values (see `tasks.py`), so that an engine may run elsewhere.
    """

    stop: _core.Stop  # set when the fit is cancelled; running tasks check it

    @property
    def workers(self) -> int:
        """How many tasks run at a time."""

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function on the next free worker."""

    def wait(self, tasks: Iterable[Future[T]]) -> set[Future[T]]:
        """Wait until at least one of these tasks is done, and return those that are."""

    def cancel(self) -> None:
        """Stop what is running as soon as possible."""
