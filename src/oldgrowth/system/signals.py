"""SIGTERM and SIGHUP, sent by schedulers and closed terminals, end work as Ctrl-C does.

The stack is unwound, so that threads stop and files are removed; then the process ends by the signal. A
program with its own handlers for these signals keeps them. If the main thread does not react, because a
library does not return, the process ends after some seconds.
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

from .stuck import Watch

_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Terminated(KeyboardInterrupt):
    """Raised in the main thread when a signal asks the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)


class _Ending:
    """Remembers the first signal; further ones, while the stack is unwound, are ignored."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.received: int | None = None
        self.process = os.getpid()
        self.deferred = 0  # while positive, nothing is raised

    def handle(self, number: int, _: FrameType | None) -> None:
        if os.getpid() != self.process:  # in a forked child
            _end_by(number)
        self.watch.handled()
        first, self.received = self.received is None, self.received or number
        if first and not self.deferred:
            raise Terminated(number)

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Handle Ctrl-C as Python does."""
        self.watch.handled()
        signal.default_int_handler(number, frame)


_ending: _Ending | None = None


def _before_fork() -> None:
    if _ending is not None:
        _ending.watch.pause()


def _after_fork() -> None:
    if _ending is not None:
        _ending.watch.go_on()


def _in_child() -> None:
    if _ending is not None:
        _ending.watch.forget()


if hasattr(os, "register_at_fork"):  # signals of a forked process are not those of this one
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)


@contextmanager
def ended_by_signals(interrupts: bool = False) -> Iterator[None]:
    """A block in which a signal raises `Terminated`; when it is unwound, the process ends by the signal.

    Only in the main thread, and only for signals that would end the process anyway. With `interrupts`, Ctrl-C
    also ends a process that does not react: not in Python sessions, which have more to lose than a command.
    """
    global _ending
    if _ending is not None or threading.current_thread() is not threading.main_thread():
        yield
        return
    watch = Watch()
    ending = _ending = _Ending(watch)
    before: dict[int, Any] = {}
    try:
        with suppress(ValueError):  # not the main interpreter
            for number in _SIGNALS:
                if signal.getsignal(number) is signal.SIG_DFL:
                    before[number] = signal.signal(number, ending.handle)
            if interrupts and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                before[signal.SIGINT] = signal.signal(signal.SIGINT, ending.interrupt)
            watch.start(before)
        yield
    finally:
        ending.deferred += 1
        _ending = None
        watch.end()
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
