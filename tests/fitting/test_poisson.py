"""The Poisson criterion: scikit-learn's trees, brute force, and many zeros under top trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import xlogy
from sklearn.tree import DecisionTreeRegressor

import oldgrowth
from helpers import Inner, decode, goes_left
from oldgrowth import ExtraTreesRegressor, RandomForestRegressor, SubsetForestRegressor
from oldgrowth.errors import DataError

WHOLE: dict[str, Any] = {"criterion": "poisson", "bootstrap": False, "max_features": None, "random_state": 0}


def rows(seed: int, n: int = 1500, rate: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 5)).astype(np.float32)
    return x, rng.poisson(np.exp(x[:, 0] - 0.5 * x[:, 1] * x[:, 2] + rate)).astype(float)


def deviance(y: np.ndarray, guess: np.ndarray, weights: np.ndarray) -> float:
    return float((weights * (xlogy(y, y / guess) - y + guess)).sum())


@pytest.mark.parametrize("scale", [1.0, 1e7, 3e-9])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_tree_has_the_deviance_of_sklearns_at_every_depth(seed: int, weighted: bool, scale: float) -> None:
    x, y = rows(seed, rate=-seed)
    y *= scale
    weights = np.random.default_rng(seed).choice([0.5, 1, 3.7], len(x)) if weighted else np.ones(len(x))
    # Ties between equal gains are broken differently; nodes of a few rows have many of them.
    limits = {"criterion": "poisson", "min_samples_leaf": 40, "random_state": 0}
    for depth in (1, 2, 3, 5, 8, None):
        ours = RandomForestRegressor(1, bootstrap=False, max_features=None, max_depth=depth, **limits)
        theirs = DecisionTreeRegressor(max_depth=depth, **limits).fit(x, y, weights)
        found = deviance(y, ours.fit(x, y, weights).predict(x), weights)
        assert found == pytest.approx(deviance(y, theirs.predict(x), weights), rel=1e-9)
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, atol=0.005)


def test_a_fully_grown_tree_has_it_too() -> None:
    x, _ = rows(3)
    y = np.random.default_rng(3).gamma(1, np.exp(x[:, 0]))  # no ties
    for depth in (4, 9, 14, None):
        ours = RandomForestRegressor(1, max_depth=depth, **WHOLE).fit(x, y).predict(x)
        theirs = DecisionTreeRegressor(criterion="poisson", max_depth=depth).fit(x, y).predict(x)
        one = np.ones(len(y))
        assert deviance(y, ours, one) == pytest.approx(deviance(y, theirs, one), rel=1e-9, abs=1e-9)


def own(y: np.ndarray, w: np.ndarray) -> float:
    return float((w * xlogy(y, y / np.average(y, weights=w))).sum()) if (w * y).sum() > 0 else 0.0


@given(data=st.data())
def test_a_stump_is_the_best_split_without_a_side_of_zeros(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 25))
    x = data.draw(arrays(np.float32, (n, 2), elements=st.sampled_from([0.0, 1.0, 2.0, 3.0, np.nan])))
    y = data.draw(arrays(np.float64, n, elements=st.sampled_from([0.0, 0.0, 0.1, 1.0, 5.0])))
    w = data.draw(arrays(np.float64, n, elements=st.sampled_from([0.1, 1.0, 2.0])))
    y[0] = 1.0
    model = RandomForestRegressor(1, max_depth=1, **WHOLE)
    root = decode(model.fit(x, y, w).forest_)
    best = -np.inf
    for column in x.T:
        for cut in [*np.unique(column[~np.isnan(column)]), np.inf]:
            for side in (False, True):
                left = np.where(np.isnan(column), side, column <= cut)
                if y[left].any() and y[~left].any():
                    best = max(best, own(y, w) - own(y[left], w[left]) - own(y[~left], w[~left]))
    if not isinstance(root, Inner):
        assert best == -np.inf or len(np.unique(y)) == 1
        return
    left = goes_left(root, x)
    assert y[left].any() and y[~left].any()
    found = own(y, w) - own(y[left], w[left]) - own(y[~left], w[~left])
    assert found == pytest.approx(best, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
@pytest.mark.parametrize("rate", [0.0, -7.0])
def test_top_trees_split_rows_that_are_nearly_all_zero(kind: Any, rate: float) -> None:
    x, y = rows(4, 4000, rate)
    given = {"criterion": "poisson", "bucket_size": 100, "trees_per_top": 2, "random_state": 0}
    for balance in (0, 0.3, 1):
        model = kind(4, balance=balance, **given).fit(x, y)
        assert model.fit_report_.bucket_rows["100%"] <= 100
        assert model.predict(x).min() >= 0


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor, SubsetForestRegressor])
def test_disk_weights_and_out_of_bag_give_the_same_forest(kind: Any, tmp_path: Any) -> None:
    x, y = rows(5)
    weights = np.random.default_rng(5).integers(0, 4, len(y)).astype(float)
    given = {"criterion": "poisson", "bootstrap": True, "oob_score": True, "random_state": 0}
    given["n_estimators"] = 8
    if kind is not SubsetForestRegressor:
        given["bucket_size"] = 200
    model = kind(**given).fit(x, y, weights)
    assert 0.1 < model.oob_score_ < 1
    there = {} if kind is SubsetForestRegressor else {"store": "disk"}
    again = kind(**given, n_jobs=1, chunk_size=100, spill_dir=tmp_path, **there).fit(x, y, weights)
    assert again.forest_.digest() == model.forest_.digest() and again.oob_score_ == model.oob_score_
    model.save(tmp_path / "a.og")
    np.testing.assert_array_equal(oldgrowth.load(tmp_path / "a.og").predict(x), model.predict(x))
    np.testing.assert_array_equal(model.to_sklearn().predict(x), model.predict(x))


def test_min_impurity_decrease_has_the_unit_of_scikit_learns() -> None:
    x, y = rows(6)
    for least in (0.3, 0.05, 0.01):
        limits = {"criterion": "poisson", "min_impurity_decrease": least * 1e3}
        theirs = DecisionTreeRegressor(**limits).fit(x, 1e3 * y)
        ours = RandomForestRegressor(1, bootstrap=False, max_features=None, **limits).fit(x, 1e3 * y)
        assert len(ours.forest_.nodes) == theirs.tree_.node_count


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor, SubsetForestRegressor])
def test_values_without_a_deviance_are_refused(kind: Any) -> None:
    x, y = rows(7, 50)
    with pytest.raises(DataError, match=r"negative values, down to -3.*squared_error"):
        kind(2, criterion="poisson").fit(x, y - 3 * (np.arange(50) == 7) - y * (np.arange(50) == 7))
    with pytest.raises(DataError, match="All values of y are zero"):
        kind(2, criterion="poisson").fit(x, 0 * y)
