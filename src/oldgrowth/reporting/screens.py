"""How a verbose fit is shown: a live line on a terminal, a table in a notebook, or plain lines.

A screen is a log handler, for sentences, that also follows a stage while it runs.
"""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from ..messages.notebook_html import html_table, in_html
from ..messages.text import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars

BETWEEN = " · "
# Columns of a terminal: before the words of a line, of its bar, and the least for both.
_HEAD, _BAR, _WIDE = 14, 24, 160


class Stage(Protocol):
    """What a screen shows of a stage."""

    name: str
    total: int | None
    done: int

    def words(self, width: int = 1000) -> list[str]: ...


class Screen(logging.Handler):
    """Plain lines on standard error, one for each sentence, and one for a stage from time to time."""

    lines = True  # whether stages are shown as sentences

    def emit(self, record: logging.LogRecord) -> None:
        if sys.stderr is not None:  # it is None in a program without a console
            print(f"oldgrowth: {printable(record.getMessage())}", file=sys.stderr, flush=True)

    def begin(self, stage: Stage) -> None:
        """Show a new stage."""

    def update(self, stage: Stage) -> None:
        """Show the progress of the stage."""

    def end(self, stage: Stage) -> None:
        """Show the stage for the last time."""


class TerminalScreen(Screen):
    """A line for each stage, which is updated while it runs."""

    lines = False

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self._bars: Bars | None = None

    def emit(self, record: logging.LogRecord) -> None:
        self._console.print(
            f"oldgrowth: {printable(record.getMessage())}", markup=False, highlight=False, soft_wrap=True
        )

    def begin(self, stage: Stage) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

        if stage.total == 0:
            return
        bar = (BarColumn(_BAR),) if self._console.width >= _WIDE else ()
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description:<10}"),
            *bar,
            TextColumn("{task.fields[words]}"),
        )
        self._bars = Progress(*columns, console=self._console)
        self._task = self._bars.add_task(stage.name, total=stage.total, words="")
        self._bars.start()

    def update(self, stage: Stage) -> None:
        if self._bars is not None:
            words = stage.words(self._console.width - _HEAD)
            self._bars.update(self._task, completed=stage.done, words=BETWEEN.join(words))

    def end(self, stage: Stage) -> None:
        self.update(stage)
        if self._bars is not None:
            self._bars.stop()
            self._bars = None


class NotebookScreen(Screen):
    """One output of a cell for the whole fit: a row for each stage, with a bar in the last one."""

    lines = False

    def __init__(self) -> None:
        super().__init__()
        self._handle: Any = None
        self._stages: list[list[str]] = []
        self._sentences: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._sentences.append(record.getMessage())
        self._draw()

    def begin(self, stage: Stage) -> None:
        self._stages.append([])
        self.update(stage)

    def update(self, stage: Stage, bar: bool = True) -> None:
        share = f"<progress value='{stage.done}' max='{max(stage.total or 0, 1)}'></progress>"
        words = in_html(BETWEEN.join(stage.words()))
        known = bar and stage.total is not None
        self._stages[-1] = [in_html(stage.name), f"{share} {words}" if known else words]
        self._draw()

    def end(self, stage: Stage) -> None:
        self.update(stage, bar=False)

    def _draw(self) -> None:
        display = import_module("IPython.display").display
        sentences = "".join(f"<div>{in_html(sentence)}</div>" for sentence in self._sentences)
        plain = "\n".join(["oldgrowth", *self._sentences])
        shown = {"text/html": html_table((), self._stages) + sentences, "text/plain": plain}
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


def screen_for(verbose: int) -> Screen | None:
    """The screen for the terminal, notebook or log in use; None unless `verbose`."""
    if not verbose:
        return None
    if _in_notebook():
        return NotebookScreen()
    from rich.console import Console

    console = Console(stderr=True, markup=False)
    return TerminalScreen(console) if console.is_terminal else Screen()


def _in_notebook() -> bool:
    """Whether this runs in the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return getattr(shell, "kernel", None) is not None
