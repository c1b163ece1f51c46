"""Runs one fit from Parquet files: python big_worker.py PARAMETERS prints a line of JSON.

PARAMETERS is JSON: `train` and `test` (files with a column `label`), `forest` (the name of an estimator of
oldgrowth, or scikit-learn), `fit` (its parameters), and for scikit-learn `limit`, the bytes it may have for
data.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import numpy as np
import numpy.typing as npt

import oldgrowth
from oldgrowth.system.memory import peak_memory

READ_ROWS = 50_000


def main() -> None:
    wanted = json.loads(sys.argv[1])
    fit = scikit_learn if wanted["forest"] == "scikit-learn" else ours
    print("\n" + json.dumps(fit(wanted)), flush=True)


def ours(wanted: dict[str, Any]) -> dict[str, Any]:
    started = time.perf_counter()
    forest = getattr(oldgrowth, wanted["forest"])(**wanted["fit"])
    forest.fit(oldgrowth.open_dataset(wanted["train"], target="label"))
    seconds = time.perf_counter() - started
    report = forest.fit_report_.as_dict()
    del report["rows_by_bucket"]
    measured = {"train_rows": report["rows"], "fit_seconds": seconds, "peak": peak_memory(), "report": report}
    return measured | scored(forest, wanted["test"])


def scikit_learn(wanted: dict[str, Any]) -> dict[str, Any]:
    """The rows go straight to where the forest wants them: it takes no copy of its own."""
    from sklearn.ensemble import RandomForestClassifier

    resource.setrlimit(resource.RLIMIT_DATA, (wanted["limit"], wanted["limit"]))
    started = time.perf_counter()
    data = oldgrowth.open_dataset(wanted["train"], target="label")
    x = np.empty((data.n_rows, data.n_features), dtype=np.float32)
    y = np.empty(data.n_rows, dtype=np.int64)
    for batch in data.batches(READ_ROWS):
        part = slice(batch.first_row, batch.first_row + len(batch.x))
        x[part], y[part] = batch.x, batch.y
    read = time.perf_counter() - started
    forest = RandomForestClassifier(**wanted["fit"]).fit(x, y)
    seconds = time.perf_counter() - started
    measured = {"train_rows": len(x), "fit_seconds": seconds, "read": read, "peak": peak_memory()}
    return measured | scored(forest, wanted["test"])


def scored(forest: Any, test: list[str]) -> dict[str, Any]:
    """The share of test rows whose label is found, and its mean over the classes."""
    rows: npt.NDArray[np.int64] = np.zeros(256, dtype=np.int64)
    hits = rows.copy()
    for batch in oldgrowth.open_dataset(test, target="label").batches(READ_ROWS):
        y = np.asarray(batch.y)
        rows += np.bincount(y, minlength=256)
        hits += np.bincount(y[forest.predict(batch.x) == y], minlength=256)
    there = rows > 0
    recall = hits[there] / rows[there]
    return {
        "test_rows": int(rows.sum()),
        "accuracy": float(hits.sum() / rows.sum()),
        "recall": recall.tolist(),
        "mean_recall": float(recall.mean()),
    }


if __name__ == "__main__":
    main()
