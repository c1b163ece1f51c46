"""The threads of a fit or a prediction, which stop when it fails or is interrupted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Protocol, TypeVar

from .. import _core
from .resource_limits import addresses_for

T = TypeVar("T")


class Workers(ThreadPoolExecutor):
    """A pool whose tasks check `stop` from time to time."""

    def __init__(self, n_jobs: int) -> None:
        super().__init__(n_jobs, thread_name_prefix="oldgrowth")
        self.workers = n_jobs
        self.stop = _core.Stop()

    def wait(self, tasks: Iterable[Future[T]]) -> set[Future[T]]:
        """Wait until at least one of these tasks is done, and return those that are."""
        return wait(tasks, return_when=FIRST_COMPLETED).done

    def cancel(self) -> None:
        """End the tasks that are running."""
        self.stop.set()

    def _adjust_thread_count(self) -> None:
        """Start a thread for a submitted task; if the system allows no more, running threads do it."""
        if self._threads and not addresses_for(threads=1):
            return
        try:
            super()._adjust_thread_count()
        except RuntimeError:
            if not self._threads:
                raise


class _Cancellable(Protocol):
    def cancel(self) -> None: ...


@contextmanager
def cancelled_by_errors(engine: _Cancellable) -> Iterator[None]:
    """A block whose errors stop the running tasks."""
    try:
        yield
    except BaseException:
        engine.cancel()
        raise


@contextmanager
def workers(n_jobs: int) -> Iterator[Workers]:
    pool = Workers(n_jobs)
    try:
        with cancelled_by_errors(pool):
            yield pool
    finally:
        pool.shutdown(cancel_futures=True)
