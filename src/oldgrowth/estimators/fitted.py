"""The forest in a fitted scikit-learn model, such as a Pipeline, and the names of its features, for plots."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from ..errors import DataError
from ..messages.text import printable
from .classifier import Classifier
from .regressor import Regressor


def forest_in(model: Any) -> Any:
    """The fitted forest that a model is, or that is the last step of a Pipeline, GridSearchCV or similar."""
    *_, last = _layers(model)
    if not isinstance(last, Classifier | Regressor):
        inside = "" if last is model else f" that ends in a {type(last).__name__}"
        raise DataError(
            f"A {type(model).__name__}{inside} cannot be drawn: give a forest of oldgrowth, or a Pipeline or "
            "search such as GridSearchCV (with refit=True) that ends in one."
        )
    check_is_fitted(last, "forest_")
    return last


def _layers(model: Any) -> list[Any]:
    """A model, the model that is its last step, and so on."""
    layers = [model]
    while True:
        model = layers[-1]
        if getattr(model, "steps", None):  # a pipeline
            layers.append(model.steps[-1][1])
        elif hasattr(model, "best_estimator_"):  # a finished search
            layers.append(model.best_estimator_)
        elif hasattr(model, "param_grid") or hasattr(model, "param_distributions"):
            check_is_fitted(model)
            return layers
        else:
            return layers


def feature_names(model: Any) -> list[str]:
    """The feature names of the forest in a model, as matplotlib can draw them."""
    forest = forest_in(model)
    names = getattr(forest, "feature_names_in_", None)
    for layer in _layers(model):
        if names is None and len(getattr(layer, "steps", ())) > 1:
            names = _names_out(layer[:-1])
    if names is None or len(names) != forest.n_features_in_:
        return [f"column {i}" for i in range(forest.n_features_in_)]
    return [drawable(name) for name in names]


def _names_out(steps: Any) -> Any:
    """The column names after the steps before a forest; None if a step does not give them."""
    try:
        return steps.get_feature_names_out()
    except (AttributeError, TypeError, ValueError):
        return None


def drawable(name: Any) -> str:
    """A name that matplotlib can draw: without control characters, with dollars that are not formulas."""
    return printable(name).replace("$", r"\$")
