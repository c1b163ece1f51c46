"""The sweep behind the defaults of bucket_size, balance, top_max_features and top_sample.

On each set, forests with buckets are measured against the ordinary forest (one bucket) with the same seeds.
Every finished run is a line in results/sweep.jsonl and is not repeated; --fresh starts over, which is needed
whenever the growing code has changed. The output is a table per set and the plot of the docs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from datasets import Split, load_or_say
from journal import Journal
from oldgrowth import RandomForestClassifier
from sweep_report import plot, print_table

ROOT = Path(__file__).resolve().parent.parent
SWEPT_SETS = ("covtype", "landsat", "kdd99", "noise", "skewed", "duplicates")
TREES = 24
BUCKET_SIZES = (5_000, 10_000, 30_000, 60_000)
BALANCES = (0.0, 0.0003, 0.003, 0.03, 0.3, 1.0)
QUICK_BUCKET_SIZES = (10_000, 30_000, 60_000)
QUICK_BALANCES = (0.0, 0.0003, 0.3)
# Where the other parameters are varied; top_sample is varied at one balance only.
VARIED_BALANCE = 0.0003
# A class with fewer training rows than this is rare.
RARE = 30

ORDINARY = {"kind": "ordinary"}
SCIKIT_LEARN = {"kind": "scikit-learn"}


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    console = Console(width=max(Console().width, 150))
    path = options.output / "sweep.jsonl"
    journal = Journal(path, options.fresh)
    warm_up()
    swept = {}
    for name in options.sets:
        split = load_or_say(name, options.data, options.rows, console)
        if split is None:
            continue
        configs = configurations(options, name)
        swept[name] = sweep_set(name, split, configs, options.seeds, journal, console)
        print_table(name, split, swept[name], console)
    if not swept:
        console.print("Nothing was swept.")
        return 1
    options.plot.parent.mkdir(parents=True, exist_ok=True)
    plot(swept, options.plot)
    console.print(f"Written: {path} and {options.plot}", soft_wrap=True)
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the files of covtype, landsat and kdd99")
    parser.add_argument("--sets", nargs="+", choices=SWEPT_SETS, default=list(SWEPT_SETS))
    parser.add_argument("--seeds", type=int, default=3, help="forests of each configuration")
    parser.add_argument("--quick", action="store_true", help="fewer configurations")
    parser.add_argument("--rows", type=int, help="training rows of a scaled-down run")
    parser.add_argument("--bucket-sizes", nargs="+", type=int, help="instead of the sweep's own")
    parser.add_argument("--balances", nargs="+", type=float, help="instead of the sweep's own")
    parser.add_argument("--plain", action="store_true", help="leave the other parameters as they are")
    parser.add_argument("--fresh", action="store_true", help="forget the finished runs")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--plot", type=Path, default=ROOT / "docs" / "images" / "sweep.png")
    return parser.parse_args(arguments)


def configurations(options: argparse.Namespace, set_name: str) -> list[dict[str, Any]]:
    """The references, the grid, and the variants at the middle bucket size."""
    sizes = options.bucket_sizes or (QUICK_BUCKET_SIZES if options.quick else BUCKET_SIZES)
    balances = options.balances or (QUICK_BALANCES if options.quick else BALANCES)
    middle = sorted(sizes)[len(sizes) // 2]
    configs = [ORDINARY] + [SCIKIT_LEARN] * (set_name == "kdd99")
    configs += [_buckets(size, balance) for size in sizes for balance in balances]
    if options.plain:
        return configs
    configs += [_buckets(middle, balance, top_max_features=None) for balance in balances]
    configs.append(_buckets(middle, VARIED_BALANCE, top_sample="n"))
    return configs


def _buckets(size: int, balance: float, **changed: Any) -> dict[str, Any]:
    config = {"kind": "buckets", "bucket_size": size, "balance": balance}
    return config | {"top_max_features": "auto", "top_sample": "auto"} | changed


def sweep_set(
    name: str,
    split: Split,
    configs: list[dict[str, Any]],
    seeds: int,
    journal: Journal,
    console: Console,
) -> list[dict[str, Any]]:
    """Every configuration once per seed, seed by seed, so that an interrupted sweep has all of them."""
    results = []
    for seed in range(seeds):
        for config in configs:
            run = {"set": name, "rows": len(split.x_train), "config": config, "seed": seed}
            results.append(run | journal.run(run, partial(measure, split, config, seed)))
            console.print(f"{name} seed {seed} {json.dumps(config)}", highlight=False, soft_wrap=True)
    return results


def measure(split: Split, config: dict[str, Any], seed: int) -> dict[str, Any]:
    forest = make_forest(config, len(split.x_train), seed)
    started = time.perf_counter()
    forest.fit(split.x_train, split.y_train)
    seconds = time.perf_counter() - started
    scores = score(split, forest.predict(split.x_test))
    if config == SCIKIT_LEARN:
        return scores | {"seconds": seconds, "buckets": None}
    report = forest.fit_report_
    if config == ORDINARY and report.top_trees:
        raise RuntimeError("the ordinary forest has top trees: the reference would be wrong")
    return scores | {"seconds": seconds, "buckets": report.buckets / max(1, report.top_trees)}


def warm_up() -> None:
    """Pay for imports and threads before the first measured fit, which is that of the ordinary forest."""
    x = np.random.default_rng(0).standard_normal((500, 8), dtype=np.float32)
    for config in (ORDINARY, SCIKIT_LEARN):
        make_forest(config, len(x), seed=0).fit(x, x[:, 0] > 0)


def make_forest(config: dict[str, Any], n_rows: int, seed: int) -> Any:
    if config == SCIKIT_LEARN:
        from sklearn.ensemble import RandomForestClassifier as ScikitLearnForest

        return ScikitLearnForest(n_estimators=TREES, n_jobs=-1, random_state=seed)
    if config == ORDINARY:
        return RandomForestClassifier(n_estimators=TREES, bucket_size=n_rows, random_state=seed)
    parameters = {name: value for name, value in config.items() if name != "kind"}
    if parameters["top_sample"] == "n":
        parameters["top_sample"] = n_rows
    return RandomForestClassifier(n_estimators=TREES, random_state=seed, **parameters)


def score(split: Split, predicted: np.ndarray) -> dict[str, Any]:
    """Accuracy, mean recall over the classes of the test rows, and over the rare ones among them."""
    n_classes = int(max(split.y_train.max(), split.y_test.max())) + 1
    in_train = np.bincount(split.y_train, minlength=n_classes)
    in_test = np.bincount(split.y_test, minlength=n_classes)
    right = np.bincount(split.y_test[predicted == split.y_test], minlength=n_classes)
    recall = right / np.maximum(in_test, 1)
    # A class without a single training row is nobody's to find.
    rare = (in_test > 0) & (in_train > 0) & (in_train < RARE)
    return {
        "accuracy": float(right.sum() / in_test.sum()),
        "balanced_accuracy": float(recall[in_test > 0].mean()),
        "rare_recall": float(recall[rare].mean()) if rare.any() else None,
        "rare_classes": int(rare.sum()),
    }


if __name__ == "__main__":
    sys.exit(main())
