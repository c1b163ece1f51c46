"""Compares categories with codes and with other libraries: compare.py --sets tables --data DIR.

Tables with text columns as they are: flights (late by over 15 minutes), adult, and KDD99 with its three
columns of text. Each measurement has its own process, and models alternate.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from machine import describe_machine
from table_goals import verdicts
from table_models import MODELS, TREES, left_out

Run = Callable[[list[str]], dict[str, Any]]
COLUMNS = (
    "model", "fit s", "predict s", "fit ratio", "predict ratio", "AUC", "accuracy", "rare recall",
)  # fmt: skip
SCORES = ("auc", "accuracy", "rare_recall")
WORKER = Path(__file__).with_name("table_worker.py")
LATE = 15  # minutes


def flights(data: Path, rows: int | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two columns of some 230 airports each; a fifth of the rows, drawn at random, is for tests."""
    frame = pd.read_parquet(data / "flights_2001_q1.parquet")
    frame["label"] = (frame.pop("delay") > LATE).astype(int)
    return _drawn(frame, rows)


def adult(data: Path, rows: int | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Eight columns of up to 42 levels; train and test as given."""
    train, test = (pd.read_csv(data / f"adult_{part}.csv") for part in ("train", "test"))
    for frame in (train, test):
        frame["label"] = (frame.pop("income") == ">50K").astype(int)
    return train[:rows], test


def kdd99(data: Path, rows: int | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Three columns of up to 66 levels, 23 classes, the rarest of two rows."""
    frame = pd.read_parquet(data / "kdd99_10pct_train.parquet")
    maps = json.loads((data / "kdd99_maps.json").read_text())
    for name in ("protocol_type", "service", "flag"):
        frame[name] = np.array(maps[name], dtype=object)[frame[name].to_numpy(dtype=int)]
    frame["label"] = np.unique(frame["label"], return_inverse=True)[1]
    return _drawn(frame, rows)


def _drawn(frame: pd.DataFrame, rows: int | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    order = np.random.default_rng(0).permutation(len(frame))
    cut = len(frame) * 4 // 5
    return frame.iloc[order[:cut][:rows]], frame.iloc[order[cut:]]


SETS = {
    "flights": (flights, "flights_2001_q1.parquet"),
    "adult": (adult, "adult_train.csv"),
    "kdd99": (kdd99, "kdd99_maps.json"),
}


def compare_tables(options: argparse.Namespace, console: Console, run: Run) -> int:
    """All sets that are there, all models that are installed; `run` runs a worker with these arguments."""
    names = [name for name in SETS if options.data is not None and (options.data / SETS[name][1]).is_file()]
    for name in SETS.keys() - set(names):
        console.print(f"{name} is skipped: it needs --data DIR with {SETS[name][1]} in it.")
    models = [name for name in MODELS if not left_out(name, partial(console.print, highlight=False))]
    measured: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="oldgrowth-tables-") as folder:
        for name in names:
            for part, frame in zip(("train", "test"), SETS[name][0](options.data, options.rows), strict=True):
                frame.reset_index(drop=True).to_parquet(Path(folder, f"{name}-{part}.parquet"))
        for repeat in range(options.repeats):
            for name in names:
                for model in models:
                    arguments = [sys.executable, str(WORKER), model, str(Path(folder, name)), str(repeat)]
                    found = {"set": name, "model": model, "repeat": repeat} | run(arguments)
                    measured.append(found)
                    console.print(_line(found), highlight=False, soft_wrap=True)
    result = {"machine": describe_machine(), "trees": TREES, "rows": options.rows, "measurements": measured}
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "tables.json").write_text(json.dumps(result, indent=1) + "\n")
    for name in names:
        of_set = [m for m in measured if m["set"] == name]
        console.print(table_of(name, of_set))
        for line in verdicts(name, of_set):
            console.print(line, highlight=False, soft_wrap=True)
    return int(not measured or any("error" in m for m in measured))


def _line(found: dict[str, Any]) -> str:
    head = f"repeat {found['repeat']}  {found['set']:<8} {found['model']:<34}"
    if "error" in found:
        return f"{head} failed: {found['error']}"
    scores = "  ".join(f"{name} {found[name]:.4f}" for name in SCORES if found[name] is not None)
    return f"{head} fit {found['fit_seconds']:7.2f} s  predict {found['predict_seconds']:6.2f} s  {scores}"


def table_of(name: str, measured: list[dict[str, Any]]) -> Table:
    """The best times and mean scores of the models on a set; times also as multiples of ours."""
    shown = Table(title=f"{name}, {TREES} fully grown trees", title_justify="left")
    for column in COLUMNS:
        shown.add_column(column, justify="left" if column == "model" else "right", no_wrap=True)
    good = [m for m in measured if "error" not in m]
    best = {
        model: [min(m[f"{what}_seconds"] for m in good if m["model"] == model) for what in ("fit", "predict")]
        for model in dict.fromkeys(m["model"] for m in good)
    }
    for model, times in best.items():
        ours = best.get(MODELS[model].against)
        ratios = ["-", "-"] if ours is None else [f"{a / b:.2f}x" for a, b in zip(times, ours, strict=True)]
        means = []
        for score in SCORES:
            values = [m[score] for m in good if m["model"] == model and m[score] is not None]
            means.append(f"{fmean(values):.4f}" if values else "-")
        shown.add_row(model, *(f"{seconds:.2f}" for seconds in times), *ratios, *means)
    return shown
