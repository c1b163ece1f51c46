"""Fits that cover every path of the disk store, each small enough to be killed and resumed many times."""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

sys.path.insert(0, str(Path(__file__).parents[1]))
import oldgrowth
import oldgrowth.estimators.forests  # here once, rather than in the process of each fit
import oldgrowth.fitting.levels
import oldgrowth.fitting.sample
import oldgrowth.planning.execution
import oldgrowth.storage.disk_store
import oldgrowth.storage.task_log
from helpers import make_data
from oldgrowth import raster
from raster.rasters import smooth_scene, write_raster

# Top trees on a tenth of the rows they need: buckets come out too large and are split again.
SPLIT = {"trees_per_top": 4, "bucket_size": 150, "top_sample": 40}
COMMON: dict[str, Any] = {"random_state": 3, "n_jobs": 2, "chunk_size": 100}
ROWS = 4000


def remember_often() -> None:
    """Small groups and blocks, and a memory of each step rather than one every few seconds."""
    oldgrowth.planning.execution._LARGEST_GROUP = 100_000
    oldgrowth.storage.top_file._WRITE_BYTES = 10_000
    oldgrowth.fitting.sample._SAVE_EVERY_SECONDS = 0.02
    oldgrowth.fitting.levels._SAVE_EVERY_SECONDS = 0.002
    oldgrowth.storage.task_log._SYNC_EVERY_SECONDS = 0.05


