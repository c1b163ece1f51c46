"""Parameters of the estimators with invalid values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from trial import Trial, X, Y

from oldgrowth import ExtraTreesRegressor, RandomForestClassifier, SubsetForestClassifier, errors

STRANGE = (None, "banana", "", -1, float("nan"), [], {}, b"x", 1j, np.array([1, 2]))
# For each parameter the values of these that it cannot have.
REFUSED = {
    "n_estimators": STRANGE,
    "max_depth": [value for value in STRANGE if value is not None],
    "min_samples_split": STRANGE,
    "min_samples_leaf": STRANGE,
    "max_features": [value for value in STRANGE if value is not None],
    "criterion": STRANGE,
    "bootstrap": STRANGE,
    "oob_score": STRANGE,
    "n_jobs": [value for value in STRANGE if value is not None and not isinstance(value, int)],
    "random_state": [value for value in STRANGE if value is not None],
    "verbose": STRANGE,
    "class_weight": [value for value in STRANGE if value is not None and not isinstance(value, dict)],
    "trees_per_top": STRANGE,
    "bucket_size": STRANGE,
    "top_sample": STRANGE,
    "balance": STRANGE,
    "voting": STRANGE,
    "store": STRANGE,
    "memory_limit": STRANGE,
    "spill_limit": STRANGE,
    "chunk_size": STRANGE,
}


def fit(kind, name, value):
    return lambda: kind(**{"n_estimators": 2, "random_state": 0, "n_jobs": 1, name: value}).fit(X, Y)


def refused(name, value, kind=RandomForestClassifier, *words):
    shown = " ".join(repr(value).split())
    return Trial(
        f"{kind.__name__} {name}={shown}",
        fit(kind, name, value),
        error=errors.ParameterError,
        words=(name, *words),
    )


TRIALS = [
    *(refused(name, value) for name, values in REFUSED.items() for value in values),
    *(
        refused(name, value)
        for name in ("spill_dir", "checkpoint_dir")
        for value in (3, "", "a\0b", b"x", [], {})
    ),
    *(refused("criterion", value, ExtraTreesRegressor) for value in ("gini", None, 3)),
    *(refused("subset_size", value, SubsetForestClassifier) for value in ("all", 0, -1, None, [])),
    refused("class_weight", {"wet": 1}, RandomForestClassifier, "0", "1"),
    refused("class_weight", {0: -1, 1: 1}),
    refused("class_weight", {0: float("nan"), 1: 1}),
    Trial("a pathlib spill_dir", fit(RandomForestClassifier, "spill_dir", Path("."))),
    Trial("numpy numbers", fit(RandomForestClassifier, "max_depth", np.int64(3))),
    Trial("a share of features", fit(RandomForestClassifier, "max_features", np.float64(0.5))),
]
TRIALS += [
    Trial(
        f"{name}={value!r} is no size",
        lambda name=name, value=value: RandomForestClassifier(2, **{name: value}).fit(X, Y),
        error=errors.ParameterError,
        words=(name,),
    )
    for name in ("memory_limit", "spill_limit")
    for value in ("0", "0MB", "0.0 GB", 0, 0.0, -1, -0.5, "-1GB")
]
