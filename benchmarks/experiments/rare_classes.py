"""Figure 7: recall of rare classes, down to a handful of training rows.

24 trees of our forest, of an ordinary forest, on subsets, and of scikit-learn's forest, fully grown and with
two maximum depths. KDD99 has classes of all sizes, distributed over four folds. In the Landsat scene and in
generated imagery, all classes but the two most frequent ones are thinned, to a different number of rows in
each round. The scene is tested on other blocks than it is trained on; the imagery, as in the paper, on random
pixels, whose neighbours may be training rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from runner import Options, Runner, parse
from top_settings import TREES

import imagery
from datasets import COVTYPE_TRAIN, LabelArray, Split, load_or_say
from journal import Run
from oldgrowth import RandomForestClassifier, SubsetForestClassifier
from oldgrowth.plan import AUTO_ONE_BUCKET

FOLDS = 4
RARE = 30  # rows; fewer, and a class of KDD99 has a line of its own in the table
SUBSET_SHARE = 50_000 / COVTYPE_TRAIN  # of the rows, as the paper's subsets of covtype
BANDS = (1, 4, 10, 30, 100, 300, 1_000)  # of training rows; a table's line and a plot's point each
TEST_SHARE = 0.5  # of the imagery's pixels: enough of rare classes

OURS, SCIKIT_LEARN = "oldgrowth", "scikit-learn"


class Known(NamedTuple):
    """Recall of a class by a forest trained on a number of its rows."""

    rows: int
    recall: float


Found = dict[str, list[Run]]  # of each forest: its runs, one for each round of each seed


def forests(n_rows: int, seed: int) -> dict[str, Callable[[], Any]]:
    from sklearn.ensemble import RandomForestClassifier as ScikitLearnForest

    # Where the default would be one bucket, the ordinary forest, there are about eight.
    bucket_size = "auto" if n_rows > AUTO_ONE_BUCKET else n_rows // 8
    sizes = {"n_estimators": TREES, "random_state": seed}
    theirs = partial(ScikitLearnForest, n_jobs=-1, **sizes)
    return {
        OURS: partial(RandomForestClassifier, bucket_size=bucket_size, **sizes),
        "ordinary": partial(RandomForestClassifier, bucket_size=n_rows, **sizes),
        "subsets": partial(SubsetForestClassifier, subset_size=round(SUBSET_SHARE * n_rows), **sizes),
        SCIKIT_LEARN: theirs,
        "depth 20": partial(theirs, max_depth=20),
        "depth 10": partial(theirs, max_depth=10),
    }


def main(arguments: list[str] | None = None) -> None:
    options = parse(__doc__, arguments)
    runner = Runner("rare_classes", options)
    found = {}
    for name in options.of_size(full=SETS, quick=SETS, tiny=["imagery"]):
        rounds = SETS[name](options, runner)
        if rounds is None:
            continue
        found[name] = measure_all(runner, name, rounds)
        show_bands(runner, name, found[name])
        if name == "kdd99":
            show_classes(runner, found[name])
    if found:
        runner.plot(draw(found))


Rounds = Iterator[tuple[int, int, Split]]  # seed, round, and what to learn from and be tested on


def kdd99(options: Options, runner: Runner) -> Rounds | None:
    split = load_or_say("kdd99", options.data, None, runner.console)
    return split and folds(split, options.of_size(full=16, quick=1))


def folds(split: Split, seeds: int) -> Rounds:
    x, y = np.concatenate([split.x_train, split.x_test]), np.concatenate([split.y_train, split.y_test])
    for seed in range(seeds):
        fold_of = deal(y, seed)
        for fold in range(FOLDS):
            tested = fold_of == fold
            yield seed, fold, Split(x[~tested], y[~tested], x[tested], y[tested])


def deal(y: LabelArray, seed: int) -> npt.NDArray[np.int64]:
    """The fold of each row, assigned class by class, so that one of two rows is always for training."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    fold_of = np.empty(len(y), dtype=np.int64)
    fold_of[order] = (np.arange(len(y)) + rng.integers(FOLDS)) % FOLDS
    return fold_of


def landsat(options: Options, runner: Runner) -> Rounds | None:
    rows = options.of_size(full=None, quick=60_000)
    split = load_or_say("landsat", options.data, rows, runner.console)
    return split and thinned(split, options, seeds=1)


def made_up(options: Options, runner: Runner) -> Rounds:
    n_lines = options.of_size(full=40, quick=10, tiny=2)
    x, y = imagery.lines(0, n_lines)
    x, y = x.astype(np.float32), y.astype(np.int64)
    tested = imagery.for_testing(0, n_lines, TEST_SHARE)
    split = Split(x[~tested], y[~tested], x[tested], y[tested])
    return thinned(split, options, seeds=options.of_size(full=2, quick=1, tiny=1))


def thinned(split: Split, options: Options, seeds: int) -> Rounds:
    """In each round, each class but the two most frequent ones keeps a different number of rows."""
    levels = options.of_size(full=(3, 10, 30, 100, 300, 1_000), quick=(3, 30, 300), tiny=(3, 30))
    counts = np.bincount(split.y_train)
    rarer = np.argsort(counts, kind="stable")[:-2]
    for seed in range(seeds):
        for turn in range(len(levels)):
            most = counts.copy()
            for place, k in enumerate(rarer):
                most[k] = levels[(place + turn) % len(levels)]
            kept = thin(split.y_train, most, seed)
            yield seed, turn, Split(split.x_train[kept], split.y_train[kept], split.x_test, split.y_test)


