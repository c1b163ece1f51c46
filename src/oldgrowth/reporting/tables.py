"""Results as tables for people and JSON for programs."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from ..messages.text import printable
from .report import STAGE_HEADINGS, FitReport

_BAR_WIDTH = 24
_MOST_LINES = 16


class SafeConsole(Console):
    """Prints text without control characters, which names in files may have."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(printable(o, keep="\n") if isinstance(o, str) else o for o in objects), **options)


class SafeTable(Table):
    """A table whose cells are free of control characters."""

    def add_column(self, header: Any = "", *args: Any, **options: Any) -> None:
        super().add_column(_safe(header), *args, **options)

    def add_row(self, *cells: Any, **options: Any) -> None:
        super().add_row(*map(_safe, cells), **options)


def _safe(cell: Any) -> Any:
    return printable(cell) if isinstance(cell, str) else cell


def table(title: str, first: str, *others: str) -> Table:
    """A table with words in the first column and numbers in the others."""
    made = SafeTable(first, title=title, title_justify="left")
    for heading in others:
        made.add_column(heading, justify="right")
    return made


def stage_table(report: FitReport) -> Table:
    made = table("Training by stage", *STAGE_HEADINGS)
    *stages, total = report.stage_cells()
    for cells in stages:
        made.add_row(*cells)
    made.add_section()
    made.add_row(*total, style="bold")
    return made


def facts_table(title: str) -> Table:
    """A table of names and values."""
    return SafeTable(title=title, title_justify="left", show_header=False)


@dataclass(frozen=True)
class Range:
    """The number of items with a value from `first` to `last`."""

    first: int
    last: int
    count: int


def distribution_table(title: str, first: str, counted: str, ranges: list[Range], ascii_only: bool) -> Table:
    """The number of items in each range, with its share and a bar."""
    full, little = "#-" if ascii_only else "█▏"
    made = table(title, first, counted, "share")
    made.add_column("")
    total, most = sum(r.count for r in ranges) or 1, max(r.count for r in ranges) or 1
    for r in ranges:
        bar = full * round(_BAR_WIDTH * r.count / most) or (little if r.count else "")
        span = f"{r.first:,}" if r.first == r.last else f"{r.first:,} to {r.last:,}"
        made.add_row(span, f"{r.count:,}", f"{r.count / total:.1%}", bar)
    return made


def ranges_of(values: npt.NDArray[np.int64], counts: npt.NDArray[np.int64] | None = None) -> list[Range]:
    """The values, each counted `counts` times, in at most _MOST_LINES ranges of equal length.

    Ranges begin at multiples of their length, which is 1, 2 or 5 times a power of ten.
    """
    low, high = int(values.min()), int(values.max())
    steps = (unit * 10**power for power in range(19) for unit in (1, 2, 5))
    step = next(s for s in steps if high // s - low // s < _MOST_LINES)
    counted = np.bincount(values // step - low // step, counts).astype(np.int64)
    return [
        Range(max(low, first), min(high, first + step - 1), count)
        for first, count in zip(range(low // step * step, high + 1, step), counted.tolist(), strict=True)
    ]


def report_facts(report: FitReport) -> dict[str, Any]:
    """The report as a dict, without the rows of each bucket, which may be very many."""
    facts = report.as_dict()
    del facts["rows_by_bucket"]
    return facts


def share(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.2%}"


def print_json(result: dict[str, Any]) -> None:
    click.echo(json.dumps(plain(result), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """The value as JSON; NaN and infinity become null."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)
