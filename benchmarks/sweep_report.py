"""The table and the plot of a sweep."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from rich.console import Console
from rich.table import Table

from datasets import Split

Runs = list[dict[str, Any]]
_COLUMNS = (
    "forest",
    "accuracy",
    "std",
    "minus ordinary",
    "balanced",
    "rare recall",
    "seconds",
    "vs ordinary",
    "buckets",
)


def group(runs: Runs) -> list[tuple[dict[str, Any], Runs]]:
    """The runs of each configuration, in order of appearance."""
    groups: dict[str, Runs] = {}
    for run in runs:
        groups.setdefault(json.dumps(run["config"], sort_keys=True), []).append(run)
    return [(group[0]["config"], group) for group in groups.values()]


def mean(runs: Runs, field: str) -> float | None:
    values = [run[field] for run in runs if run[field] is not None]
    return fmean(values) if values else None


def spread(runs: Runs) -> float:
    return stdev(run["accuracy"] for run in runs) if len(runs) > 1 else 0.0


def ordinary_runs(runs: Runs) -> Runs:
    return [run for run in runs if run["config"]["kind"] == "ordinary"]


def print_table(name: str, split: Split, runs: Runs, console: Console) -> None:
    rows, features = split.x_train.shape
    seeds = len({run["seed"] for run in runs})
    rare = runs[0]["rare_classes"]
    title = f"{name}: {rows:,} x {features}, {len(split.x_test):,} test rows, {seeds} seeds"
    table = Table(title=title + (f", {rare} rare classes" if rare else ""), title_justify="left")
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column == "forest" else "right", no_wrap=True)
    reference = ordinary_runs(runs)
    base = fmean(run["accuracy"] for run in reference)
    base_seconds = median(run["seconds"] for run in reference)
    for config, group_runs in group(runs):
        accuracy = fmean(run["accuracy"] for run in group_runs)
        seconds = median(run["seconds"] for run in group_runs)
        table.add_row(
            describe(config),
            f"{accuracy:.5f}",
            f"{spread(group_runs):.5f}",
            f"{accuracy - base:+.5f}",
            _number(mean(group_runs, "balanced_accuracy"), ".4f"),
            _number(mean(group_runs, "rare_recall"), ".3f"),
            f"{seconds:.2f}",
            f"{base_seconds / seconds:.2f}x",
            _number(mean(group_runs, "buckets"), ".0f"),
        )
    console.print(table)


def describe(config: dict[str, Any]) -> str:
    if config["kind"] != "buckets":
        return config["kind"]
    words = [f"{config['bucket_size']:,} rows", f"balance {config['balance']:g}"]
    words += [
        f"{name} {config[name]}" for name in ("top_max_features", "top_sample") if config[name] != "auto"
    ]
    return ", ".join(words)


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def plot(swept: dict[str, Runs], path: Path) -> None:
    """A panel for each set: accuracy minus the ordinary forest's over bucket size, a line per balance."""
    from matplotlib.figure import Figure

    across = min(3, len(swept))
    down = -(-len(swept) // across)
    figure = Figure(figsize=(4.2 * across, 3.4 * down), layout="constrained")
    panels = list(figure.subplots(down, across, squeeze=False).flat)
    for panel, (name, runs) in zip(panels, swept.items(), strict=False):
        _plot_set(panel, name, runs)
    for unused in panels[len(swept) :]:
        unused.set_axis_off()
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=150)


def _plot_set(panel: Any, name: str, runs: Runs) -> None:
    reference = ordinary_runs(runs)
    base = fmean(run["accuracy"] for run in reference)
    width = spread(reference)
    panel.axhspan(-width, width, color="0.85", label="ordinary forest, ± std over seeds")
    panel.axhline(0, color="0.5", linewidth=0.8)
    lines: dict[tuple[float, bool], list[tuple[int, float, float]]] = {}
    for config, group_runs in group(runs):
        if config["kind"] != "buckets" or config["top_sample"] != "auto":
            continue
        accuracy = fmean(run["accuracy"] for run in group_runs) - base
        line = lines.setdefault((config["balance"], config["top_max_features"] is None), [])
        line.append((config["bucket_size"], accuracy, spread(group_runs)))
    balances = sorted({balance for balance, _ in lines})
    for (balance, all_features), points in lines.items():
        sizes, values, errors = zip(*sorted(points), strict=True)
        colour = f"C{balances.index(balance)}"
        if all_features:
            label = "top trees see all features" if balance == balances[0] else None
            panel.plot(sizes, values, "x", color=colour, label=label)
        else:
            label = f"balance {balance:g}"
            panel.errorbar(sizes, values, errors, marker="o", ms=3, capsize=2, color=colour, label=label)
    panel.set(xscale="log", title=name, xlabel="bucket size", ylabel="accuracy minus ordinary")
    ticks = sorted({size for points in lines.values() for size, _, _ in points})
    panel.set_xticks(ticks, [f"{size / 1000:g}k" for size in ticks])
    panel.minorticks_off()
