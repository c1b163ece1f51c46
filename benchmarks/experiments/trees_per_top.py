"""Figure 1: how many trees may share a top tree.

24 trees on covtype as 24 x 1, 6 x 4, 2 x 12 and 1 x 24 (top trees x trees on each), for three bucket sizes:
accuracy against training rows. Once with our top trees, once with the paper's.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from runner import Options, Runner, draw_means, mean_and_spread, parse
from top_settings import OURS, PAPERS, TREES, top_settings

from datasets import Split, load_or_say
from oldgrowth import RandomForestClassifier


class Forest(NamedTuple):
    """`tops` None is the ordinary forest, without top trees."""

    tops: str | None = None
    bucket_size: int | None = None
    trees_per_top: int | None = None


ORDINARY = Forest()
Accuracies = dict[tuple[Forest, int], list[float]]


def main(arguments: list[str] | None = None) -> None:
    options = parse(__doc__, arguments)
    runner = Runner("trees_per_top", options)
    name = options.of_size(full="covtype", quick="covtype", tiny="noise")
    split = load_or_say(name, options.data, options.of_size(full=None, quick=None, tiny=2000), runner.console)
    if split is None:
        return
    accuracies = measure_all(runner, name, split)
    show(runner, name, accuracies)
    runner.plot(draw(accuracies))


def forests(options: Options) -> list[Forest]:
    sizes = options.of_size(full=(1_000, 10_000, 75_000), quick=(1_000, 10_000, 75_000), tiny=(200, 1000))
    shared = options.of_size(full=(1, 4, 12, 24), quick=(1, 4, 12, 24), tiny=(1, 24))
    return [ORDINARY, *(Forest(*chosen) for chosen in product((OURS, PAPERS), sizes, shared))]


def measure_all(runner: Runner, name: str, split: Split) -> Accuracies:
    """The outer loop is over seeds, so that an interrupted experiment has all forests."""
    options = runner.options
    n = len(split.x_train)
    sizes = options.of_size(full=(50_000, 100_000, 200_000, 300_000, n), quick=(50_000, 150_000), tiny=(n,))
    accuracies: Accuracies = {}
    for seed in range(options.of_size(full=4, quick=2, tiny=2)):
        for rows, forest in product(sizes, forests(options)):
            grow = partial(measure, split, rows, forest, seed)
            run = runner.run(grow, set=name, rows=rows, seed=seed, **forest._asdict())
            accuracies.setdefault((forest, rows), []).append(run["accuracy"])
    return accuracies


def measure(split: Split, rows: int, forest: Forest, seed: int) -> dict[str, Any]:
    settings: dict[str, Any] = {"bucket_size": forest.bucket_size or rows}
    if forest.tops:
        settings |= {"trees_per_top": forest.trees_per_top} | top_settings(forest.tops, rows)
    model = RandomForestClassifier(TREES, random_state=seed, **settings)
    model.fit(split.x_train[:rows], split.y_train[:rows])
    return {"accuracy": model.score(split.x_test, split.y_test), "buckets": model.fit_report_.buckets}


def show(runner: Runner, name: str, accuracies: Accuracies) -> None:
    rows = max(rows for _, rows in accuracies)
    found = {forest: values for (forest, n), values in accuracies.items() if n == rows}
    shared = sorted({forest.trees_per_top for forest in found if forest.trees_per_top})
    lines = []
    for tops, size in dict.fromkeys((forest.tops, forest.bucket_size) for forest in found if forest.tops):
        cells = [mean_and_spread(found[Forest(tops, size, trees)]) for trees in shared]
        lines.append([tops, f"{size:,}", *cells])
    seeds = len(found[ORDINARY])
    title = f"Accuracy of {TREES} trees on {rows:,} rows of {name}, {seeds} seeds"
    title += f"; ordinary forest {mean_and_spread(found[ORDINARY])}"
    runner.table(title, ["", "bucket size", *(f"{TREES // trees} x {trees}" for trees in shared)], lines)


def draw(accuracies: Accuracies) -> Figure:
    """A panel for each kind of top trees and bucket size; the ordinary forest is the grey line."""
    drawn = list(dict.fromkeys(forest for forest, _ in accuracies if forest.tops))
    kinds = list(dict.fromkeys(forest.tops for forest in drawn))
    sizes = sorted({forest.bucket_size or 0 for forest in drawn})
    figure = Figure(figsize=(4 * len(sizes), 3.2 * len(kinds)), layout="constrained")
    panels = figure.subplots(len(kinds), len(sizes), sharex=True, sharey=True, squeeze=False)
    for panel, (tops, size) in zip(panels.flat, product(kinds, sizes), strict=True):
        draw_forest(panel, accuracies, ORDINARY, "ordinary forest", color="0.6", linewidth=4)
        for forest in drawn:
            if (forest.tops, forest.bucket_size) == (tops, size):
                trees = forest.trees_per_top or TREES
                draw_forest(panel, accuracies, forest, f"{TREES // trees} x {trees}", marker="o", ms=3)
        panel.set_title(f"{tops}, bucket size {size:,}", size=10)
        panel.xaxis.set_major_formatter(lambda rows, _: f"{rows / 1000:g}k")
    figure.supxlabel("training rows", size=10)
    figure.supylabel("accuracy", size=10)
    panels[0][0].legend(frameon=False, fontsize=8)
    return figure


def draw_forest(panel: Any, accuracies: Accuracies, forest: Forest, label: str, **look: Any) -> None:
    points = {rows: values for (which, rows), values in accuracies.items() if which == forest}
    draw_means(panel, points, label=label, **look)


if __name__ == "__main__":
    main()
