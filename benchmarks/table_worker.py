"""Runs one measurement on a table: python table_worker.py MODEL PREFIX SEED prints one line of JSON.

PREFIX-train.parquet and PREFIX-test.parquet are the rows, with their class in `label`.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from table_models import MODELS

RARE_ROWS = 100  # training rows of a class below which it is rare


def main() -> None:
    name, prefix, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
    train, test = (pd.read_parquet(f"{prefix}-{part}.parquet") for part in ("train", "test"))
    y_train, y_test = (frame.pop("label").to_numpy() for frame in (train, test))
    model = MODELS[name].make()
    small = [frame.iloc[:200] for frame in (train, test)]
    model.fit(model.encode(*small)[0], np.arange(200) % 2, 0)  # imports and threads are not measured
    model = MODELS[name].make()
    x_train, x_test = model.encode(train, test)
    started = time.perf_counter()
    model.fit(x_train, y_train, seed)
    fitted = time.perf_counter()
    shares = model.predict(x_test)
    predicted = time.perf_counter()
    times = {"fit_seconds": fitted - started, "predict_seconds": predicted - fitted}
    print("\n" + json.dumps(times | scores(shares, y_train, y_test)), flush=True)


def scores(shares: np.ndarray, y_train: np.ndarray, y_test: np.ndarray) -> dict[str, float | None]:
    """AUC of two classes, accuracy, and the mean recall of the rare classes that the tests have."""
    classes, counts = np.unique(y_train, return_counts=True)
    found = classes[shares.argmax(axis=1)]
    rare = [c for c in classes[counts < RARE_ROWS] if (y_test == c).any()]
    recalls = [float((found[y_test == c] == c).mean()) for c in rare]
    auc = roc_auc_score(y_test, shares[:, 1]) if len(classes) == 2 else None
    accuracy = float((found == y_test).mean())
    return {"auc": auc, "accuracy": accuracy, "rare_recall": float(np.mean(recalls)) if rare else None}


if __name__ == "__main__":
    main()
