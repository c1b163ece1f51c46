"""Buckets that trees cannot split are streamed: the forest is the same as with buckets loaded whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oldgrowth
from oldgrowth.planning.execution import GrowingRoom
from oldgrowth.storage.bucket_store import BucketStore

N = 3000


def data(weighted: bool) -> dict[str, Any]:
    """Half of the rows are equal except for their targets; some of the others are repeated."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 12, (N, 2)).astype(np.float32)
    x[rng.random(N) < 0.5] = 255
    weights = rng.integers(0, 400, N) / 100 if weighted else None
    return {"X": x, "y": rng.integers(0, 4, N), "sample_weight": weights}


def fitted(kind: str, store: str, tmp_path: Any, weighted: bool, **params: Any) -> Any:
    model = getattr(oldgrowth, kind)(
        n_estimators=6,
        trees_per_top=3,
        bucket_size=200,
        random_state=1,
        store=store,
        spill_dir=tmp_path,
        **params,
    )
    return model.fit(**data(weighted))


CASES: list[tuple[str, bool, dict[str, Any]]] = [
    ("RandomForestClassifier", False, {"oob_score": True}),
    ("RandomForestClassifier", True, {"oob_score": True, "max_depth": 2, "voting": "hard"}),
    (
        "RandomForestClassifier",
        False,
        {"oob_score": True, "max_samples": 1},
    ),  # no row of a bucket is drawn
    ("RandomForestClassifier", True, {"class_weight": "balanced_subsample", "oob_score": True}),
    (
        "RandomForestClassifier",
        False,
        {"class_weight": {0: 0, 1: 2.5, 2: 1, 3: 0.1}, "max_depth": 1, "oob_score": True},
    ),
    ("RandomForestRegressor", True, {"oob_score": True, "max_depth": 3}),
    ("RandomForestRegressor", False, {"oob_score": True}),
    ("ExtraTreesClassifier", True, {"max_depth": 1}),
]


@pytest.mark.filterwarnings("ignore:.*rows were seen by every tree")
@pytest.mark.parametrize("store", ["memory", "disk"])
@pytest.mark.parametrize(("kind", "weighted", "params"), CASES)
def test_a_streamed_leaf_is_the_leaf_of_the_whole_bucket(
    kind: str,
    weighted: bool,
    params: dict[str, Any],
    store: str,
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    is_single_leaf = BucketStore.is_single_leaf

    def noted(self: BucketStore, top: int, bucket: int, rows: int) -> bool:
        asked.append(is_single_leaf(self, top, bucket, rows))
        return asked[-1]

    monkeypatch.setattr(BucketStore, "is_single_leaf", noted)
    streamed = fitted(kind, store, tmp_path, weighted, **params)
    assert any(asked)
    monkeypatch.setattr(GrowingRoom, "most_keys", 20)  # more different rows than can be remembered
    noted_down = fitted(kind, store, tmp_path, weighted, **params)
    monkeypatch.setattr(BucketStore, "is_single_leaf", lambda *_: False)
    whole = fitted(kind, store, tmp_path, weighted, **params)
    for model in (streamed, noted_down):
        assert model.forest_.digest() == whole.forest_.digest()
        np.testing.assert_array_equal(model.feature_importances_, whole.feature_importances_)
        if "oob_score" in params:
            name = "oob_prediction_" if "Regressor" in kind else "oob_decision_function_"
            np.testing.assert_array_equal(getattr(model, name), getattr(whole, name))
    assert not list(tmp_path.iterdir())
