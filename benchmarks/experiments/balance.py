"""Figure 2: the effect of lambda, the weight of even splits against gain, on time and accuracy.

24 trees on covtype: an ordinary forest that uses it in all trees, and ours (12 x 2) that uses it in top trees
only, with our settings of top trees and with the paper's. Each fit has its own process.
"""

from __future__ import annotations

import tempfile
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from forest_worker import measured_apart
from matplotlib import colormaps
from matplotlib.figure import Figure
from runner import Runner, draw_means, mean_and_spread, parse
from top_settings import OURS, PAPERS, TREES, top_settings

from datasets import Split, load_or_say
from journal import Run

THROUGHOUT = "ordinary forest"
FORESTS = (THROUGHOUT, OURS, PAPERS)
SHOWN = {"fit_seconds": "seconds", "accuracy": "accuracy"}

Runs = dict[tuple[str, float, int], list[Run]]  # of each forest, lambda and number of rows: one for each seed


def main(arguments: list[str] | None = None) -> None:
    options = parse(__doc__, arguments)
    runner = Runner("balance", options)
    name = options.of_size(full="covtype", quick="covtype", tiny="noise")
    split = load_or_say(name, options.data, options.of_size(full=None, quick=None, tiny=2000), runner.console)
    if split is None:
        return
    runs = measure_all(runner, name, split)
    show(runner, name, runs)
    runner.plot(draw(runs))


def measure_all(runner: Runner, name: str, split: Split) -> Runs:
    """Forests alternate, so that a slow phase of the machine affects all of them."""
    options = runner.options
    n = len(split.x_train)
    sizes = options.of_size(full=(n // 4, n // 2, n), quick=(n // 4,), tiny=(n,))
    balances = options.of_size(full=(0, 0.2, 0.4, 0.6, 0.8, 1), quick=(0, 0.2, 0.6, 1), tiny=(1,))
    bucket_size = options.of_size(full="auto", quick="auto", tiny=500)
    seeds = range(options.of_size(full=4, quick=2, tiny=1))
    runs: Runs = {}
    with tempfile.TemporaryDirectory(prefix="oldgrowth-balance-") as folder:
        split.save(Path(folder))
        for seed, rows, balance, forest in product(seeds, sizes, balances, FORESTS):
            parameters = parameters_of(forest, balance, rows, bucket_size)
            fit = partial(measured_apart, Path(folder), rows, seed, parameters)
            key = {"set": name, "rows": rows, "seed": seed, "forest": forest, "lambda": balance}
            runs.setdefault((forest, balance, rows), []).append(runner.run(fit, **key))
    return runs


def parameters_of(forest: str, balance: float, rows: int, bucket_size: int | str) -> dict[str, Any]:
    if forest == THROUGHOUT:
        return {"bucket_size": rows, "bottom_balance": balance}
    return {"bucket_size": bucket_size, "balance": balance} | top_settings(forest, rows)


def show(runner: Runner, name: str, runs: Runs) -> None:
    most = max(rows for _, _, rows in runs)
    balances = sorted({balance for _, balance, _ in runs})
    lines = []
    for balance in balances:
        line = [f"{balance:g}"]
        for forest in FORESTS:
            found = runs[forest, balance, most]
            line.append(mean_and_spread((run["fit_seconds"] for run in found), ".2f"))
            line.append(mean_and_spread(run["accuracy"] for run in found))
        lines.append(line)
    headings = ["lambda", *(f"{forest}: {what}" for forest in FORESTS for what in SHOWN.values())]
    seeds = len(runs[THROUGHOUT, balances[0], most])
    runner.table(f"{TREES} trees on {most:,} rows of {name}, {seeds} seeds", headings, lines)


def draw(runs: Runs) -> Figure:
    """A column for each forest, seconds above accuracy, a line for each lambda."""
    figure = Figure(figsize=(4 * len(FORESTS), 6.2), layout="constrained")
    panels = figure.subplots(len(SHOWN), len(FORESTS), sharex=True, sharey="row")
    for line, (field, words) in zip(panels, SHOWN.items(), strict=True):
        line[0].set_ylabel(words)
        for panel, forest in zip(line, FORESTS, strict=True):
            draw_panel(panel, {key[1:]: found for key, found in runs.items() if key[0] == forest}, field)
    for panel, forest in zip(panels[0], FORESTS, strict=True):
        where = "lambda throughout" if forest == THROUGHOUT else "lambda in them"
        panel.set_title(f"{forest}, {where}", size=10)
    figure.supxlabel("training rows", size=10)
    panels[0][0].legend(frameon=False, fontsize=8)
    return figure


def draw_panel(panel: Any, runs: dict[tuple[float, int], list[Run]], field: str) -> None:
    for balance in sorted({balance for balance, _ in runs}):
        points = {rows: [run[field] for run in found] for (b, rows), found in runs.items() if b == balance}
        colour = colormaps["viridis"](0.9 * balance)
        draw_means(panel, points, color=colour, label=f"lambda {balance:g}", marker="o", ms=3)
    panel.xaxis.set_major_formatter(lambda rows, _: f"{rows / 1000:g}k")


if __name__ == "__main__":
    main()
