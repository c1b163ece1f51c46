"""How results are shown: tables for people, JSON for machines."""

from __future__ import annotations

import json
import math
from typing import Any

import click
import numpy as np
from rich.table import Table

from ..memory import human_bytes
from ..report import FitReport


def table(title: str, first: str, *others: str) -> Table:
    """A table whose first column is words and whose other columns are numbers."""
    made = Table(first, title=title, title_justify="left")
    for heading in others:
        made.add_column(heading, justify="right")
    return made


def stage_table(report: FitReport) -> Table:
    heads = ("rows", "seconds", "share", "read", "written", "peak")
    made = table("Training, stage by stage", "stage", *heads)
    total = report.seconds or 1.0
    for stage in report.stages:
        moved = (stage.bytes_read, stage.bytes_written, stage.peak_memory)
        made.add_row(
            stage.name, f"{stage.rows:,}", f"{stage.seconds:.2f}", f"{stage.seconds / total:.1%}",
            *map(human_bytes, moved),
        )  # fmt: skip
    made.add_section()
    read, written = (sum(getattr(s, f"bytes_{way}") for s in report.stages) for way in ("read", "written"))
    made.add_row(
        "total", f"{report.rows:,}", f"{report.seconds:.2f}", "100.0%", human_bytes(read),
        human_bytes(written), human_bytes(report.peak_memory), style="bold",
    )  # fmt: skip
    return made


def facts_table(title: str) -> Table:
    """A table of words and what they are."""
    return Table(title=title, title_justify="left", show_header=False)


def share(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.2%}"


def print_json(result: dict[str, Any]) -> None:
    click.echo(json.dumps(plain(result), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """The value as JSON has it; what is not a finite number is null."""
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
