"""The progress of a fit: counted by stage, shown on a screen, logged, and passed to the callback."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..errors import ParameterError
from ..messages.log import LOGGER, tell
from ..messages.text import counted, human_bytes
from ..system.memory import resident_memory
from .screens import BETWEEN, screen_for

_LOG_EVERY_SECONDS = 5.0
_REFRESH_SECONDS = 0.2
_CALL_EVERY_SECONDS = 0.1
_LOOK_SECONDS = 0.02


@dataclass(frozen=True)
class FitProgress:
    """The progress of a fit, as passed to its `callback`."""

    stage: str  # "sample", "top trees", "distribute", "grow", "assemble" or "out of bag"
    rows: int  # finished by the stage; in "grow" a row counts once for each tree
    total_rows: int | None  # of the stage; None while unknown
    seconds: float  # since the stage began
    finished: bool  # whether the stage has ended
    bytes_read: int  # in this stage, from the source and from disk
    bytes_written: int  # in this stage, to disk
    disk: int  # bytes of the fit on disk now
    memory: int  # bytes of the process now
    memory_limit: int  # bytes
    note: str = ""  # of a cluster: workers, bytes moved between them, jobs done again


Callback = Callable[[FitProgress], Any]


@dataclass(frozen=True)
class Observers:
    """Who follows the progress of a fit: a person, if `verbose`, and a function."""

    verbose: int = 0
    callback: Callback | None = None

    def __post_init__(self) -> None:
        if self.callback is not None and not callable(self.callback):
            raise ParameterError("callback", self.callback, "a function of one argument, or None")


class StoppedByCallback(BaseException):
    """Carries the exception of a callback out of the fit, so that no code on the way handles it."""

    def __init__(self, raised: Exception) -> None:
        super().__init__(str(raised))
        self.raised = raised


class StageProgress:
    """Counts the finished rows of a stage; `total` is None while unknown."""

    def __init__(self, name: str, total: int | None) -> None:
        self.name, self.total, self.done = name, total, 0
        self.skipped = 0  # rows of `done` that an interrupted fit had finished
        self.memory = 0  # the highest seen
        self.note = ""  # what else there is to tell
        self._looked = 0.0

    def advance(self, rows: int) -> None:
        self.done += rows
        now = time.perf_counter()
        if now - self._looked > _LOOK_SECONDS:
            self._looked = now
            self.memory = max(self.memory, resident_memory())
            self._look(now)

    def skip(self, rows: int) -> None:
        """Count rows that an interrupted fit had finished, which take no time now."""
        self.skipped += rows
        self.advance(rows)

    def _look(self, now: float) -> None:
        """Tell the followers of the stage whose turn it is."""


@dataclass(frozen=True)
class Machine:
    """What a fit uses of the machine: its memory limit, bytes on disk, bytes read and written there."""

    memory_limit: int
    on_disk: Callable[[], int] = lambda: 0
    moved: Callable[[], tuple[int, int]] = lambda: (0, 0)


class FollowedStage(StageProgress):
    """Describes the progress of a stage: rows, rate, bytes, time left, memory, disk."""

    def __init__(
        self, name: str, total: int | None, source_bytes: int | None, machine: Machine, noun: str = "row"
    ) -> None:
        super().__init__(name, total)
        self.noun = noun
        self._source_bytes = source_bytes
        self._machine = machine
        self._moved = machine.moved()
        self._started = time.perf_counter()
        self._followers: list[tuple[float, Callable[[], None]]] = []
        self._told: list[float] = []

    def follow(self, every: float, tell_it: Callable[[], None]) -> None:
        """Call a function every `every` seconds while the stage advances."""
        self._followers.append((every, tell_it))
        self._told.append(self._started)

    def _look(self, now: float) -> None:
        for i, (every, tell_it) in enumerate(self._followers):
            if now - self._told[i] >= every:
                self._told[i] = now
                tell_it()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._started

    def _source_read(self) -> int:
        if not self._source_bytes or not self.total:
            return 0
        return int(self._source_bytes * (self.done - self.skipped) / self.total)

    def as_progress(self, finished: bool = False) -> FitProgress:
        read, written = (now - then for now, then in zip(self._machine.moved(), self._moved, strict=True))
        return FitProgress(
            stage=self.name,
            rows=self.done,
            total_rows=self.total,
            seconds=self.seconds,
            finished=finished,
            bytes_read=read + self._source_read(),
            bytes_written=written,
            disk=self._machine.on_disk(),
            memory=resident_memory(),
            memory_limit=self._machine.memory_limit,
            note=self.note,
        )

    def words(self, width: int = 1000) -> list[str]:
        """The progress in words; the less important ones are left out if they would be too long."""
        rate = (self.done - self.skipped) / max(self.seconds, 1e-9)
        of_all = "" if self.total is None else f" of {self.total:,}"
        noun = self.noun if (self.done if self.total is None else self.total) == 1 else f"{self.noun}s"
        words = {"rows": f"{self.done:,}{of_all} {noun}"}
        words["rate"] = f"{rate:,.0f} {self.noun}s/s"
        if read := self._source_read():
            words["read"] = f"{human_bytes(read)} read"
        if self.total is not None and rate > 0:
            words["left"] = f"{_clock((self.total - self.done) / rate)} left"
        limit = human_bytes(self._machine.memory_limit)
        words["memory"] = f"memory {human_bytes(resident_memory())} of {limit}"
        if disk := self._machine.on_disk():
            words["disk"] = f"disk {human_bytes(disk)}"
        if self.note:
            words["note"] = self.note
        for name in ("read", "rate", "disk", "memory", "note", "left"):
            if len(BETWEEN.join(words.values())) > width:
                words.pop(name, None)
        return list(words.values())


class Progress:
    """Reports the stages of a fit to its observers."""

    def __init__(self, observers: Observers, machine: Machine) -> None:
        self._screen = screen_for(observers.verbose)
        self._callback = observers.callback
        self._machine = machine

    def say(self, sentence: str) -> None:
        tell(sentence, screen=self._screen)

    @contextmanager
    def stage(
        self, name: str, total: int | None, source_bytes: int | None, noun: str = "row"
    ) -> Iterator[StageProgress]:
        """A stage, whose rows may be pixels: what is counted is called `noun`."""
        stage = FollowedStage(name, total, source_bytes, self._machine, noun)
        screen = self._screen
        lines = screen if screen is not None and screen.lines else None

        def log() -> None:
            tell(f"{name}: {', '.join(stage.words())}", logging.DEBUG, lines)

        if lines is not None or LOGGER.isEnabledFor(logging.DEBUG):
            stage.follow(_LOG_EVERY_SECONDS, log)
        if screen is not None and lines is None:
            stage.follow(_REFRESH_SECONDS, lambda: screen.update(stage))
        if self._callback is not None:
            stage.follow(_CALL_EVERY_SECONDS, lambda: self._call(stage.as_progress()))
            self._call(stage.as_progress())
        if screen is not None:
            screen.begin(stage)
        try:
            yield stage
        finally:
            if screen is not None:
                screen.end(stage)
        tell(f"{name}: {counted(stage.done, noun)} in {stage.seconds:.2f} s", screen=lines)
        if self._callback is not None:
            self._call(stage.as_progress(finished=True))

    def _call(self, progress: FitProgress) -> None:
        assert self._callback is not None
        try:
            self._callback(progress)
        except Exception as error:
            error.add_note(f"Raised by the callback of the fit in stage {progress.stage!r}.")
            raise StoppedByCallback(error) from error


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
