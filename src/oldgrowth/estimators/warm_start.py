"""`warm_start`: a fit that adds trees to those of the fit before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ..checks import flag, whole
from ..datasets.levels import Levels
from ..errors import MergeError, ParameterError, WarmStartError
from ..forest.forest import Forest
from ..planning.earlier import Earlier
from ..reporting.report import FitReport, merged_report
from .joining import assembled, check_features, union_of


def fitted_before(estimator: Any) -> Any:
    """The estimator as the last fit left it, if trees are to be added to those; otherwise None."""
    if not flag("warm_start", estimator.warm_start) or not hasattr(estimator, "forest_"):
        return None
    there = estimator.forest_.n_trees
    if whole("n_estimators", estimator.n_estimators, 1) < there:
        wanted = f"at least {there} with warm_start=True, as the forest has that many trees"
        raise ParameterError("n_estimators", estimator.n_estimators, wanted)
    before = object.__new__(type(estimator))
    vars(before).update(vars(estimator))
    return before


def earlier_of(before: Any) -> Earlier:
    """What the stages of a fit have to know of it."""
    trees_of_top = tuple(before.forest_.trees_of_top.astype(np.int64).tolist())
    return Earlier(trees_of_top, getattr(before, "classes_", None), before._votes)


def check_columns(before: Any, now: Any, categorical: tuple[int, ...]) -> None:
    """Refuse other features than those of the trees that are there, before new ones are grown; `categorical`
    are the numbers of those that are now."""
    features = {name: getattr(now, name, None) for name in ("n_features_in_", "feature_names_in_", "recipe_")}
    levels = [Levels(()) if at in categorical else None for at in range(now.n_features_in_)]
    try:
        check_features(before, SimpleNamespace(**features, _levels=levels), 2)
    except MergeError as error:
        raise WarmStartError(error.why.replace("number 1", "the forest").replace("number 2", "X")) from None


def add_trees(before: Any, grown: Any, continued: bool) -> None:
    """Put the trees of `before` in front of those of `grown`, which was fitted with the rest; it may have
    `continued` with the last top tree."""
    both = [before, grown]
    union = union_of(both, continued)
    trees = [one.forest_.n_trees for one in both]
    forest = assembled(union.forest, both, grown)
    grown._importances = np.average([one._importances for one in both], axis=0, weights=trees)
    grown.fit_report_ = _report(before.fit_report_, grown.fit_report_, forest)
    grown.forest_, grown._levels = forest, union.levels


def _report(before: FitReport, grown: FitReport, forest: Forest) -> FitReport:
    """The report of both fits. If they share a top tree, its buckets count once."""
    merged = merged_report([before, grown])
    sizes = before.rows_by_bucket + grown.rows_by_bucket
    n_tops = len(forest.trees_of_top)
    if len(sizes) > n_tops:
        del sizes[len(before.rows_by_bucket)]
        merged.top_trees = max(0, merged.top_trees - 1)
    if len(sizes) == n_tops:
        merged.count_buckets([np.array(top, dtype=np.int64) for top in sizes])
    merged.buckets, merged.nodes = int(forest.bucket_start[-1]), forest.n_nodes
    merged.store, merged.store_reason = grown.store, grown.store_reason
    return merged
