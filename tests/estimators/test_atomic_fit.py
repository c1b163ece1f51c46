"""Fitting again: a failed fit leaves the estimator unchanged; weights combined with class weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier as ScikitLearn

from helpers import make_data
from oldgrowth import RandomForestClassifier, RandomForestRegressor
from oldgrowth.errors import DataError


@pytest.mark.parametrize("wrong", [{"n_estimators": 0}, {"memory_limit": 1}])
def test_a_failed_fit_leaves_the_forest_as_it_was(wrong: dict[str, Any]) -> None:
    x, y = make_data(300, 5, 3, seed=0)
    model = RandomForestClassifier(4, oob_score=True, random_state=0).fit(x, y)
    before = dict(vars(model))
    for other in (x[:, :2], x):
        with pytest.raises(ValueError):
            model.set_params(**wrong).fit(other, np.arange(len(x)) % 7)
        model.set_params(n_estimators=4, memory_limit="auto")
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is before[name] for name in before if name.endswith("_"))


def test_nothing_of_an_earlier_fit_is_left() -> None:
    x, y = make_data(300, 5, 3, seed=0)
    model = RandomForestClassifier(20, oob_score=True, random_state=0).fit(x, y)
    model.set_params(oob_score=False).fit(x, y)
    assert not hasattr(model, "oob_score_") and not hasattr(model, "oob_decision_function_")


def test_balanced_classes_are_balanced_by_weight() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 2)).astype(np.float32), np.repeat([0, 1], 100)
    weights = np.where(y, 10, 1)
    params = {"class_weight": "balanced", "bootstrap": False, "max_features": None, "max_depth": 1}
    params |= {"n_estimators": 1, "random_state": 0}
    ours = RandomForestClassifier(**params).fit(x, y, weights).predict_proba(x)
    repeated = RandomForestClassifier(**params).fit(np.repeat(x, weights, 0), np.repeat(y, weights))
    np.testing.assert_allclose(ours, repeated.predict_proba(x), atol=1e-6)
    theirs = ScikitLearn(**params).fit(x, y, weights).predict_proba(x)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("weight", [1e-200, 1e100, 1e306])
@pytest.mark.parametrize("forest", [RandomForestClassifier, RandomForestRegressor])
def test_weights_that_doubles_cannot_add_up_are_refused(forest: Any, weight: float) -> None:
    x, y = make_data(100, 3, 2, seed=0)
    with pytest.raises(DataError, match="add up to"):
        forest(2).fit(x, y, np.full(100, weight))


def test_a_bootstrap_may_be_larger_than_the_data() -> None:
    x, y = make_data(2000, 3, 2, seed=0)
    sizes = [
        RandomForestClassifier(10, max_samples=m, random_state=0).fit(x, y).fit_report_.nodes
        for m in (0.5, 1.0, 2.0, 8000)
    ]
    assert sizes == sorted(sizes)
