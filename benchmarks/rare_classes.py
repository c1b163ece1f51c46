"""Whether the rarest classes of KDD99 are found as well as by scikit-learn's forest.

Every class is dealt out to four folds; each fold is predicted by forests grown on the others, with several
seeds. Out comes a table with the recall of each class of fewer than 30 rows. Finished runs are lines in
results/rare_classes.jsonl and are not run again, unless --fresh is given.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from datasets import FloatArray, LabelArray, load_or_say
from journal import Journal
from sweep import ORDINARY, RARE, SCIKIT_LEARN, TREES, make_forest

FOLDS = 4
OURS: dict[str, Any] = {"kind": "buckets", "top_sample": "auto"}  # with the defaults
FORESTS = {"oldgrowth": OURS, "one bucket": ORDINARY, "scikit-learn": SCIKIT_LEARN}


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    console = Console(width=max(Console().width, 100))
    split = load_or_say("kdd99", options.data, options.rows, console)
    if split is None:
        return 1
    x, y = np.concatenate([split.x_train, split.x_test]), np.concatenate([split.y_train, split.y_test])
    journal = Journal(options.output / "rare_classes.jsonl", options.fresh)
    counts = np.bincount(y)
    rare = np.flatnonzero((counts >= 2) & (counts < RARE))
    hits = {name: np.zeros((options.seeds, len(rare))) for name in FORESTS}
    for seed in range(options.seeds):
        folds = deal(y, seed)
        for fold in range(FOLDS):
            for name, config in FORESTS.items():
                run = {"rows": len(x), "trees": TREES, "forest": name, "seed": seed, "fold": fold}
                found = journal.run(run, partial(find, x, y, folds == fold, rare, config, seed))
                hits[name][seed] += found["hits"]
                console.print(f"seed {seed} fold {fold} {name}", highlight=False)
    print_table(rare, counts, hits, console)
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with kdd99_10pct_train.parquet")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--rows", type=int, help="training rows of a scaled-down run")
    parser.add_argument("--fresh", action="store_true", help="forget the finished runs")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


def deal(y: LabelArray, seed: int) -> npt.NDArray[np.int64]:
    """The fold of each row: every class in turn, so that one of two rows is always left to learn from."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    folds = np.empty(len(y), dtype=np.int64)
    folds[order] = (np.arange(len(y)) + rng.integers(FOLDS)) % FOLDS
    return folds


def find(
    x: FloatArray,
    y: LabelArray,
    tested: npt.NDArray[np.bool_],
    rare: npt.NDArray[np.int64],
    config: dict[str, Any],
    seed: int,
) -> dict[str, Any]:
    forest = make_forest(config, len(x), seed).fit(x[~tested], y[~tested])
    wanted = tested & np.isin(y, rare)
    right = y[wanted] == forest.predict(x[wanted])
    return {"hits": [int(right[y[wanted] == k].sum()) for k in rare]}


def print_table(
    rare: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    hits: dict[str, npt.NDArray[np.float64]],
    console: Console,
) -> None:
    seeds = len(hits["oldgrowth"])
    table = Table(
        title=f"KDD99, recall by class, {TREES} trees, {seeds} seeds x {FOLDS} folds", title_justify="left"
    )
    for column in ("class", "rows", *hits, "minus scikit-learn", "std of the mean"):
        table.add_column(column, justify="right")
    for i in np.argsort(counts[rare], kind="stable"):
        recall = {name: found[:, i] / counts[rare[i]] for name, found in hits.items()}
        apart = recall["oldgrowth"] - recall["scikit-learn"]
        error = apart.std(ddof=1) / np.sqrt(seeds) if seeds > 1 else np.nan
        cells = [f"{value.mean():.3f}" for value in recall.values()]
        table.add_row(str(rare[i]), str(counts[rare[i]]), *cells, f"{apart.mean():+.3f}", f"{error:.3f}")
    found = {name: all_hits.sum() / (seeds * counts[rare].sum()) for name, all_hits in hits.items()}
    cells = [f"{value:.3f}" for value in found.values()]
    difference = found["oldgrowth"] - found["scikit-learn"]
    table.add_row("all", str(counts[rare].sum()), *cells, f"{difference:+.3f}", "")
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
