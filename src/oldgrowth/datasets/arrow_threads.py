"""Starts all threads of Arrow's pool for computations, before the first file is read.

Arrow starts them when it needs them. If the system refuses one in the middle of its work, Arrow waits forever
(CSV) or crashes (Parquet). A pool that runs a single task reports the refusal: so the threads are started one
by one, each by a task that runs inside the one before, and the pool is as large as the system allows.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable

import pyarrow as pa

from ..system.resource_limits import addresses_for, check_address_space, limit_error

_LOCK = threading.Lock()
_started = (0, 0)  # process, and size of its pool; a forked process has no threads


def start_arrow_threads() -> None:
    """Start the threads that are not running yet; an error if there is none."""
    global _started
    if _started == (os.getpid(), pa.cpu_count()):
        return
    with _LOCK:
        check_address_space()
        wanted = pa.cpu_count()
        running = _Starting(wanted).running
        if running < wanted:
            pa.set_cpu_count(running)
        _started = (os.getpid(), running)


class _Starting:
    """Runs tasks inside each other, so that each needs a thread of its own."""

    def __init__(self, wanted: int) -> None:
        import pyarrow.parquet as pq

        self.running = 0
        self._parquet = pq
        self._left = wanted
        file = io.BytesIO()
        pq.write_table(pa.table({"": [0]}), file)
        self._file = file.getvalue()
        self._run_task()

    def _run_task(self) -> None:
        """Read a column, which is a task of the pool that calls `_in_task`."""
        source = _Source(self._file)
        opened = self._parquet.ParquetFile(pa.PythonFile(source, mode="r"), buffer_size=512, pre_buffer=False)
        source.when_read = self._in_task
        try:
            for _ in opened.iter_batches():
                pass
        except pa.ArrowException as error:
            limit = limit_error(error)
            if limit is None:
                raise
            if not self.running:
                raise limit from error

    def _in_task(self) -> None:
        self.running += 1
        self._left -= 1
        if self._left and addresses_for(threads=2):  # one of them is not Arrow's
            self._run_task()


class _Source(io.BytesIO):
    """A file that calls a function when it is next read."""

    when_read: Callable[[], None] | None = None

    def read(self, size: int | None = -1) -> bytes:
        call, self.when_read = self.when_read, None
        if call is not None:
            call()
        return super().read(size)