def thin(y: LabelArray, most: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.int64]:
    """Which rows are kept if each class has a maximum: drawn at random, in their order."""
    order = np.random.default_rng(seed).permutation(len(y))
    return np.sort(np.concatenate([order[y[order] == k][: most[k]] for k in range(len(most))]))


SETS: dict[str, Callable[[Options, Runner], Rounds | None]] = {
    "kdd99": kdd99,
    "landsat": landsat,
    "imagery": made_up,
}


def measure_all(runner: Runner, name: str, rounds: Rounds) -> Found:
    found: Found = {}
    for seed, turn, split in rounds:
        n = len(split.x_train)
        for forest, make in forests(n, seed).items():
            key = {"set": name, "rows": n, "seed": seed, "round": turn, "forest": forest}
            run = runner.run(partial(find, make, split), **key)
            found.setdefault(forest, []).append(run | {"seed": seed})
    return found


def find(make: Callable[[], Any], split: Split) -> Run:
    """For each class: its training rows, its test rows, and how many of these were found."""
    predicted = make().fit(split.x_train, split.y_train).predict(split.x_test)
    n = int(max(split.y_train.max(), split.y_test.max())) + 1
    right = split.y_test[predicted == split.y_test]
    counted = {"rows": split.y_train, "tested": split.y_test, "hits": right}
    return {what: np.bincount(labels, minlength=n).tolist() for what, labels in counted.items()}


def by_band(runs: list[Run]) -> dict[int, list[Known]]:
    """The results of classes by bands of their number of training rows."""
    bands: dict[int, list[Known]] = {band: [] for band in BANDS}
    for run in runs:
        for rows, tested, hits in zip(run["rows"], run["tested"], run["hits"], strict=True):
            if rows and tested:
                bands[max(band for band in BANDS if band <= rows)].append(Known(rows, hits / tested))
    return {band: known for band, known in bands.items() if known}


def show_bands(runner: Runner, name: str, found: Found) -> None:
    bands = {forest: by_band(runs) for forest, runs in found.items()}
    lines = []
    for band, known in bands[OURS].items():
        following = BANDS[BANDS.index(band) + 1 :]
        words = f"{band:,} to {following[0] - 1:,}" if following else f"{band:,} or more"
        recalls = [f"{fmean(one.recall for one in bands[forest][band]):.3f}" for forest in found]
        lines.append([words, len(known), *recalls])
    title = f"{name}: mean recall of classes by their training rows, {TREES} trees"
    runner.table(title, ["training rows", "measured", *found], lines)


def show_classes(runner: Runner, found: Found) -> None:
    """The rare classes one by one, over all folds, and how far ours is from scikit-learn's."""
    seeds = sorted({run["seed"] for run in found[OURS]})
    hits = {
        forest: np.array([np.sum([r["hits"] for r in runs if r["seed"] == seed], axis=0) for seed in seeds])
        for forest, runs in found.items()
    }
    counts = np.sum([run["tested"] for run in found[OURS] if run["seed"] == seeds[0]], axis=0)
    rare = [k for k in np.argsort(counts, kind="stable") if 2 <= counts[k] < RARE]
    lines = []
    for k in rare:
        apart = (hits[OURS][:, k] - hits[SCIKIT_LEARN][:, k]) / counts[k]
        error = f" ± {apart.std(ddof=1) / np.sqrt(len(seeds)):.3f}" if len(seeds) > 1 else ""
        recalls = [f"{hits[forest][:, k].mean() / counts[k]:.3f}" for forest in found]
        lines.append([k, counts[k], *recalls, f"{apart.mean():+.3f}{error}"])
    means = {forest: hits[forest][:, rare].sum(axis=1).mean() / counts[rare].sum() for forest in found}
    apart_of_all = f"{means[OURS] - means[SCIKIT_LEARN]:+.3f}"
    lines.append(["all", counts[rare].sum(), *(f"{mean:.3f}" for mean in means.values()), apart_of_all])
    title = f"kdd99: recall of each class of fewer than {RARE} rows, {FOLDS} folds, seeds: {len(seeds)}"
    runner.table(title, ["class", "rows", *found, f"{OURS} minus {SCIKIT_LEARN}"], lines)


def draw(found: dict[str, Found]) -> Figure:
    """A panel for each set, a line for each forest: mean recall in each band of training rows."""
    figure = Figure(figsize=(4.4 * len(found), 3.8), layout="constrained")
    panels = figure.subplots(1, len(found), squeeze=False)[0]
    for panel, (name, of_forest) in zip(panels, found.items(), strict=True):
        for forest, runs in of_forest.items():
            bands = by_band(runs).values()
            places = [float(np.exp(fmean(np.log([one.rows for one in known])))) for known in bands]
            recalls = [fmean(one.recall for one in known) for known in bands]
            panel.plot(places, recalls, marker="o", ms=3, label=forest, alpha=0.8)
        panel.set(xscale="log", title=name, xlabel="training rows of a class", ylim=(-0.02, 1.02))
    panels[0].set_ylabel("mean recall")
    panels[0].legend(frameon=False, fontsize=8)
    return figure


if __name__ == "__main__":
    main()
