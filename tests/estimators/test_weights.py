"""Weights of rows and of classes."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import make_data
from oldgrowth import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor


def test_weights_are_frequencies() -> None:
    x, y = make_data(200, 5, 3, seed=8)
    weights = np.random.default_rng(0).integers(0, 4, size=200)
    repeated = np.repeat(np.arange(200), weights)
    for kind in (RandomForestClassifier, ExtraTreesClassifier):
        a = kind(6, random_state=0).fit(x, y, sample_weight=weights)
        b = kind(6, random_state=0).fit(x[repeated], y[repeated])
        np.testing.assert_allclose(a.predict_proba(x), b.predict_proba(x), atol=1e-7)


@pytest.mark.parametrize("class_weight", ["balanced", "balanced_subsample", {0: 1.0, 1: 200.0}])
@pytest.mark.parametrize("bucket_size", [200, 100_000])
def test_class_weights_help_a_rare_class(class_weight, bucket_size: int) -> None:
    rng = np.random.default_rng(9)
    x = rng.normal(size=(4000, 4))
    y = (rng.random(4000) < 0.002 + 0.06 * (x[:, 0] > 1)).astype(int)
    limits = {"random_state": 0, "max_depth": 8, "bucket_size": bucket_size}
    plain = RandomForestClassifier(20, **limits).fit(x, y)
    weighted = RandomForestClassifier(20, class_weight=class_weight, **limits).fit(x, y)
    rows = x[:, 0] > 1
    assert weighted.predict_proba(x[rows])[:, 1].mean() > 3 * plain.predict_proba(x[rows])[:, 1].mean()


def test_weights_of_very_different_size() -> None:
    x = np.arange(6.0)[:, None]
    w = [1e9, 1e9, 0.1, 1e9, 1e9, 1e-9]
    model = RandomForestRegressor(1, max_depth=1, bootstrap=False).fit(x, [0, 0, 0, 1, 1, 1], sample_weight=w)
    np.testing.assert_allclose(model.predict(x), [0, 0, 0, 1, 1, 1], atol=1e-6)
    assert np.isfinite(model.feature_importances_).all()


def test_weights_equal_repetitions_for_unseen_missing_values_too() -> None:
    x, y = make_data(1000, 3, 3, seed=7)  # without missing values
    missing = x.copy()
    missing[np.random.default_rng(0).random(x.shape) < 0.3] = np.nan
    model = RandomForestClassifier(10, random_state=0)
    weighted = model.fit(x, y, sample_weight=np.full(1000, 3.0)).predict_proba(missing)
    repeated = model.fit(np.repeat(x, 3, axis=0), np.repeat(y, 3)).predict_proba(missing)
    np.testing.assert_array_equal(weighted, repeated)


@pytest.mark.parametrize("weight", [0.1, 0.99, 1.01, 1.5])
def test_weights_near_one_leave_as_many_rows_out_of_a_bootstrap(weight: float) -> None:
    x, y = make_data(2000, 6, 3, seed=8)
    one = RandomForestClassifier(20, random_state=0).fit(x, y)
    other = RandomForestClassifier(20, random_state=0).fit(x, y, sample_weight=np.full(2000, weight))
    assert other.forest_.n_nodes == pytest.approx(one.forest_.n_nodes, rel=0.03)
