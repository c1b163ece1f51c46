"""The threads of a fit, which stop when it fails or is interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from .. import _core


class Workers(ThreadPoolExecutor):
    """A pool whose tasks check `stop` from time to time."""

    def __init__(self, n_jobs: int) -> None:
        super().__init__(n_jobs, thread_name_prefix="oldgrowth")
        self.stop = _core.Stop()

    def _adjust_thread_count(self) -> None:
        """Start a thread for a submitted task; if the system allows no more, running threads do it."""
        try:
            super()._adjust_thread_count()
        except RuntimeError:
            if not self._threads:
                raise

    @contextmanager
    def stopped_by_errors(self) -> Iterator[None]:
        """A block whose errors stop the running tasks."""
        try:
            yield
        except BaseException:
            self.stop.set()
            raise


@contextmanager
def workers(n_jobs: int) -> Iterator[Workers]:
    pool = Workers(n_jobs)
    try:
        with pool.stopped_by_errors():
            yield pool
    finally:
        pool.shutdown(cancel_futures=True)
