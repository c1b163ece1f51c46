"""The threads of a fit. When it fails or is interrupted, they stop at what they are doing."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from .. import _core


class Workers(ThreadPoolExecutor):
    """A pool whose tasks look at `stop` now and then."""

    def __init__(self, n_jobs: int) -> None:
        super().__init__(n_jobs, thread_name_prefix="oldgrowth")
        self.stop = _core.Stop()

    def _adjust_thread_count(self) -> None:
        """Start a thread for what was submitted; where the system allows no more, those that run do it."""
        try:
            super()._adjust_thread_count()
        except RuntimeError:
            if not self._threads:
                raise

    @contextmanager
    def stopped_by_errors(self) -> Iterator[None]:
        """Whatever goes wrong inside ends the tasks that run."""
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
