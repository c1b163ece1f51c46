"""Figure 3: top trees with lambda 0 and 1 on imagery with a dominant class, and the rows of their buckets.

Four top trees each, ours and the paper's; one of ours is drawn. The picture of two small top trees in the
README is drawn here, too.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from runner import Options, Runner, parse
from sklearn.datasets import make_classification
from top_settings import OURS, PAPERS, top_settings

import imagery
import oldgrowth.plot
from journal import Run
from oldgrowth import RandomForestClassifier

TOPS = 4
BALANCES = (0, 1)
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def main(arguments: list[str] | None = None) -> None:
    options = parse(__doc__, arguments)
    runner = Runner("top_trees", options)
    lines, bucket_size = options.of_size(full=(500, "auto"), quick=(100, 8_000), tiny=(2, 300))
    runs = {}
    for tops, balance in product((OURS, PAPERS), BALANCES):
        fit = partial(measure, options, lines, bucket_size, tops, balance)
        key = {"lines": lines, "bucket_size": bucket_size, "tops": tops, "lambda": balance}
        runs[tops, balance] = runner.run(fit, **key)
    show(runner, runs)
    runner.plot(draw(options, lines, bucket_size))
    draw_small(options.of_size(full=40_000, quick=40_000, tiny=4_000), options.images / "top_trees.png")


def grow(lines: int, bucket_size: int | str, tops: str, balance: float) -> RandomForestClassifier:
    """With one bottom tree per top tree, as they are not used."""
    x, y = imagery.lines(0, lines)
    settings = top_settings(tops, len(x))
    model = RandomForestClassifier(
        TOPS, trees_per_top=1, bucket_size=bucket_size, balance=balance, random_state=0, **settings
    )
    return model.fit(x, y)


def measure(options: Options, lines: int, bucket_size: int | str, tops: str, balance: float) -> Run:
    forest = grow(lines, bucket_size, tops, balance)
    if tops == OURS:
        forest.save(model_path(options, balance))
    report = forest.fit_report_
    sizes = np.concatenate([np.array(top) for top in report.rows_by_bucket])
    return {
        "rows": report.rows,
        "dominant": float(np.bincount(imagery.lines(0, lines)[1]).max() / report.rows),
        "bucket_size": report.bucket_size,
        "buckets": report.buckets,
        "split_again": report.buckets_split,
        "above": int((sizes > report.bucket_size).sum()),
        "quantiles": np.quantile(sizes, QUANTILES, method="nearest").tolist(),
    }


def model_path(options: Options, balance: float) -> Path:
    return options.output / f"top_trees-{balance}.og"


def show(runner: Runner, runs: dict[tuple[str, int], Run]) -> None:
    any_run = next(iter(runs.values()))
    names = {0.0: "least", 0.5: "median", 1.0: "most"}
    headings = ["", "lambda", "buckets", *(names.get(q, f"{q:.0%}") for q in QUANTILES)]
    lines = []
    for (tops, balance), run in runs.items():
        numbers = [run["buckets"], *run["quantiles"], run["above"], run["split_again"]]
        lines.append([tops, balance, *(f"{number:,}" for number in numbers)])
    title = f"Rows of the buckets of {TOPS} top trees on {any_run['rows']:,} rows"
    title += f" ({any_run['dominant']:.0%} of one class), bucket size {any_run['bucket_size']:,}"
    runner.table(title, [*headings, "above the bucket size", "split again"], lines)


def draw(options: Options, lines: int, bucket_size: int | str) -> Figure:
    """Draw one tree above the other. A forest that is in the journal but not on disk is grown again."""
    figure = Figure(figsize=(13, 9), layout="constrained")
    for balance, ax in zip(BALANCES, figure.subplots(len(BALANCES), 1), strict=True):
        path = model_path(options, balance)
        forest = oldgrowth.load(path) if path.exists() else grow(lines, bucket_size, OURS, balance)
        oldgrowth.plot.top_tree(forest, ax=ax)
        ax.set_ylim(1.04 * ax.get_ylim()[0])  # the lowest circles of a deep tree whole
        ax.set_title(f"lambda {balance}: {ax.get_title('left')}", loc="left", size=12, pad=10)
    return figure


def draw_small(n_rows: int, path: Path) -> None:
    """Draw the README's picture, with few buckets so that it is readable."""
    x, y = make_classification(n_rows, 20, n_informative=8, n_classes=4, random_state=0)
    figure = Figure(figsize=(13, 4.6), layout="constrained")
    for balance, ax in zip(BALANCES, figure.subplots(1, 2, width_ratios=[3, 2]), strict=True):
        forest = RandomForestClassifier(
            4, bucket_size=n_rows * 3 // 80, balance=balance, max_depth=14, random_state=1
        ).fit(x, y)
        oldgrowth.plot.top_tree(forest, ax=ax)
        ax.set_title(f"balance={balance}: {forest.fit_report_.buckets} buckets", loc="left", size=12, pad=10)
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main()
