"""Several fitted forests over the same features as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..checks import hard_votes
from ..errors import MergeError
from ..messages.log import warn
from ..messages.warnings import SameForestWarning
from ..reporting.report import merged_report
from ..system.resource_limits import clear_limits
from . import forests
from .classifier import Classifier
from .joining import assembled, check_features, union_of
from .regressor import Regressor


def merge(estimators: Sequence[Classifier | Regressor]) -> Any:
    """Make one forest of all trees of several fitted ones, which saw the same features.

    Their seeds, rows and machines may differ, and a class, or a level of a categorical feature, may be
    unknown to some of them: a level that a forest does not know goes where missing values go in its nodes.
    The result predicts the mean of what they predict, weighted by their numbers of trees. Its parameters are
    those of the first, with `n_estimators` for all; `feature_importances_` is a mean with the same weights;
    `fit_report_` adds up the stages. It has no `oob_score_`: what is out of bag for one forest may be a
    training row of another.

    Parameters
    ----------
    estimators : sequence of fitted forests
        Of one class, with the same number, names and recipe of features, and the same `voting`.

    Returns
    -------
    fitted forest
        In memory; or in an unnamed file in `spill_dir` of the first if a forest is mapped from a file, or if
        they exceed `memory_limit` together.

    Examples
    --------
    >>> import oldgrowth
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> parts = [oldgrowth.RandomForestClassifier(8, random_state=seed).fit(X, y) for seed in range(3)]
    >>> len(oldgrowth.merge(parts))
    24
    """
    with clear_limits:
        merged = unassembled(estimators)
        merged.forest_ = assembled(merged.forest_, estimators, merged)
        return merged


def unassembled(estimators: Sequence[Any]) -> Any:
    """The merged estimator; its `forest_` gives the arrays of a forest part by part."""
    estimators = _checked(estimators)
    first = estimators[0]
    cls = getattr(forests, _kind(first))
    known = set(cls._get_param_names())
    params = {name: value for name, value in first.get_params(deep=False).items() if name in known}
    trees = [estimator.forest_.n_trees for estimator in estimators]
    merged = cls(**params | {"n_estimators": sum(trees)})
    union = union_of(estimators)
    merged.forest_, merged._levels = union.forest, union.levels
    if union.classes is not None:
        merged.classes_, merged.n_classes_ = union.classes, len(union.classes)
    for name in ("n_features_in_", "feature_names_in_", "recipe_", "_whole_names"):
        if hasattr(first, name):
            setattr(merged, name, getattr(first, name))
    merged._importances = np.average([e.feature_importances_ for e in estimators], axis=0, weights=trees)
    merged.fit_report_ = merged_report([e.fit_report_ for e in estimators])
    return merged


def _kind(estimator: Any) -> str:
    """The name of the class of a forest, whether it was fitted on a cluster or is of a subclass."""
    ours = vars(forests)
    return next(c.__name__ for c in type(estimator).__mro__ if isinstance(ours.get(c.__name__), type))


def _checked(estimators: Sequence[Any]) -> list[Any]:
    found = list(estimators) if isinstance(estimators, list | tuple) else []
    if not found or not all(isinstance(e, Classifier | Regressor) for e in found):
        raise MergeError("a list of fitted forests of oldgrowth is needed, as in merge([a, b])")
    for estimator in found:
        check_is_fitted(estimator, "forest_")
    first = found[0]
    for i, other in enumerate(found[1:], 2):
        if _kind(other) != _kind(first):
            raise MergeError(f"number 1 is a {_kind(first)}, number {i} a {_kind(other)}")
        if hard_votes(other) != hard_votes(first):
            raise MergeError(
                f"number 1 has voting={first.voting!r}, number {i} voting={other.voting!r}: call "
                "set_params(voting=...) on one of them"
            )
        check_features(first, other, i)
    hashes = {(*sorted(e.forest_.checksums().items()), *(e._levels or ())) for e in found}
    if len(hashes) < len(found):
        warn(SameForestWarning())
    return found
