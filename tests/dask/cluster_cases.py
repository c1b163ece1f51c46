"""Fits on a cluster that are compared with those of one machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import oldgrowth
import oldgrowth.dask

ROWS = 6000


def table(seed: int = 0) -> pd.DataFrame:
    """Rows with few and many values, missing ones, equal ones, text labels, values and weights with zeros."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ROWS, 5)).astype(np.float32)
    frame = pd.DataFrame(x, columns=list("abcde"))
    frame["b"] = frame["b"].round(1)
    frame["c"] = rng.integers(0, 200, ROWS).astype(np.uint8)
    frame.loc[rng.random(ROWS) < 0.1, "d"] = np.nan
    frame.loc[ROWS // 2 : ROWS // 2 + 900, "a":"e"] = frame.loc[7, "a":"e"].to_numpy()
    score = frame["a"] + frame["b"] * (frame["c"] / 100 - 1)
    frame["label"] = np.array(["fir", "oak", "yew"])[(score > 0).astype(int) + (frame["e"] > 1)]
    frame["value"] = score + rng.normal(size=ROWS) / 10
    frame["weight"] = rng.integers(0, 4, ROWS) * 0.75
    return frame


@dataclass(frozen=True)
class Case:
    estimator: str = "RandomForestClassifier"
    target: str = "label"
    weight: str | None = None
    params: dict[str, Any] = field(default_factory=dict)

    def made(self, **more: Any) -> Any:
        """For one machine, or with `client` for a cluster."""
        module = oldgrowth.dask if "client" in more else oldgrowth
        sizes: dict[str, Any] = {"n_estimators": 6, "random_state": 3}
        if self.estimator.startswith("Subset"):
            more.pop("store", None)
            sizes |= {"subset_size": 2000}
        else:
            sizes |= {"bucket_size": 400, "top_sample": 500}
        return getattr(module, self.estimator)(**(sizes | self.params | more))

    def opened(self, source: Any) -> Any:
        columns = {"features": list("abcde"), "target": self.target, "weight": self.weight}
        return oldgrowth.open_dataset(source, **columns)

    def fitted(self, source: Any, callback: Any = None, **more: Any) -> Any:
        return self.made(**more).fit(self.opened(source), callback=callback)


CASES = {
    "gini": Case(),
    "oob": Case(params={"oob_score": True}),
    "entropy, weights": Case(weight="weight", params={"criterion": "entropy", "oob_score": True}),
    "balanced": Case(params={"class_weight": "balanced"}),
    "balanced_subsample": Case(weight="weight", params={"class_weight": "balanced_subsample"}),
    "regression": Case("RandomForestRegressor", "value", params={"oob_score": True}),
    "extra trees": Case("ExtraTreesClassifier"),
    "extra trees, values": Case("ExtraTreesRegressor", "value", "weight", {"max_depth": 9}),
    "split again": Case(params={"top_sample": 40, "bucket_size": 150, "oob_score": True}),
    "few rows in a bucket": Case(params={"bucket_size": 30, "top_sample": 2000, "trees_per_top": 3}),
    "one bucket": Case(params={"bucket_size": ROWS, "oob_score": True}),
    "baseline": Case("SubsetForestClassifier"),
    "baseline, values": Case("SubsetForestRegressor", "value", "weight"),
    "depth": Case(params={"max_depth": 2, "oob_score": True}),
}


def parquet(folder: Path, frame: pd.DataFrame, files: int = 3, groups: int = 4) -> str:
    folder.mkdir(exist_ok=True)
    edges = np.linspace(0, len(frame), files + 1).astype(int)
    for i in range(files):
        part = frame[edges[i] : edges[i + 1]]
        part.to_parquet(folder / f"{i}.parquet", row_group_size=max(1, len(part) // groups), index=False)
    frame[:0].to_parquet(folder / "1-empty.parquet", index=False)
    return str(folder)


def csv(folder: Path, frame: pd.DataFrame) -> str:
    folder.mkdir(exist_ok=True)
    edges = [0, 1000, 4500, len(frame)]
    for i in range(3):
        frame[edges[i] : edges[i + 1]].to_csv(folder / f"{i}.csv", index=False)
    return str(folder)


SOURCES: dict[str, Callable[[Path, pd.DataFrame], str]] = {"parquet": parquet, "csv": csv}


def same(one: Any, other: Any) -> None:
    assert one.forest_.digest() == other.forest_.digest()
    np.testing.assert_array_equal(one.feature_importances_, other.feature_importances_)
    if hasattr(one, "oob_score_"):
        assert one.oob_score_ == other.oob_score_
    if hasattr(one, "classes_"):
        assert one.classes_.tolist() == other.classes_.tolist()
