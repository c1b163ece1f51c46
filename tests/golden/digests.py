"""Forests that must not change: estimators, criteria, weights, missing values, rules, stores, sources.

`python tests/golden/digests.py` rewrites digests.json, which is right only when forests change on purpose.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import oldgrowth

FILE = Path(__file__).parent / "digests.json"
SOURCES = ("float64", "float32", "parquet", "csv", "callable")
CLASSIFIERS = ("RandomForestClassifier", "ExtraTreesClassifier", "SubsetForestClassifier")
REGRESSORS = ("RandomForestRegressor", "ExtraTreesRegressor", "SubsetForestRegressor")


@dataclass(frozen=True)
class Case:
    """An estimator on generated rows; `params` beside four trees and a seed."""

    estimator: str
    rows: int = 1500
    features: int = 7
    classes: int = 3  # 0 for a regression
    kind: str = "mixed"  # of the features
    missing: float = 0.0
    weights: str = ""  # "whole", "real", "zeros"
    labels: str = "numbers"
    source: str = "float64"
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        parts = [self.estimator, f"{self.rows}x{self.features}", f"{self.classes} classes", self.kind]
        parts += [f"missing {self.missing}"] if self.missing else []
        parts += [f"{self.weights} weights"] if self.weights else []
        parts += [self.labels, self.source, *(f"{k}={v}" for k, v in self.params.items())]
        return ", ".join(parts)


def _uniform(shape: tuple[int, ...], key: int) -> np.ndarray:
    """Numbers in [0, 1) that do not depend on a library's generator: splitmix64 of their indices."""
    z = np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z += np.uint64(key * 0xD1342543DE82EF95 % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return ((z >> np.uint64(40)) / 2.0**24).reshape(shape)


def features_of(case: Case) -> np.ndarray:
    x = _uniform((case.rows, case.features), 1) * 4 - 2
    if case.kind == "bytes":
        x = np.floor((x + 2) * 63)
    elif case.kind == "few":
        x = np.floor(x)
    elif case.kind == "mixed":
        x[:, 1::3] = np.floor(x[:, 1::3] * 3)
        x[:, 2::3] = np.floor(x[:, 2::3] * 300) / 8
    elif case.kind == "same":  # half of the rows are alike, one feature is constant
        x[: case.rows // 2] = 1.0
        x[:, -1] = 0.5
    x = x.astype(np.float32).astype(np.float64)
    if case.missing:
        x[_uniform(x.shape, 2) < case.missing] = np.nan
    return x


def targets_of(case: Case, x: np.ndarray) -> np.ndarray:
    known = np.nan_to_num(x)
    signal = known[:, 0] - known[:, -1] / 2 + _uniform((case.rows,), 3) * 2
    if case.classes == 0:
        return np.round(signal, 4)
    low, high = signal.min(), signal.max()
    number = np.minimum((signal - low) / (high - low + 1e-9) * case.classes, case.classes - 1).astype(
        np.int64
    )
    return (
        np.array([f"class {i:04d}" for i in range(case.classes)])[number]
        if case.labels == "texts"
        else number
    )


def weights_of(case: Case) -> np.ndarray | None:
    if not case.weights:
        return None
    drawn = _uniform((case.rows,), 4)
    if case.weights == "whole":
        return 1 + np.floor(drawn * 4)
    return np.where(drawn < 0.2, 0.0, drawn) if case.weights == "zeros" else 0.1 + drawn


def fitted(case: Case, directory: Path) -> Any:
    x, weights = features_of(case), weights_of(case)
    y = targets_of(case, x)
    given = {"n_estimators": 4, "random_state": 7, "n_jobs": 2} | case.params
    if given.get("class_weight") == "dict":
        given["class_weight"] = {label: 1 + i for i, label in enumerate(np.unique(y).tolist())}
    model = getattr(oldgrowth, case.estimator)(**given)
    if case.source in ("float64", "float32", "uint8"):
        return model.fit(x.astype(case.source), y, sample_weight=weights)
    if case.source == "callable":
        step, arrays = 277, (x, y) if weights is None else (x, y, weights)
        parts = [tuple(a[i : i + step] for a in arrays) for i in range(0, case.rows, step)]
        return model.fit(oldgrowth.open_dataset(lambda: iter(parts)))
    columns = {f"f{i}": x[:, i].astype(np.float32) for i in range(case.features)} | {"y": y}
    weight = None
    if weights is not None:
        weight, columns["w"] = "w", weights
    table = pa.table(columns)
    if case.source == "parquet":
        for part in range(3):
            step = -(-case.rows // 3)
            pq.write_table(table.slice(part * step, step), directory / f"{part}.parquet", row_group_size=301)
        source: Any = str(directory / "*.parquet")
    else:
        pyarrow.csv.write_csv(table, directory / "rows.csv")
        source = str(directory / "rows.csv")
    return model.fit(oldgrowth.open_dataset(source, target="y", weight=weight))


def record_of(model: Any) -> dict[str, str]:
    found = {
        "digest": model.forest_.digest()[:20],
        "importances": hashlib.sha256(model.feature_importances_.tobytes()).hexdigest()[:20],
    }
    if hasattr(model, "oob_score_"):
        found["oob_score"] = repr(float(model.oob_score_))
    return found


_BUCKETED = {"bucket_size": 200, "top_sample": 500, "trees_per_top": 2}
_RULES: tuple[dict[str, Any], ...] = (
    {},
    {"max_depth": 5},
    {"min_samples_leaf": 7},
    {"min_samples_split": 0.05},
    {"min_impurity_decrease": 0.002},
    {"min_weight_fraction_leaf": 0.01},
    {"max_features": None},
    {"max_features": 2, "bootstrap": False},
    {"max_samples": 0.4, "oob_score": True},
    {"oob_score": True},
)


def cases() -> list[Case]:
    sources, found = cycle(SOURCES), []

    def add(estimator: str, **given: Any) -> None:
        given.setdefault("classes", 0 if estimator in REGRESSORS else 3)
        given.setdefault("source", next(sources))
        found.append(Case(estimator, **given))

    for estimator in (*CLASSIFIERS, *REGRESSORS):
        subsets = estimator.startswith("Subset")
        for rules in _RULES:
            if rules.get("oob_score") and estimator.startswith("ExtraTrees"):
                rules = rules | {"bootstrap": True}
            shape = {"subset_size": 300} if subsets else _BUCKETED
            add(estimator, params=shape | rules)
        add(estimator, missing=0.1, params={} if subsets else _BUCKETED)
        add(estimator, missing=0.3, kind="few", weights="real")
        add(estimator, weights="whole", params={} if subsets else _BUCKETED | {"oob_score": subsets})
        add(estimator, weights="zeros", kind="bytes", params={} if subsets else _BUCKETED | {"store": "disk"})
    for estimator in ("RandomForestClassifier", "ExtraTreesClassifier"):
        add(estimator, params={"criterion": "entropy"})
        add(estimator, params=_BUCKETED | {"criterion": "log_loss"}, weights="real")
        add(estimator, classes=2, labels="texts", params=_BUCKETED)
        add(estimator, classes=40, labels="texts", rows=1999, params={"criterion": "entropy"})
        add(estimator, classes=300, rows=3000, params=_BUCKETED)
        for weight in ("balanced", "balanced_subsample", "dict"):
            add(estimator, params=_BUCKETED | {"class_weight": weight})
    for estimator in ("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesRegressor"):
        add(estimator, params=_BUCKETED | {"balance": 1.0, "trees_per_top": 4})
        add(estimator, params=_BUCKETED | {"balance": 0.3, "top_max_features": None, "n_estimators": 5})
        add(estimator, kind="same", params=_BUCKETED | {"store": "disk"})
        add(
            estimator,
            kind="bytes",
            source="uint8",
            params=_BUCKETED | {"store": "disk", "oob_score": True, "bootstrap": True},
        )
        add(
            estimator,
            rows=4001,
            params={"bucket_size": 60, "top_sample": 200, "store": "disk", "chunk_size": 333},
        )
        least = "300kB" if estimator == "RandomForestClassifier" else "520kB"  # for several rounds
        add(
            estimator,
            rows=2000,
            params=_BUCKETED | {"spill_limit": least, "store": "disk", "n_estimators": 6},
        )
    for rows, width in ((1, 1), (2, 1), (3, 2), (17, 1), (64, 33), (257, 130), (5000, 1), (1001, 300)):
        add("RandomForestClassifier", rows=rows, features=width, classes=min(2, rows))
        add("RandomForestRegressor", rows=rows, features=width, params={"bucket_size": 50, "top_sample": 100})
    add("RandomForestClassifier", rows=70_001, features=3, params={"n_estimators": 2})
    add("RandomForestRegressor", rows=70_001, features=3, kind="continuous", params={"n_estimators": 2})
    return found


def main() -> None:
    records = {}
    for case in cases():
        with tempfile.TemporaryDirectory() as directory:
            records[case.name] = record_of(fitted(case, Path(directory)))
    assert len(records) == len(cases()), "two cases have one name"
    FILE.write_text(json.dumps(records, indent=1) + "\n")
    print(f"{len(records)} forests in {FILE}")


if __name__ == "__main__":
    main()
