"""SIGTERM and SIGHUP, sent by schedulers and closed terminals, end work as Ctrl-C does.

The stack is unwound, so that threads stop and files are removed; then the process ends by the signal. A
program with its own handlers for these signals keeps them.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Terminated(KeyboardInterrupt):
    """Raised in the main thread when a signal asks the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)


class _Ending:
    """Remembers the first signal; further ones, while the stack is unwound, are ignored."""

    def __init__(self) -> None:
        self.received: int | None = None
        self.process = os.getpid()
        self.deferred = 0  # while positive, nothing is raised

    def handle(self, number: int, _: FrameType | None) -> None:
        if os.getpid() != self.process:  # in a forked child
            _end_by(number)
        first, self.received = self.received is None, self.received or number
        if first and not self.deferred:
            raise Terminated(number)


_ending: _Ending | None = None


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """A block in which a signal raises `Terminated`; when it is unwound, the process ends by the signal.

    Only in the main thread, and only for signals that would end the process anyway.
    """
    global _ending
    if _ending is not None or threading.current_thread() is not threading.main_thread():
        yield
        return
    ending = _ending = _Ending()
    before: dict[int, Any] = {}
    try:
        for number in _SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                with suppress(ValueError):  # not the main interpreter
                    before[number] = signal.signal(number, ending.handle)
        yield
    finally:
        ending.deferred += 1
        _ending = None
        for number, handler in before.items():
            signal.signal(number, handler)
        if ending.received is not None and ending.process == os.getpid():
            _end_by(ending.received)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """A block that is not interrupted; a signal meanwhile takes effect at its end."""
    ending = _ending
    if ending is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = ending.received
    ending.deferred += 1
    try:
        yield
    finally:
        ending.deferred -= 1
    if before is None and ending.received is not None and not ending.deferred:
        raise Terminated(ending.received)


def _end_by(number: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    raise SystemExit(128 + number)  # the first process of a container cannot end itself by a signal
