"""Writes the golden files of a format version: python tests/golden/make.py DIRECTORY

Existing files are never rewritten: a new version of the format gets new files.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import oldgrowth


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    x = np.round(rng.normal(size=(240, 4)), 2).astype(np.float32)
    x[rng.random(x.shape) < 0.05] = np.nan
    return x, rng.integers(0, 3, 240)


def table(x: np.ndarray) -> pd.DataFrame:
    """The rows with two columns of text, of few and of many levels: nodes hold sets in all their forms."""
    few = np.where(np.isnan(x[:, 0]), None, np.where(x[:, 0] < -1, "bas", np.where(x[:, 0] < 0, "été", "Ω")))
    many = [None if np.isnan(value) else f"{value:.1f} m" for value in x[:, 1]]
    return pd.DataFrame({"few": few, "many": many, "x": x[:, 2], "z": x[:, 3]})


def models_with_sets() -> dict[str, Any]:
    """Of version 2."""
    x, y = rows()
    given = {"n_estimators": 4, "random_state": 0, "n_jobs": 1}
    bucketed = given | {"bucket_size": 60, "top_sample": 120, "trees_per_top": 2}
    return {
        "sets": oldgrowth.RandomForestClassifier(**bucketed).fit(table(x), y),
        "random_sets": oldgrowth.ExtraTreesRegressor(**given).fit(table(x), y * 1.5),
    }


def models() -> dict[str, Any]:
    """Of version 1."""
    x, y = rows()
    names = np.array(["forêt", "eau", "sol"])[y]
    values = np.nan_to_num(x[:, 0]) * 3 + y
    two = {"n_estimators": 4, "random_state": 0, "n_jobs": 1}
    bucketed = two | {"bucket_size": 60, "top_sample": 120, "trees_per_top": 2}
    return {
        "numbers": oldgrowth.RandomForestClassifier(**bucketed, max_depth=6).fit(x, y * 10 - 5),
        "texts": oldgrowth.RandomForestClassifier(**bucketed, voting="hard", oob_score=True).fit(x, names),
        "bools": oldgrowth.ExtraTreesClassifier(**two, min_samples_leaf=4).fit(x, y > 0),
        "values": oldgrowth.RandomForestRegressor(**bucketed).fit(x, values),
        "subsets": oldgrowth.SubsetForestRegressor(**two, subset_size=80).fit(x, values),
    }


def main() -> None:
    directory = Path(sys.argv[1])
    x, _ = rows()
    np.save(directory / "rows.npy", x)
    for name, model in models().items():
        write(directory / f"{name}-1.og", model, x)
    for name, model in models_with_sets().items():
        write(directory / f"{name}-2.og", model, table(x))


def write(path: Path, model: Any, x: Any) -> None:
    model.save(path)
    said = model.predict_proba(x) if hasattr(model, "classes_") else model.predict(x)
    labels = model.classes_ if hasattr(model, "classes_") else np.zeros(0)
    np.savez_compressed(
        path.with_suffix(".npz"),
        said=said,
        leaves=model.apply(x),
        labels=labels,
        importances=model.feature_importances_,
    )


if __name__ == "__main__":
    main()
