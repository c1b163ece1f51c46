"""Several fitted forests over the same features as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ..checks import hard_votes, path_of
from ..datasets.labels import objects
from ..errors import MergeError
from ..fitting.assemble import arrays_in_memory, arrays_on_disk
from ..forest.forest import Forest
from ..forest.joined import JoinedForests, Renumbered
from ..messages.log import warn
from ..messages.warnings import SameForestWarning
from ..reporting.report import merged_report
from ..storage.workspace import spill_workspace
from ..system.memory import memory_limit_of, resident_memory
from ..system.resource_limits import clear_limits
from . import forests
from .classifier import Classifier
from .regressor import Regressor


def merge(estimators: Sequence[Classifier | Regressor]) -> Any:
    """Make one forest of all trees of several fitted ones, which saw the same features.

    Their seeds, rows and machines may differ, and a class may be unknown to some of them. The result predicts
    the mean of what they predict, weighted by their numbers of trees. Its parameters are those of the first,
    with `n_estimators` for all; `feature_importances_` is a mean with the same weights; `fit_report_` adds up
    the stages. It has no `oob_score_`: what is out of bag for one forest may be a training row of another.

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
        joined: JoinedForests = merged.forest_
        limit = memory_limit_of(merged.memory_limit)
        size = sum(estimator.forest_.nbytes for estimator in estimators)
        if any(e.forest_.mapped for e in estimators) or size > limit - resident_memory():
            directory = None if merged.spill_dir is None else path_of("spill_dir", merged.spill_dir)
            with spill_workspace(directory) as workspace:
                arrays, mapped = arrays_on_disk(_filled(joined), workspace)
                merged.forest_ = Forest(joined.n_features, joined.n_classes, arrays, mapped=mapped)
            return merged
        arrays = arrays_in_memory(_filled(joined))
        merged.forest_ = Forest(joined.n_features, joined.n_classes, arrays)
        return merged


def _filled(joined: JoinedForests) -> Any:
    return ((name, joined.length(name), joined.parts(name)) for name in joined.array_names)


def unassembled(estimators: Sequence[Any]) -> Any:
    """The merged estimator; its `forest_` gives the arrays of a forest part by part."""
    estimators = _checked(estimators)
    first = estimators[0]
    cls = getattr(forests, _kind(first))
    known = set(cls._get_param_names())
    params = {name: value for name, value in first.get_params(deep=False).items() if name in known}
    trees = [estimator.forest_.n_trees for estimator in estimators]
    merged = cls(**params | {"n_estimators": sum(trees)})
    classes = _union([e.classes_ for e in estimators]) if hasattr(first, "classes_") else None
    numbered = [_renumbered(estimator, classes) for estimator in estimators]
    merged.forest_ = JoinedForests(numbered)
    if classes is not None:
        merged.classes_, merged.n_classes_ = classes, len(classes)
    for name in ("n_features_in_", "feature_names_in_", "recipe_", "_whole_names", "_levels"):
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
        _check_features(first, other, i)
    hashes = {tuple(sorted(e.forest_.checksums().items())) for e in found}
    if len(hashes) < len(found):
        warn(SameForestWarning())
    return found


def _check_features(first: Any, other: Any, i: int) -> None:
    if first.n_features_in_ != other.n_features_in_:
        raise MergeError(
            f"number 1 has {first.n_features_in_:,} features, number {i} has {other.n_features_in_:,}"
        )
    names, others = (getattr(e, "feature_names_in_", None) for e in (first, other))
    if (names is None) != (others is None):
        with_names, without = (1, i) if others is None else (i, 1)
        raise MergeError(f"number {with_names} has names of features, and number {without} has none")
    if names is not None and others is not None:
        for at, (name, its) in enumerate(zip(names, others, strict=True)):
            if name != its:
                raise MergeError(
                    f"their features differ: column {at} is {name!r} in number 1, {its!r} in number {i}"
                )
    _check_levels(first, other, i)
    if getattr(first, "recipe_", None) != getattr(other, "recipe_", None):
        raise MergeError(
            f"the features of number 1 and number {i} were made of scenes in different ways: see recipe_"
        )


def _check_levels(first: Any, other: Any, i: int) -> None:
    n = first.n_features_in_
    pairs = zip(first._levels or [None] * n, other._levels or [None] * n, strict=True)
    for at, (levels, others) in enumerate(pairs):
        if levels == others:
            continue
        names = getattr(first, "feature_names_in_", None)
        name = at if names is None else names[at]
        if levels is None or others is None:
            categorical, numeric = (i, 1) if levels is None else (1, i)
            raise MergeError(
                f"column {name!r} is categorical in number {categorical} and numeric in number {numeric}"
            )
        raise MergeError(
            f"the levels of column {name!r}, or their order of appearance, differ between number 1 and "
            f"number {i}: forests with categories are merged if both saw the same levels in the same order"
        )


def _is_text(classes: npt.NDArray[Any]) -> bool:
    return classes.dtype.kind in "UT" or all(isinstance(label, str) for label in classes.tolist())


def _union(classes: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """The sorted union of classes."""
    if all(np.array_equal(classes[0], other) and classes[0].dtype == other.dtype for other in classes):
        return classes[0]
    kinds = {"text" if _is_text(c) else "b" if c.dtype.kind == "b" else "numbers" for c in classes}
    if len(kinds) > 1:
        shown = ", ".join(sorted({repr(c.tolist()[0]) for c in classes}))
        raise MergeError(f"their labels have different types, such as {shown}")
    if kinds == {"text"} and len({c.dtype.kind for c in classes}) > 1:
        classes = [objects([str(label) for label in c.tolist()]) for c in classes]
    return np.unique(np.concatenate(classes))


def _renumbered(estimator: Any, classes: npt.NDArray[Any] | None) -> Renumbered:
    forest = estimator.forest_
    if classes is None:
        return Renumbered(forest, np.arange(0), 0)
    numbers = np.searchsorted(classes, estimator.classes_).astype(np.int64)
    return Renumbered(forest, numbers, len(classes))
