"""Small data, the paper's fourth figure: time, accuracy and memory of fit against the number of rows.

    python benchmarks/experiments/small_data.py --data DIR

covtype is the real set (covtype.parquet in DIR). susy and higgs are the real sets if SUSY.csv.gz and
HIGGS.csv.gz are in DIR, else stand-ins of their shape (see physics.py). Our forest (by default, in one
bucket, and with ydf's rules for splits), the baseline `subsets` and all rivals that are installed grow 24
trees, each in its own process with limits on memory and time; a model that exceeds them is reported, and not
tried with more rows.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from runner import Options, Runner, mean_and_spread, parse

from compare import WORKER
from datasets import COVTYPE_TRAIN, MissingDataError, Split, covtype
from journal import Run
from physics import HIGGS, SUSY, Collisions
from rivals import AS_YDF, ONE_BUCKET, RIVALS, installed
from trials import Limits, Results, finished, measured_within, take_turns

RIVAL_MODELS = ("scikit-learn", "scikit-learn-intelex", "ydf", "ranger", "h2o depth 20")
FIELDS = ("x_train", "y_train", "x_test", "y_test")
MEASURES = (("fit_seconds", "seconds to fit"), ("accuracy", "accuracy"), ("memory_bytes", "GB to fit"))


@dataclass(frozen=True)
class Study:
    """A data set, and the numbers of rows to measure."""

    name: str
    source: str
    features: int
    sizes: tuple[int, ...]
    subsets: str
    load: Callable[[], Split]


def main(arguments: list[str] | None = None) -> int:
    options = parse(__doc__, arguments)
    runner = Runner("small_data", options)
    limits = Limits(options.of_size(full=1200, quick=60, tiny=60), 90, HIGGS.rows, ONE_BUCKET)
    seeds = options.of_size(full=range(4), quick=range(1), tiny=range(1))
    # H2O takes longer to start than all others take for the quick size.
    wanted = options.of_size(full=RIVAL_MODELS, quick=RIVAL_MODELS[:-1], tiny=RIVAL_MODELS[:1])
    rivals = installed(wanted, runner.console.print)
    for study in studies(options):
        models = ["oldgrowth", ONE_BUCKET, AS_YDF, study.subsets, *rivals]
        try:
            with arrays_on_disk(study, options.output) as arrays:
                results = measure(runner, study, models, seeds, limits, arrays)
        except MissingDataError as error:
            runner.console.print(str(error))
            continue
        show(runner, study, models, results)
        runner.plot(draw(study, models, results), study.name)
    return 0


def studies(options: Options) -> list[Study]:
    sizes = options.of_size(
        full={
            "covtype": (50_000, 100_000, 200_000, COVTYPE_TRAIN),
            "susy": (500_000, 1_500_000, SUSY.rows),
            "higgs": (1_000_000, 3_000_000, HIGGS.rows),
        },
        quick=dict.fromkeys(("covtype", "susy", "higgs"), (10000, 30000)),
        tiny={"susy": (2_000,)},
    )
    small, large = "subsets of 50,000", "subsets of 500,000"
    found = []
    if "covtype" in sizes:
        load = partial(covtype, options.data, max(sizes["covtype"]))
        found.append(Study("covtype", "UCI", 54, sizes["covtype"], small, load))
    for collisions in (SUSY, HIGGS):
        if collisions.name in sizes:
            found.append(collision_study(collisions, options, sizes[collisions.name], large))
    return found


def collision_study(collisions: Collisions, options: Options, sizes: tuple[int, ...], subsets: str) -> Study:
    source = collisions.source(options.data)
    if source == "UCI":
        most = collisions.rows - collisions.test_rows
        sizes = tuple(sorted({min(size, most) for size in sizes}))
    test_rows = options.of_size(full=collisions.test_rows, quick=20_000, tiny=1_000)
    load = partial(collisions.load, options.data, max(sizes), test_rows)
    return Study(collisions.name, source, collisions.features, sizes, subsets, load)


@contextmanager
def arrays_on_disk(study: Study, output: Path) -> Iterator[Callable[[int], Path]]:
    """A folder with the first `n` training rows and all test rows, written when a run needs it."""
    with tempfile.TemporaryDirectory(prefix=f"{study.name}-", dir=output) as directory:
        whole = Path(directory, "whole")

        def of_size(rows: int) -> Path:
            folder = Path(directory, str(rows))
            if not whole.exists():
                study.load().save(whole)
            if not folder.exists():
                for other in Path(directory).glob("[0-9]*"):  # one size at a time
                    shutil.rmtree(other)
                x, y, *test = (np.load(whole / f"{name}.npy", mmap_mode="r") for name in FIELDS)
                Split(x[:rows], y[:rows], *test).save(folder)
            return folder

        yield of_size


def measure(
    runner: Runner,
    study: Study,
    models: list[str],
    seeds: range,
    limits: Limits,
    arrays: Callable[[int], Path],
) -> Results:
    def fit(rows: int, model: str, seed: int) -> Run:
        run = {"set": study.name, "source": study.source, "rows": rows, "model": model, "seed": seed}
        return runner.run(lambda: measure_one(model, arrays(rows), seed, limits), **run)

    return take_turns(study.sizes, models, seeds, limits, fit)


def measure_one(model: str, arrays: Path, seed: int, limits: Limits) -> Run:
    command = [sys.executable, str(WORKER), model, str(arrays), str(seed), str(limits.memory)]
    return measured_within(command, limits.seconds, limits.memory)


def show(runner: Runner, study: Study, models: list[str], results: Results) -> None:
    rows: list[list[Any]] = []
    for size in study.sizes:
        for model in models:
            rows.append([f"{size:,}", model, *cells(results[size, model])])
    headings = ("training rows", "model", "seeds", "fit s", "predict s", "accuracy", "memory of fit GB")
    title = f"{study.name} ({study.source}), {study.features} features, 24 trees"
    runner.table(title, headings, rows)
    notes = [f"{name}: {RIVALS[name].note}" for name in models if RIVALS[name].note]
    runner.console.print(". ".join(notes) + ".")


def cells(runs: list[Run]) -> list[str]:
    good, failed = finished(runs), [run["failed"] for run in runs if "failed" in run]
    if not good:
        return ["0", failed[0] if failed else "not tried", "", "", ""]
    memory = [run["memory_bytes"] / 1e9 for run in good if run["memory_bytes"] is not None]
    return [
        str(len(good)),
        ", ".join([mean_and_spread((run["fit_seconds"] for run in good), ".2f"), *failed]),
        mean_and_spread((min(run["predict_seconds"]) for run in good), ".2f"),
        mean_and_spread((run["accuracy"] for run in good), ".4f"),
        mean_and_spread(memory, ".2f") if memory else "not known",
    ]


def draw(study: Study, models: list[str], results: Results) -> Figure:
    figure = Figure(figsize=(15, 4), layout="constrained")
    for ax, (field, words) in zip(figure.subplots(1, len(MEASURES)), MEASURES, strict=True):
        for number, model in enumerate(models):
            draw_curve(ax, f"C{number}", study, model, field, results)
        ax.set(xlabel="training rows", ylabel=words, xscale="log")
        if field != "accuracy":
            ax.set_yscale("log")
    figure.axes[1].set_title(f"{study.name} ({study.source}), 24 trees")
    if figure.axes[0].has_data():
        lines = figure.axes[0].get_legend_handles_labels()
        figure.legend(*lines, loc="outside right center", fontsize="small", frameon=False)
    return figure


def draw_curve(ax: Axes, colour: str, study: Study, model: str, field: str, results: Results) -> None:
    """Means, with bars of one standard deviation, and a cross at the last size a model finished before it
    failed."""
    scale = 1e9 if field == "memory_bytes" else 1.0
    points = []
    for size in study.sizes:
        values = [run[field] / scale for run in finished(results[size, model]) if run[field]]
        if values:
            points.append((size, fmean(values), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0))
    if not points:
        return
    sizes, means, spreads = zip(*points, strict=True)
    ours = model == "oldgrowth"
    ax.errorbar(
        sizes, means, spreads, color=colour, marker="o", ms=4, lw=2.5 if ours else 1.2, label=model, capsize=2
    )
    if sizes[-1] != study.sizes[-1]:
        ax.plot(sizes[-1], means[-1], marker="x", ms=11, color=colour)


if __name__ == "__main__":
    sys.exit(main())
