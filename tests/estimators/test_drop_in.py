"""Code written for scikit-learn's forests: parameters, attributes, and what is refused by name."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from sklearn import ensemble
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import oldgrowth
from oldgrowth.errors import NotKeptError, ParameterError

FORESTS = ("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor")
ALL = [*FORESTS, "SubsetForestClassifier", "SubsetForestRegressor"]
# The default that differs, and parts of scikit-learn's forests that are about how they are made.
OTHER_DEFAULTS = {"n_jobs"}
NOT_OURS = {"estimator", "estimator_params"}
NOT_KEPT = {"estimator_", "estimators_samples_"}

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4)).astype(np.float32)
Y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)


@pytest.mark.parametrize("name", FORESTS)
def test_every_parameter_of_scikit_learn_is_there_with_its_default(name: str) -> None:
    theirs = inspect.signature(getattr(ensemble, name)).parameters
    ours = inspect.signature(getattr(oldgrowth, name)).parameters
    assert theirs.keys() <= ours.keys()
    for parameter in theirs.keys() - OTHER_DEFAULTS:
        assert repr(theirs[parameter].default) == repr(ours[parameter].default), parameter


@pytest.mark.parametrize("name", FORESTS)
def test_all_defaults_of_scikit_learn_given_by_name_fit(name: str) -> None:
    given = getattr(ensemble, name)().get_params() | {"n_estimators": 3, "random_state": 0}
    model = clone(getattr(oldgrowth, name)(**given))
    assert given.items() <= model.get_params().items()
    plain = getattr(oldgrowth, name)(3, random_state=0)
    assert model.fit(X, Y).forest_.digest() == plain.fit(X, Y).forest_.digest()


REFUSED = [
    ("max_leaf_nodes", 30, "min_samples_leaf"),
    ("ccp_alpha", 0.01, "min_impurity_decrease"),
    ("ccp_alpha", False, "0.0"),
    ("monotonic_cst", [1, 0, 0, 0], "HistGradientBoosting"),
]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("parameter", "value", "way"), REFUSED)
def test_what_is_not_supported_is_refused_by_fit(name: str, parameter: str, value: Any, way: str) -> None:
    model = clone(getattr(oldgrowth, name)(2, **{parameter: value}))  # as scikit-learn, which checks in fit
    with pytest.raises(ParameterError, match=parameter) as caught:
        model.fit(X, Y)
    assert way in str(caught.value)


@pytest.mark.parametrize("name", [name for name in ALL if name.endswith("Regressor")])
@pytest.mark.parametrize(
    ("criterion", "way"), [("absolute_error", "scikit-learn"), ("friedman_mse", "squared_error finds")]
)
def test_other_criteria_are_refused_with_a_way(name: str, criterion: str, way: str) -> None:
    with pytest.raises(ParameterError, match=way):
        getattr(oldgrowth, name)(2, criterion=criterion).fit(X, Y)


def test_a_search_meets_the_refusal_in_fit() -> None:
    search = GridSearchCV(
        oldgrowth.RandomForestClassifier(2), {"max_leaf_nodes": [None, 5]}, cv=2, error_score="raise"
    )
    with pytest.raises(ParameterError, match="max_leaf_nodes"):
        search.fit(X, Y)
    search.set_params(param_grid={"ccp_alpha": [0, 0.0], "monotonic_cst": [None]}).fit(X, Y)


def test_the_command_line_has_no_options_that_accept_one_value() -> None:
    from oldgrowth.cli.parameters import all_parameters

    names = {parameter.name for parameter in all_parameters()}
    assert "n_estimators" in names
    assert not names & {"max_leaf_nodes", "ccp_alpha", "monotonic_cst", "warm_start"}


@pytest.mark.parametrize("name", FORESTS)
def test_attributes_of_scikit_learn_are_there_or_named(name: str) -> None:
    given = {"n_estimators": 40, "oob_score": True, "bootstrap": True, "random_state": 0}
    theirs = getattr(ensemble, name)(**given).fit(X, Y)
    ours = getattr(oldgrowth, name)(**given).fit(X, Y)
    public = {one for one in (*dir(theirs), *vars(theirs)) if not one.startswith("_")}
    public -= NOT_OURS | ({"class_weight"} if name.endswith("Regressor") else set())
    assert {one for one in public if not hasattr(ours, one)} == NOT_KEPT
    for one in NOT_KEPT:
        with pytest.raises(NotKeptError, match=one):
            getattr(ours, one)
    for one in ("n_outputs_", "n_features_in_", "n_classes_"):
        assert getattr(ours, one, None) == getattr(theirs, one, None)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("given", [{}, {"bucket_size": 40, "trees_per_top": 3}])
def test_single_trees_are_those_of_the_forest(name: str, given: dict[str, Any]) -> None:
    if name.startswith("Subset"):
        given = {}
    model = getattr(oldgrowth, name)(7, random_state=0, max_depth=5, **given).fit(X, Y)
    whole = model.to_sklearn()
    assert len(model) == len(model.estimators_) == 7 and "7 trees" in repr(model.estimators_)
    for ours, theirs in zip(model, whole.estimators_, strict=True):
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_array_equal(model[-1].predict(X), whole[-1].predict(X))
    assert len(model.estimators_[2:5]) == 3
    with pytest.raises(IndexError):
        model.estimators_[7]
    found, columns = model.decision_path(X)
    expected, at = whole.decision_path(X)
    assert (found != expected).nnz == 0 and columns.tolist() == at.tolist()


def test_an_unfitted_forest_has_no_trees() -> None:
    model = oldgrowth.RandomForestClassifier(3)
    for asked in (lambda: len(model), lambda: model.estimators_, lambda: model[0], lambda: model.n_outputs_):
        with pytest.raises(AttributeError, match="not fitted"):
            asked()


def test_several_targets_and_sparse_rows_are_refused() -> None:
    from scipy.sparse import csr_array

    model = oldgrowth.RandomForestRegressor(2)
    with pytest.raises(oldgrowth.errors.DataError, match="one target: fit a forest for each column"):
        model.fit(X, np.c_[Y, Y])
    with pytest.raises((TypeError, ValueError), match=r"(?i)sparse"):
        model.fit(csr_array(X), Y)