def quick_directory() -> str | None:
    """Memory, where syncing costs nothing."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def write_files(folder: Path) -> None:
    """The rows as files; the same ones for every child."""
    x, y = make_data(ROWS, 8, 3, seed=5)
    _, value = make_data(ROWS, 8, 0, seed=5)
    weights = np.round(np.random.default_rng(1).exponential(size=ROWS), 2)
    weights[::17] = 0
    columns = {f"f{i}": x[:, i] for i in range(8)}
    names = np.array(["ash", "birch", "cedar"])[y]
    table = pa.table({**columns, "label": names, "value": value, "w": weights})
    pq.write_table(table, folder / "rows.parquet", row_group_size=700)
    csv.write_csv(table, folder / "rows.csv")
    np.savez(folder / "rows.npz", x=x, y=y, value=value, w=weights)
    _write_text(folder, table)
    bands, labels = smooth_scene(3, 60, 70), smooth_scene(1, 60, 70, seed=1) // 64
    bands[:, ::9, ::5] = 0
    write_raster(folder / "bands.tif", bands, nodata=0)
    write_raster(folder / "labels.tif", labels, nodata=0)


def _write_text(folder: Path, table: pa.Table) -> None:
    """Some features as text: of few levels, of more than a node has bits for, and with missing values."""
    x = np.stack([table[f"f{i}"].to_numpy() for i in range(3)])
    few, many = (np.floor((x[:2].T + 4) * (1, 20)).astype(int) * 7 % (8, 150)).T
    towns = pa.array([f"town {i}" for i in few], mask=x[2] > 1)
    streets = pa.array([f"street {i}" for i in many]).dictionary_encode()
    table = table.set_column(0, "f0", towns).set_column(1, "f1", streets)
    pq.write_table(table, folder / "text.parquet", row_group_size=300)
    csv.write_csv(table.set_column(1, "f1", streets.cast(pa.string())), folder / "text.csv")


def _arrays(folder: Path) -> dict[str, np.ndarray]:
    with np.load(folder / "rows.npz") as found:
        return dict(found)


def labels_in_a_file(folder: Path, **params: Any) -> Any:
    """Text labels, out of bag, weighted classes."""
    data = oldgrowth.open_dataset(
        folder / "rows.parquet", target="label", features=[f"f{i}" for i in range(8)]
    )
    options = COMMON | SPLIT | {"class_weight": "balanced_subsample", "oob_score": True} | params
    return oldgrowth.RandomForestClassifier(10, **options).fit(data)


def weighted_values_in_a_file(folder: Path, **params: Any) -> Any:
    data = oldgrowth.open_dataset(folder / "rows.parquet", "value", [f"f{i}" for i in range(8)], "w")
    return oldgrowth.RandomForestRegressor(9, **(COMMON | SPLIT | {"oob_score": True} | params)).fit(data)


def labels_in_arrays_in_rounds(folder: Path, **params: Any) -> Any:
    """Three rounds: the disk may hold the votes of all trees and the buckets of one top tree."""
    rows = _arrays(folder)
    options = COMMON | SPLIT | {"spill_limit": "1.2MB", "oob_score": True} | params
    return oldgrowth.RandomForestClassifier(10, **options).fit(rows["x"], rows["y"], rows["w"])


def values_in_arrays(folder: Path, **params: Any) -> Any:
    rows = _arrays(folder)
    options = COMMON | {"bucket_size": 300} | params
    return oldgrowth.ExtraTreesRegressor(12, **options).fit(rows["x"], rows["value"])


def one_bucket(folder: Path, **params: Any) -> Any:
    """No top trees at all."""
    rows = _arrays(folder)
    return oldgrowth.RandomForestClassifier(20, **(COMMON | {"oob_score": True} | params)).fit(
        rows["x"], rows["y"]
    )


def subsets(folder: Path, **params: Any) -> Any:
    rows = _arrays(folder)
    return oldgrowth.SubsetForestClassifier(40, subset_size=800, **(COMMON | params)).fit(
        rows["x"], rows["y"]
    )


def weighted_labels_in_csv(folder: Path, **params: Any) -> Any:
    """The number of rows is not known before they are read."""
    data = oldgrowth.open_dataset(folder / "rows.csv", "label", [f"f{i}" for i in range(8)], "w")
    return oldgrowth.ExtraTreesClassifier(8, **(COMMON | SPLIT | params)).fit(data)


def many_top_trees(folder: Path, **params: Any) -> Any:
    data = oldgrowth.open_dataset(folder / "rows.parquet", "value", [f"f{i}" for i in range(8)])
    options = COMMON | {"bucket_size": 1000, "trees_per_top": 1, "max_depth": 4, "oob_score": True} | params
    return oldgrowth.RandomForestRegressor(40, **options).fit(data)


def gathered_pixels(folder: Path, **params: Any) -> Any:
    """Row numbers on disk, the image in memory; out of bag."""
    data = raster.open_scene(folder / "bands.tif", patch=3).with_labels(folder / "labels.tif")
    options = COMMON | SPLIT | {"store": "gather", "oob_score": True} | params
    return oldgrowth.RandomForestClassifier(10, **options).fit(data)


def text_columns(folder: Path, **params: Any) -> Any:
    """Levels are learned in a stage of their own; out of bag."""
    data = oldgrowth.open_dataset(folder / "text.parquet", "label", [f"f{i}" for i in range(8)])
    return oldgrowth.RandomForestClassifier(8, **(COMMON | SPLIT | {"oob_score": True} | params)).fit(data)


def values_by_text_columns_in_csv(folder: Path, **params: Any) -> Any:
    data = oldgrowth.open_dataset(folder / "text.csv", "value", [f"f{i}" for i in range(4)], "w")
    return oldgrowth.ExtraTreesRegressor(8, **(COMMON | {"bucket_size": 500} | params)).fit(data)


CASES: dict[str, Callable[..., Any]] = {
    case.__name__: case
    for case in (
        labels_in_a_file, weighted_values_in_a_file, labels_in_arrays_in_rounds, values_in_arrays, one_bucket,
        subsets, weighted_labels_in_csv, many_top_trees, gathered_pixels, text_columns,
        values_by_text_columns_in_csv,
    )
}  # fmt: skip


def outcome(model: Any) -> str:
    """Every bit of the model, with what was found out of bag."""
    score = getattr(model, "oob_score_", 0.0)
    return f"{model.forest_.digest()} {float(score).hex()} {model.feature_importances_.sum().hex()}"


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The arguments of a script, with which cases it goes through and its seed, which is printed."""
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    return options


def verdict(torture: Any, interruptions: str) -> int:
    """Print how many interrupted fits ended as they should; the exit code of the script."""
    trials, same = torture.trials, torture.trials - torture.bad
    print(f"{torture.killed} {interruptions} in {trials} fits: {same} of {trials} ended in the same model")
    return 1 if torture.bad else 0
