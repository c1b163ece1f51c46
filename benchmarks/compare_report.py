"""The tables and the plot of a comparison."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from goals import GOALS, Summary, judge, ratio, summarise
from oldgrowth.messages.text import human_bytes
from rivals import RIVALS

_COLUMNS = (
    "model",
    "fit best s",
    "fit median s",
    "predict best s",
    "accuracy",
    "fit memory",
    "fit ratio",
    "predict ratio",
    "memory ratio",
)
_WORDS = {True: ("met", "green"), False: ("missed", "red"), None: ("open", "yellow")}


def print_tables(result: dict[str, Any], console: Console) -> None:
    summaries = summarise(result["measurements"])
    for set_name, shape in result["shapes"].items():
        title = f"{set_name}: {shape['rows']:,} x {shape['features']}, {shape['test_rows']:,} test rows"
        console.print(_table(title, set_name, summaries))
        for model in (model for name, model in summaries if name == set_name):
            if RIVALS[model].note:
                console.print(f"  {model}: {RIVALS[model].note}", highlight=False)
        _print_goals(set_name, summaries, scaled_down=result["rows"] is not None, console=console)
    console.print(
        "Ratios are the model's best over the best of ours of its kind; above 1 we are better.",
        highlight=False,
    )


def _table(title: str, set_name: str, summaries: dict[tuple[str, str], Summary]) -> Table:
    table = Table(title=title, title_justify="left")
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column == "model" else "right", no_wrap=True)
    for (name, model), summary in summaries.items():
        if name != set_name:
            continue
        ours = summaries.get((set_name, RIVALS[model].ours))
        ratios = [ratio(measure, summary, ours) for measure in ("fit", "predict", "memory")]
        failed = f" ({summary.failures} of {summary.repeats} failed)" if summary.failures else ""
        table.add_row(
            model + failed,
            _number(summary.fit_best, ".3f"),
            _number(summary.fit_median, ".3f"),
            _number(summary.predict_best, ".3f"),
            _number(summary.accuracy, ".4f"),
            "-" if summary.memory is None else human_bytes(summary.memory),
            *(_number(value, ".2f") + ("" if value is None else "x") for value in ratios),
        )
    return table


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _print_goals(
    set_name: str, summaries: dict[tuple[str, str], Summary], scaled_down: bool, console: Console
) -> None:
    if scaled_down:
        console.print("  Goals hold for the full sets: not judged with --rows.", highlight=False)
        return
    for verdict in (judge(goal, summaries) for goal in GOALS if goal.set_name == set_name):
        word, style = _WORDS[verdict.met]
        console.print(f"  [{style}]{word:<7}[/] {verdict}", highlight=False)


def plot(result: dict[str, Any], path: Path) -> bool:
    """Bars of fit seconds, on a log scale, and of accuracy; False when there is nothing to draw."""
    from matplotlib.figure import Figure

    summaries = summarise(result["measurements"])
    fitted = {name for (name, _), summary in summaries.items() if summary.fit_best is not None}
    sets = [name for name in result["shapes"] if name in fitted]
    if not sets:
        return False
    figure = Figure(figsize=(10, 3.2 * len(sets)), layout="constrained")
    axes = figure.subplots(len(sets), 2, squeeze=False)
    for (seconds, accuracy), set_name in zip(axes, sets, strict=True):
        rows = {m: s for (name, m), s in summaries.items() if name == set_name and s.fit_best is not None}
        names = list(rows)[::-1]
        colours = ["tab:green" if name.startswith("oldgrowth") else "tab:gray" for name in names]
        fits = [rows[name].fit_best for name in names]
        bars = seconds.barh(names, fits, color=colours)
        seconds.bar_label(bars, fmt="%.3g", padding=3)
        seconds.set(xscale="log", title=f"{set_name}: seconds to fit, best of {result['repeats']}")
        # From a whole power of ten: a log scale that starts anywhere makes any ratio look large.
        seconds.set_xlim(10.0 ** math.floor(math.log10(min(fits) / 1.01)), max(fits) * 3)
        values = [rows[name].accuracy for name in names]
        bars = accuracy.barh(names, values, color=colours)
        accuracy.bar_label(bars, fmt="%.4f", padding=3)
        # A whole scale, from nothing to all: a cut one would make small differences look large.
        accuracy.set(xlim=(0, 1.15), title=f"{set_name}: accuracy, mean", yticklabels=[])
    figure.savefig(path, dpi=150)
    return True
