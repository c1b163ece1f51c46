"""Big data, the paper's fifth figure: generated imagery of up to 50 million rows x 81 on disk, 12 trees.

    python benchmarks/experiments/big_data.py [--data DIR]

Ours as in the paper (3 top trees x 4, lambda 1, its sizes of sample and buckets) and with our defaults
(12 x 1), both with the disk store, against the baseline `subsets` and against scikit-learn, as far as memory
and time allow; with the fewest rows also against our own forest in one bucket. 5 % of the
pixels, drawn at random, are for testing. With DIR also the real scene gewata_landsat7.npz, split by blocks of
pixels. The full size takes 35 GB of disk.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from runner import HERE, Options, Runner, mean_and_spread, parse
from top_settings import PAPERS, papers_size, top_settings

import imagery
from datasets import MissingDataError, landsat
from journal import Run
from oldgrowth.messages.text import human_bytes
from trials import Limits, Results, finished, measured_within, take_turns

WORKER = HERE / "big_worker.py"
TREES = 12
TEST_SHARE = 0.05
STRIPE = 4  # lines that are made together
AS_THE_PAPER, OURS = "oldgrowth, as the paper", "oldgrowth, 12 x 1"
ONE_BUCKET = "oldgrowth, one bucket"
MODELS = (AS_THE_PAPER, OURS, "subsets", "scikit-learn")
SPILL_LIMIT = 30 * 10**9
OUR_LIMIT, RIVAL_LIMIT = 4 * 10**9, 16 * 10**9  # the paper's machine has 16 GB


@dataclass(frozen=True)
class Plan:
    """Rows of a file and files of each size; seeds and limits; what small sizes need other than defaults."""

    file_rows: int
    files: tuple[int, ...]
    seeds: int
    limits: Limits
    subset_size: int
    bucket_size: int | None

    def fit(self, model: str, rows: int, seed: int, work: Path) -> Run:
        """The parameters of a model."""
        every = {"n_estimators": TREES, "n_jobs": -1, "random_state": seed}
        if model == "scikit-learn":
            return every
        every |= {"memory_limit": OUR_LIMIT, "spill_dir": str(work)}
        if model == "subsets":
            return every | {"subset_size": self.subset_size}
        if model == ONE_BUCKET:
            return every | {"bucket_size": rows}
        every |= {"store": "disk", "spill_limit": SPILL_LIMIT}
        if model == OURS:
            return every | {"bucket_size": self.bucket_size or "auto"}
        top = {"trees_per_top": 4, "balance": 1.0, "bucket_size": self.bucket_size or papers_size(rows)}
        return every | top | top_settings(PAPERS, rows)


def main(arguments: list[str] | None = None) -> int:
    options = parse(__doc__, arguments)
    runner = Runner("big_data", options)
    plan = options.of_size(
        full=Plan(1_000_000, (1, 5, 10, 20, 50), 4, Limits(1200, 120, 5_000_000), 500_000, None),
        quick=Plan(250_000, (1, 2, 4), 2, Limits(60, 60, 250_000), 50_000, None),
        tiny=Plan(10_000, (2,), 1, Limits(60, 60, 20_000), 2_000, 2_000),
    )
    work = options.output / "big_data"
    work.mkdir(parents=True, exist_ok=True)
    scene = Scene("made-up", partial(write_imagery, work / "imagery", plan.file_rows, max(plan.files)))
    fewest, more = plan.files[:1], plan.files[1:]
    results = measure(runner, scene, plan, fewest, (*MODELS, ONE_BUCKET), work)
    results |= measure(runner, scene, plan, more, MODELS, work)
    show(runner, "generated imagery, 81 features", plan, results)
    show_buckets(runner, results)
    runner.plot(draw(results))
    real_scene(runner, options, plan, work)
    shutil.rmtree(work)
    return 0


@dataclass(frozen=True)
class Scene:
    """Gives training and test files for a number of training files."""

    name: str
    sources: Callable[[int], tuple[list[str], list[str]]]


def write_imagery(directory: Path, file_rows: int, n_files: int, files: int) -> tuple[list[str], list[str]]:
    """The first `files` training files and all test files, made unless they are there.

    A file has every n-th stripe of the same scene: fewer files are a thinner sample of it, not a part.
    """
    directory.mkdir(parents=True, exist_ok=True)
    n_stripes = math.ceil(1.003 * file_rows / ((1 - TEST_SHARE) * imagery.WIDTH * STRIPE))
    for number in range(n_files):
        test, train = (directory / f"{what}-{number:03d}.parquet" for what in ("test", "train"))
        if train.exists():
            continue
        firsts = [(number + n_files * i) * STRIPE for i in range(n_stripes)]
        parts = [imagery.lines(first, STRIPE) for first in firsts]
        x, y = (np.concatenate(part) for part in zip(*parts, strict=True))
        tested = np.concatenate([imagery.for_testing(first, STRIPE, TEST_SHARE) for first in firsts])
        imagery.write_rows(test, x[tested], y[tested])
        imagery.write_rows(train, x[~tested][:file_rows], y[~tested][:file_rows])
    found = {what: [str(p) for p in sorted(directory.glob(f"{what}-*"))] for what in ("train", "test")}
    return found["train"][:files], found["test"]


def real_scene(runner: Runner, options: Options, plan: Plan, work: Path) -> None:
    """The real scene in training and test blocks, all its rows."""

    def sources(files: int) -> tuple[list[str], list[str]]:
        directory = work / "landsat"
        directory.mkdir(exist_ok=True)
        train, test = directory / "train.parquet", directory / "test.parquet"
        if not train.exists():
            split = landsat(options.data, options.of_size(full=None, quick=100_000, tiny=5_000))
            imagery.write_rows(test, split.x_test, split.y_test)
            imagery.write_rows(train, split.x_train, split.y_train)
        return [str(train)], [str(test)]

    try:
        results = measure(runner, Scene("landsat", sources), plan, (1,), (*MODELS, ONE_BUCKET), work)
    except MissingDataError as error:
        runner.console.print(str(error))
        return
    show(runner, "the Landsat scene of Gewata, split by blocks, 54 features", plan, results)


def measure(
    runner: Runner, scene: Scene, plan: Plan, sizes: tuple[int, ...], models: tuple[str, ...], work: Path
) -> Results:
    def fit(rows: int, model: str, seed: int) -> Run:
        files = rows // plan.file_rows
        run = {"scene": scene.name, "files": files, "file_rows": plan.file_rows, "model": model, "seed": seed}
        return runner.run(lambda: measure_one(model, plan, seed, scene.sources(files), work), **run)

    rows = [files * plan.file_rows for files in sizes]
    return take_turns(rows, models, range(plan.seeds), plan.limits, fit)


def measure_one(model: str, plan: Plan, seed: int, sources: tuple[list[str], list[str]], work: Path) -> Run:
    train, test = sources
    theirs = {"subsets": "SubsetForestClassifier", "scikit-learn": "scikit-learn"}
    told = plan.fit(model, len(train) * plan.file_rows, seed, work)
    forest = theirs.get(model, "RandomForestClassifier")
    wanted = {"forest": forest, "train": train, "test": test, "fit": told}
    command = [sys.executable, str(WORKER), json.dumps(wanted | {"limit": RIVAL_LIMIT})]
    memory = RIVAL_LIMIT if model == "scikit-learn" else OUR_LIMIT
    return measured_within(command, plan.limits.seconds, memory)


def show(runner: Runner, title: str, plan: Plan, results: Results) -> None:
    rows: list[list[Any]] = []
    for (n, model), runs in results.items():
        good, failed = finished(runs), [run["failed"] for run in runs if "failed" in run]
        n = good[0]["train_rows"] if good else n
        if not good:
            rows.append([f"{n:,}", model, "0", failed[0] if failed else "not tried", "", "", "", ""])
            continue
        seconds = [run["fit_seconds"] for run in good]
        rows.append(
            [
                f"{n:,}",
                model,
                len(good),
                mean_and_spread(seconds, ".1f"),
                f"{fmean(seconds) / n / TREES * 1e9:.0f}",
                human_bytes(max(run["peak"] for run in good)),
                mean_and_spread(run["accuracy"] for run in good),
                mean_and_spread(run["mean_recall"] for run in good),
            ]
        )
    headings = ("training rows", "model", "seeds", "seconds", "ns a row and tree", "peak memory")
    tests = next(run["test_rows"] for runs in results.values() for run in finished(runs))
    title = f"{title}, {TREES} trees, {tests:,} test rows; from files to forest"
    runner.table(title, (*headings, "accuracy", "mean recall"), rows)


def show_buckets(runner: Runner, results: Results) -> None:
    rows = []
    for (n, model), runs in results.items():
        for run in finished(runs)[:1] if model in (AS_THE_PAPER, OURS) else ():
            report = run["report"]
            sizes = report["bucket_rows"]
            numbers = (n, report["buckets"], report["bucket_size"], sizes["50%"], sizes["100%"])
            rows.append([model, *(f"{number:,}" for number in (*numbers, report["buckets_split"]))])
    headings = ("model", "training rows", "buckets", "bucket size", "median rows", "most rows", "split again")
    runner.table("Buckets", headings, rows)


def draw(results: Results) -> Figure:
    figure = Figure(figsize=(13, 4), layout="constrained")
    panels = (
        ("fit_seconds", "seconds", 1.0),
        ("accuracy", "accuracy", 1.0),
        ("peak", "peak memory, GB", 1e9),
    )
    for ax, (field, words, scale) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        for number, model in enumerate((*MODELS, ONE_BUCKET)):
            points = [
                (n / 1e6, run[field] / scale)
                for (n, name), runs in results.items()
                if name == model
                for run in finished(runs)
            ]
            if not points:
                continue
            sizes = sorted({n for n, _ in points})
            means = [fmean(value for n, value in points if n == size) for size in sizes]
            ax.plot(sizes, means, color=f"C{number}", lw=2, label=model)
            ax.scatter(*zip(*points, strict=True), color=f"C{number}", s=14)
        ax.set(xlabel="million training rows", ylabel=words)
    figure.axes[0].legend()
    return figure


if __name__ == "__main__":
    sys.exit(main())
