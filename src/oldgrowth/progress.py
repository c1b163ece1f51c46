"""What a person sees while a forest is fitted: a line per stage, live on a terminal, plain text elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

_REPORT_EVERY_SECONDS = 5.0


def peak_memory() -> int:
    """The largest resident size this process has had, in bytes; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def human_bytes(n: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.3g} {unit}"
        n /= 1000
    return f"{n:.3g} TB"


class StageProgress:
    """Counts the rows that a stage has finished; `total` is None where nobody knows."""

    def __init__(self, name: str, total: int | None) -> None:
        self.name, self.total, self.done = name, total, 0

    def advance(self, rows: int) -> None:
        self.done += rows


class _LiveStage(StageProgress):
    def __init__(self, name: str, total: int | None, bars: RichProgress) -> None:
        super().__init__(name, total)
        self._bars = bars
        self._task = bars.add_task(name, total=total, rate="", memory="")
        self._started = time.perf_counter()

    def advance(self, rows: int) -> None:
        super().advance(rows)
        rate = self.done / max(time.perf_counter() - self._started, 1e-9)
        self._bars.update(
            self._task, advance=rows, rate=f"{rate:,.0f} rows/s", memory=f"peak {human_bytes(peak_memory())}"
        )


class _PlainStage(StageProgress):
    def __init__(self, name: str, total: int | None, out: TextIO) -> None:
        super().__init__(name, total)
        self._out = out
        self._started = self._reported = time.perf_counter()

    def advance(self, rows: int) -> None:
        super().advance(rows)
        now = time.perf_counter()
        if now - self._reported < _REPORT_EVERY_SECONDS:
            return
        self._reported = now
        rate = self.done / (now - self._started)
        of, left = "", ""
        if self.total is not None:
            eta = (self.total - self.done) / rate if rate else 0.0
            of, left = f" of {self.total:,}", f"{eta:.0f} s left, "
        print(
            f"oldgrowth: {self.name}: {self.done:,}{of} rows, {rate:,.0f} rows/s, "
            f"{left}peak {human_bytes(peak_memory())}",
            file=self._out,
            flush=True,
        )


class Progress:
    """Shows the stages of a fit; silent unless `verbose`."""

    def __init__(self, verbose: int) -> None:
        self._verbose = verbose
        self._console = Console(stderr=True)

    @contextmanager
    def stage(self, name: str, total: int | None) -> Iterator[StageProgress]:
        if not self._verbose or (self._console.is_terminal and total == 0):
            yield StageProgress(name, total)
        elif self._console.is_terminal:
            columns = (
                SpinnerColumn(),
                TextColumn("{task.description:<11}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(elapsed_when_finished=True),
                TextColumn("{task.fields[memory]}"),
            )
            with RichProgress(*columns, console=self._console) as bars:
                yield _LiveStage(name, total, bars)
        else:
            stage = _PlainStage(name, total, sys.stderr)
            started = time.perf_counter()
            yield stage
            seconds = time.perf_counter() - started
            print(f"oldgrowth: {name}: {stage.done:,} rows in {seconds:.2f} s", file=sys.stderr, flush=True)
