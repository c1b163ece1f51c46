"""What a person sees while a forest is fitted: a line per stage, live on a terminal, plain text elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as RichProgress

from .memory import human_bytes, resident_memory

_REPORT_EVERY_SECONDS = 5.0
_REFRESH_SECONDS = 0.2
_LOOK_SECONDS = 0.02
BETWEEN = " · "
# Columns of a terminal: before the words of a line, of its bar, and from which on there is room for both.
_HEAD, _BAR, _WIDE = 14, 24, 160


class StageProgress:
    """Counts the rows that a stage has finished; `total` is None as long as nobody knows it."""

    def __init__(self, name: str, total: int | None) -> None:
        self.name, self.total, self.done = name, total, 0
        self.memory = 0  # the most that was seen
        self._looked = 0.0

    def advance(self, rows: int) -> None:
        self.done += rows
        now = time.perf_counter()
        if now - self._looked > _LOOK_SECONDS:
            self._looked = now
            self.memory = max(self.memory, resident_memory())


class _ShownStage(StageProgress):
    """Knows what there is to say of a stage: rows, rate, bytes, time left, memory, disk."""

    def __init__(
        self, name: str, total: int | None, source_bytes: int | None, limit: int, on_disk: Callable[[], int]
    ) -> None:
        super().__init__(name, total)
        self._source_bytes = source_bytes
        self._limit = limit
        self._on_disk = on_disk
        self._started = self._shown = time.perf_counter()

    def words(self, width: int = 1000) -> list[str]:
        """What there is to say, the less important left out where it would be too long."""
        seconds = max(time.perf_counter() - self._started, 1e-9)
        rate = self.done / seconds
        of_all = "" if self.total is None else f" of {self.total:,}"
        words = {"rows": f"{self.done:,}{of_all} rows"}
        words["rate"] = f"{rate:,.0f} rows/s"
        if self._source_bytes and self.total:
            words["read"] = f"{human_bytes(self._source_bytes * self.done / self.total)} read"
        if self.total is not None and rate > 0:
            words["left"] = f"{_clock((self.total - self.done) / rate)} left"
        words["memory"] = f"memory {human_bytes(resident_memory())} of {human_bytes(self._limit)}"
        if disk := self._on_disk():
            words["disk"] = f"disk {human_bytes(disk)}"
        for name in ("read", "rate", "disk", "memory", "left"):
            if len(BETWEEN.join(words.values())) > width:
                words.pop(name, None)
        return list(words.values())

    def advance(self, rows: int) -> None:
        super().advance(rows)
        now = time.perf_counter()
        if now - self._shown >= self._every:
            self._shown = now
            self.show()

    _every = _REPORT_EVERY_SECONDS

    def show(self) -> None:
        raise NotImplementedError


class _LiveStage(_ShownStage):
    _every = _REFRESH_SECONDS
    _bars: RichProgress

    def begin(self, bars: RichProgress) -> None:
        self._bars = bars
        self._task = bars.add_task(self.name, total=self.total, words="")

    def show(self) -> None:
        words = self.words(self._bars.console.width - _HEAD)
        self._bars.update(self._task, completed=self.done, words=BETWEEN.join(words))


class _PlainStage(_ShownStage):
    out: TextIO

    def show(self) -> None:
        print(f"oldgrowth: {self.name}: {', '.join(self.words())}", file=self.out, flush=True)


class Progress:
    """Shows the stages of a fit; silent unless `verbose`."""

    def __init__(self, verbose: int, limit: int, on_disk: Callable[[], int]) -> None:
        self._verbose = verbose
        self._limit = limit
        self._on_disk = on_disk
        self._console = Console(stderr=True, markup=False)

    def say(self, sentence: str) -> None:
        if self._verbose:
            self._console.print(f"oldgrowth: {sentence}", markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def stage(self, name: str, total: int | None, source_bytes: int | None) -> Iterator[StageProgress]:
        if not self._verbose or (self._console.is_terminal and total == 0):
            yield StageProgress(name, total)
        elif self._console.is_terminal:
            bar = (BarColumn(_BAR),) if self._console.width >= _WIDE else ()
            columns = (
                SpinnerColumn(),
                TextColumn("{task.description:<10}"),
                *bar,
                TextColumn("{task.fields[words]}"),
            )
            live = _LiveStage(name, total, source_bytes, self._limit, self._on_disk)
            with RichProgress(*columns, console=self._console) as bars:
                live.begin(bars)
                yield live
                live.show()
        else:
            plain = _PlainStage(name, total, source_bytes, self._limit, self._on_disk)
            plain.out = sys.stderr
            started = time.perf_counter()
            yield plain
            seconds = time.perf_counter() - started
            print(f"oldgrowth: {name}: {plain.done:,} rows in {seconds:.2f} s", file=sys.stderr, flush=True)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
