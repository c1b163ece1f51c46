"""Ends a process by a signal to which its main thread does not react.

Python handles signals in the main thread, between its own instructions: never, if a library does not return.
So a thread receives them, too. Files that are then left behind are removed by the next fit or save.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
from collections.abc import Collection
from contextlib import suppress

_GRACE_SECONDS = 10.0


class Watch:
    """Watches whether the main thread handles signals. Not watched are programs that receive signals by a
    file descriptor themselves, such as event loops, and processes that may not start a thread."""

    def __init__(self) -> None:
        self._numbers: frozenset[int] = frozenset()
        self._handled = threading.Event()
        self._reading, self._writing = socket.socketpair()
        self._writing.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="oldgrowth-signals", daemon=True)
        self._started = False

    def start(self, numbers: Collection[int]) -> None:
        """Watch these signals; only in the main thread."""
        self._numbers = frozenset(numbers)
        before = signal.set_wakeup_fd(self._writing.fileno(), warn_on_full_buffer=False)
        if before == -1:
            with suppress(RuntimeError):
                self._thread.start()
                self._started = True
        if not self._started:
            signal.set_wakeup_fd(before)

    def handled(self) -> None:
        """The main thread handles a signal, or does not need to any more."""
        self._handled.set()

    def end(self) -> None:
        self.handled()
        self.pause()
        if self._started:
            self._writing.shutdown(socket.SHUT_RDWR)
            self._thread.join()
        self._writing.close()
        self._reading.close()

    def pause(self) -> None:
        """Receive no signals."""
        if self._started:
            with suppress(ValueError):  # not the main thread
                signal.set_wakeup_fd(-1)

    def go_on(self) -> None:
        if self._started:
            with suppress(ValueError):
                signal.set_wakeup_fd(self._writing.fileno(), warn_on_full_buffer=False)

    def forget(self) -> None:
        """In a forked process, which has the socket and not the thread."""
        self.pause()
        self._started = False

    def _run(self) -> None:
        while received := self._reading.recv(64):
            for number in self._numbers.intersection(received):
                if not self._handled.wait(_GRACE_SECONDS):
                    _end_by(number)


def _end_by(number: int) -> None:
    name = signal.Signals(number).name
    with suppress(OSError):
        os.write(
            sys.__stderr__.fileno() if sys.__stderr__ else 2,
            f"oldgrowth: ended by {name}: a library has not returned for {_GRACE_SECONDS:g} s.\n".encode(),
        )
    ctypes.CDLL(None).signal(number, None)  # the default; Python's function is for the main thread only
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # the first process of a container cannot end itself by a signal
