"""Model files: bytes per node, opening a large file, predicting with less memory than its size, a single row.

    python benchmarks/model_file.py --data DIR            a model of 1 GB; some minutes
    python benchmarks/model_file.py --rows 20000 --size 20000000

compare.py measures the speed of prediction against other libraries.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier as ScikitLearn

from datasets import Split, load_or_say
from machine import describe_machine
from oldgrowth import RandomForestClassifier
from oldgrowth.messages.text import human_bytes
from rivals import TREES

HERE = Path(__file__).parent
CALLS = 300
LEAST_LIMIT = 280 * 10**6  # under which a process that predicts cannot go
Figures = dict[str, float]


def main() -> None:
    options = parse()
    console = Console(highlight=False, width=max(Console().width, 120))
    result: dict[str, Any] = {"machine": describe_machine(), "rows": options.rows}
    with tempfile.TemporaryDirectory(prefix="oldgrowth-model-", dir=options.directory) as folder:
        name = "covtype" if options.data is not None else "generated"
        split = load_or_say(name, options.data, options.rows, console)
        if split is not None:
            result[name] = small_model(split, Path(folder))
            show_small(console, name, result[name])
        generated = load_or_say("generated", None, options.rows, console)
        assert generated is not None
        result["large"] = large_model(generated, Path(folder), options.size, options.repeats)
        show_large(console, result["large"])
    options.output.mkdir(parents=True, exist_ok=True)
    written = options.output / ("model_file.json" if options.rows is None else "model_file-small.json")
    written.write_text(json.dumps(result, indent=1) + "\n")
    console.print(f"Written: {written.name} in {options.output}", soft_wrap=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with covtype.parquet; else the generated set")
    parser.add_argument("--rows", type=int, help="training rows of a scaled-down run")
    parser.add_argument("--size", type=int, default=10**9, help="bytes of the large model, at least")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--directory", type=Path, help="for the models, instead of the system's")
    parser.add_argument("--output", type=Path, default=HERE / "results")
    return parser.parse_args()


def small_model(split: Split, folder: Path) -> Figures:
    """Size and latency compared with scikit-learn, with the number of jobs that is fastest for one row."""
    ours = RandomForestClassifier(TREES, n_jobs=-1, random_state=0).fit(split.x_train, split.y_train)
    rival = ScikitLearn(TREES, n_jobs=-1, random_state=0).fit(split.x_train, split.y_train)
    rival.set_params(n_jobs=1)
    ours.save(folder / "small.og")
    rival_nodes = sum(tree.tree_.node_count for tree in rival.estimators_)
    row = split.x_test[:1]
    seconds, rival_seconds = in_turns([lambda: ours.predict(row), lambda: rival.predict(row)])
    return {
        "nodes": ours.forest_.n_nodes,
        "bytes_per_node": (folder / "small.og").stat().st_size / ours.forest_.n_nodes,
        "pickled_bytes_per_node": len(pickle.dumps(ours)) / ours.forest_.n_nodes,
        "rival_bytes_per_node": len(pickle.dumps(rival)) / rival_nodes,
        "row_seconds": seconds,
        "rival_row_seconds": rival_seconds,
    }


def in_turns(calls: list[Callable[[], Any]]) -> list[float]:
    """The median seconds of each."""
    taken: list[list[float]] = [[] for _ in calls]
    for _ in range(CALLS):
        for call, seconds in zip(calls, taken, strict=True):
            started = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - started)
    return [median(seconds) for seconds in taken]


def large_model(split: Split, folder: Path, size: int, repeats: int) -> dict[str, Any]:
    """Fit as many trees as give a model of that size; its processes alternate."""
    path, rows = folder / "large.og", folder / "rows.npy"
    np.save(rows, split.x_test)
    trees = TREES
    model = RandomForestClassifier(trees, n_jobs=-1, random_state=0).fit(split.x_train, split.y_train)
    trees = max(trees, -(-trees * size // model.forest_.nbytes))
    RandomForestClassifier(trees, n_jobs=-1, random_state=0).fit(split.x_train, split.y_train).save(path)
    bytes_ = path.stat().st_size
    common = {"model": str(path), "rows": str(rows)}
    limit = max(bytes_ // 4, LEAST_LIMIT)
    runs: dict[str, list[Figures]] = {"cold": [], "open": [], "whole": [], "limited": []}
    for _ in range(repeats):
        forget(path)
        runs["cold"].append(worker(common | {"what": "open"}))
        runs["open"].append(worker(common | {"what": "open"}))
        runs["whole"].append(worker(common | {"what": "predict", "memory_limit": "auto"}))
        runs["limited"].append(worker(common | {"what": "predict", "memory_limit": limit}))
    assert len({run["sum"] for run in runs["whole"] + runs["limited"]}) == 1, "predictions differ"
    return {"bytes": bytes_, "trees": trees, "rows": len(split.x_test), "limit": limit} | runs


def worker(wanted: dict[str, Any]) -> Figures:
    command = [sys.executable, str(HERE / "model_worker.py"), json.dumps(wanted)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: Figures = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def forget(path: Path) -> None:
    """Drop the file from the system's cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def show_small(console: Console, name: str, figures: Figures) -> None:
    table = Table(title=f"{name}, {TREES} trees, {figures['nodes']:,} nodes of ours", title_justify="left")
    for heading in ("what", "oldgrowth", "scikit-learn", "goal"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    ours, pickled = figures["bytes_per_node"], figures["pickled_bytes_per_node"]
    row, rival_row = figures["row_seconds"] * 1e6, figures["rival_row_seconds"] * 1e6
    table.add_row("file, bytes a node", f"{ours:.2f}", "", "<= 10")
    table.add_row("pickle, bytes a node", f"{pickled:.2f}", f"{figures['rival_bytes_per_node']:.1f}", "")
    table.add_row("one row, median microseconds", f"{row:.0f}", f"{rival_row:.0f}", "")
    table.add_row("one row, times faster", f"{rival_row / row:.1f}x", "", "20x")
    console.print(table)


def show_large(console: Console, large: dict[str, Any]) -> None:
    best = {name: min(run["seconds"] for run in large[name]) for name in ("cold", "open", "whole", "limited")}
    peak = max(run["peak"] for run in large["limited"])
    title = f"{human_bytes(large['bytes'])}, {large['trees']} trees, best of {len(large['open'])}"
    table = Table(title=title, title_justify="left")
    for heading in ("what", "measured", "goal"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    table.add_row("open, predict one row: file in the cache", f"{best['open'] * 1e3:.1f} ms", "< 50 ms")
    table.add_row("open, predict one row: file on disk", f"{best['cold'] * 1e3:.1f} ms", "")
    rate = large["rows"] / best["whole"]
    table.add_row(
        f"predict {large['rows']:,} rows, no limit", f"{best['whole']:.2f} s, {rate:,.0f} rows/s", ""
    )
    rate = large["rows"] / best["limited"]
    limit = f"predict with {human_bytes(large['limit'])}"
    table.add_row(limit, f"{best['limited']:.2f} s, {rate:,.0f} rows/s", "")
    table.add_row("speed with the limit", f"{best['whole'] / best['limited']:.2f}x", ">= 0.5x")
    table.add_row("peak memory with the limit", human_bytes(peak), f"<= {human_bytes(large['limit'])}")
    console.print(table)


if __name__ == "__main__":
    main()
