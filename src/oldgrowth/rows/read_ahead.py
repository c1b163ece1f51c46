"""Reads ahead in a thread while others process earlier items. The thread ends with its reader."""

from __future__ import annotations

import atexit
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# Seconds that the thread has to end by itself.
_ENDS_BY_ITSELF = 5.0


def read_ahead(items: Iterator[T], depth: int = 4) -> Generator[T, None, None]:
    """The same items, read by a thread that is up to `depth` items ahead."""
    reader = _Reader(items, depth)
    _RUNNING.add(reader)
    try:
        reader.start()
        yield from reader.results()
    finally:
        reader.end()
        _RUNNING.discard(reader)


class _Reader(Thread, Generic[T]):
    def __init__(self, items: Iterator[T], depth: int) -> None:
        super().__init__(name="oldgrowth-reader", daemon=True)
        self._items = items
        self._ready: Queue[tuple[T | None, BaseException | None]] = Queue(depth)
        self._stopped = Event()

    def results(self) -> Iterator[T]:
        while True:
            item, error = self._ready.get()
            if error is not None:
                raise error
            if item is None:
                return
            yield item

    def run(self) -> None:
        try:
            with self._closing():
                for item in self._items:
                    self._offer(item)
                    if self._stopped.is_set():
                        return
            self._offer(None)
        except BaseException as error:  # noqa: BLE001 - it is raised where the items are used
            self._offer(None, error)

    def _closing(self) -> AbstractContextManager[object]:
        """Closes the items in their own thread, so that nothing of them is left when it ends."""
        return closing(self._items) if isinstance(self._items, Generator) else nullcontext()

    def _offer(self, item: T | None, error: BaseException | None = None) -> None:
        while not self._stopped.is_set():
            with suppress(Full):
                self._ready.put((item, error), timeout=0.1)
                return

    def end(self) -> None:
        """Wait until it has ended. One whose source takes longer than some seconds for an item is left alone:
        it ends when it has that item."""
        self._stopped.set()
        with suppress(Empty):  # room for what it offers
            while True:
                self._ready.get_nowait()
        if self.ident is not None:  # it was started
            self.join(_ENDS_BY_ITSELF)


_RUNNING: set[_Reader[Any]] = set()


@atexit.register
def _end_all() -> None:
    """End open readers before the interpreter ends threads in the middle of other libraries."""
    for reader in list(_RUNNING):
        reader.end()
