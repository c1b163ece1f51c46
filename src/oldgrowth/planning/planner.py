"""Checks of the estimators' parameters, and the plan that follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._version import __version__
from ..checks import is_whole
from ..errors import DataError, ParameterError
from ..messages.surface import Say, in_words_of, listed
from ..plan import (
    AUTO_BALANCE,
    UNKNOWN_ROWS,
    Plan,
    auto_bucket_size,
    auto_chunk_size,
    auto_subset_size,
    auto_top_sample,
    auto_trees_per_top,
    check_limits,
)
from ..rows.data_summary import DataSummary
from .earlier import Earlier

# Counts of a bootstrap end at 15, which for this mean one row in 500,000 would pass.
HIGHEST_BOOTSTRAP_MEAN = 4
_MOST_JOBS = 4096
# Sums of weights, and of their squares, must stay far from where doubles end.
_SMALLEST_WEIGHT, _LARGEST_WEIGHT = 1e-100, 1e50


def rows_or_share(value: int | float, n: int, low: int) -> int:
    """A number of rows: whole, or a share of all of them as a float."""
    return max(low, math.ceil(value * n)) if isinstance(value, float) else value


def features_per_split(value: int | float | str | None, n_features: int) -> int:
    """scikit-learn's `max_features`."""
    if value is None:
        return n_features
    if isinstance(value, str):
        return max(1, int(math.sqrt(n_features) if value == "sqrt" else math.log2(n_features)))
    if isinstance(value, float):
        return max(1, int(value * n_features))
    return min(value, n_features)


def bootstrap_mean(max_samples: int | float | None, bootstrap: bool, n: int) -> float:
    """How often a row is expected in a tree's bootstrap."""
    if max_samples is None:
        return 1.0
    if not bootstrap:
        raise ParameterError("max_samples", max_samples, _with_bootstrap("None"))
    if isinstance(max_samples, float):
        return max(1, math.ceil(max_samples * n)) / n
    if max_samples <= HIGHEST_BOOTSTRAP_MEAN * n:
        return max_samples / n
    most = f"of at most {HIGHEST_BOOTSTRAP_MEAN} times {'all' if n == UNKNOWN_ROWS else f'the {n}'} rows"
    raise ParameterError("max_samples", max_samples, f"None, a number of rows from 1 on or a share, {most}")


def seed_of(random_state: Any) -> int:
    from sklearn.utils import check_random_state  # prediction from the command line does without scikit-learn

    try:
        generator = check_random_state(random_state)
    except (ValueError, TypeError) as error:
        whole_number = "None, a whole number from 0 to 2**32 - 1"
        raise ParameterError(
            "random_state",
            random_state,
            lambda say: in_words_of(
                say, f"{whole_number}, or a numpy.random.RandomState", "none or a whole number below 2**32"
            ),
        ) from error
    return int(generator.randint(0, 2**31 - 1, dtype=np.int64))


def check_jobs(n_jobs: Any) -> None:
    if n_jobs is not None and (not is_whole(n_jobs) or n_jobs == 0):
        raise ParameterError("n_jobs", n_jobs, "a whole number other than 0, or None")


def jobs_of(n_jobs: Any) -> int:
    """The number of threads, as joblib counts them."""
    check_jobs(n_jobs)
    from joblib import effective_n_jobs

    return min(int(effective_n_jobs(n_jobs)), _MOST_JOBS)


def _auto(value: int | str, auto: int) -> int:
    return auto if isinstance(value, str) else value


@dataclass(frozen=True)
class _Sizes:
    """Rows of a bucket and of a sample, and those that each tree is grown on."""

    bucket: int
    sample: int
    tree_rows: int


def _sizes(params: dict[str, Any], summary: DataSummary, random_thresholds: bool) -> _Sizes:
    n, d = summary.n_rows, summary.n_features
    auto_bucket = auto_bucket_size(n, summary.record_bytes, random_thresholds)
    bucket_size = _auto(params.get("bucket_size", "auto"), auto_bucket)
    check_limits(n, d, bucket_size)
    most_rows = _core.max_bucket_rows(min(d, _core.MAX_FEATURES))
    if "subset_size" in params:
        subset = min(n, most_rows, _auto(params["subset_size"], auto_subset_size(n)))
        return _Sizes(min(bucket_size, most_rows), subset, subset)
    top_sample = min(n, _auto(params["top_sample"], auto_top_sample(n, bucket_size)))
    return _Sizes(min(bucket_size, most_rows), top_sample, n)


def make_plan(
    params: dict[str, Any],
    summary: DataSummary,
    seed: int,
    class_weights: tuple[float, ...],
    random_thresholds: bool,
) -> Plan:
    """Resolve an estimator's parameters for its data."""
    d, n_classes = summary.n_features, summary.n_classes
    balance = params.get("balance", 0.0)
    bootstrap, oob_score = params["bootstrap"], params["oob_score"]
    subsets = "subset_size" in params
    if oob_score and not bootstrap and not subsets:
        raise ParameterError("oob_score", oob_score, _with_bootstrap("False"))
    sizes = _sizes(params, summary, random_thresholds)
    rows = sizes.tree_rows
    _check_weight(summary)
    max_features = features_per_split(params["max_features"], d)
    top_max_features = params.get("top_max_features", "auto")
    if top_max_features == "auto":
        top_max_features = max_features
    n_estimators = params["n_estimators"]
    auto_shared = auto_trees_per_top(n_estimators, random_thresholds)
    sample_mean = bootstrap_mean(params["max_samples"], bootstrap, rows)
    offset, scale = (0.0, 1.0) if n_classes else _centre(summary.low, summary.high)
    return Plan(
        n_estimators=n_estimators,
        trees_per_top=_auto(params.get("trees_per_top", 1), auto_shared),
        bucket_size=sizes.bucket,
        top_sample=sizes.sample,
        top_max_features=features_per_split(top_max_features, d),
        balance=AUTO_BALANCE if balance == "auto" else balance,
        bottom_balance=params.get("bottom_balance", 0.0),
        criterion=params["criterion"],
        n_classes=n_classes,
        max_features=max_features,
        max_depth=params["max_depth"],
        min_samples_split=rows_or_share(params["min_samples_split"], rows, 2),
        min_samples_leaf=rows_or_share(params["min_samples_leaf"], rows, 1),
        min_weight_fraction_leaf=params["min_weight_fraction_leaf"],
        min_impurity_decrease=params["min_impurity_decrease"],
        random_thresholds=random_thresholds,
        bootstrap=bootstrap,
        sample_mean=sample_mean,
        class_weights=class_weights,
        balanced_subsample=params.get("class_weight") == "balanced_subsample",
        oob=bool(oob_score),
        oob_metric=callable(oob_score),
        hard_votes=params.get("voting") == "hard",
        subsets=subsets,
        chunk_size=_auto(params["chunk_size"], auto_chunk_size(d)),
        seed=seed,
        n_jobs=jobs_of(params["n_jobs"]),
        total_weight=_total_weight(summary, class_weights) * sample_mean * rows / summary.n_rows,
        target_offset=offset,
        target_scale=scale,
    )


def _check_targets(criterion: str, summary: DataSummary) -> None:
    if criterion != "poisson":
        return
    if summary.low < 0:
        raise DataError(
            f"y has negative values, down to {summary.low:g}, for which the Poisson deviance is not defined. "
            "Choose criterion squared_error, or values from zero on."
        )
    if not summary.high > 0:
        raise DataError(
            "All values of y are zero, and the Poisson deviance needs a positive sum. Choose criterion "
            "squared_error."
        )


def _check_weight(summary: DataSummary) -> None:
    if summary.weighted and not _SMALLEST_WEIGHT <= summary.weight <= _LARGEST_WEIGHT:
        raise DataError(
            f"The weights add up to {summary.weight:g}: scale them, so that their sum is neither huge "
            "nor tiny."
        )


def _total_weight(summary: DataSummary, class_weights: tuple[float, ...]) -> float:
    """The weight of all rows in a tree without bootstrap."""
    return math.fsum(summary.class_weight * class_weights) if class_weights else summary.weight


def _centre(low: float, high: float) -> tuple[float, float]:
    """Of a regression's targets: the middle of their range, and a scale that brings them into [-1, 1].

    A power of two scales without rounding, and nothing can overflow then.
    """
    scale = 2.0 ** min(1023, math.ceil(math.log2(max(abs(low), abs(high), 2.0**-1000))))
    return low / 2 + high / 2, scale


def _plain(value: Any) -> Any:
    """A parameter as a value that JSON can hold and that can be compared."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    # Not where it is in memory; a generator is told apart by the seed drawn from it.
    return getattr(value, "__qualname__", type(value).__qualname__)


class Planner:
    """Makes plans from an estimator's checked parameters as more is learned of the data.

    The seed is drawn once. `identity` has the parameters that determine the forest. Trees may be added to an
    earlier forest.
    """

    def __init__(
        self,
        params: dict[str, Any],
        random_thresholds: bool,
        classification: bool,
        identity: dict[str, Any] | None = None,
        earlier: Earlier | None = None,
    ) -> None:
        self.earlier = earlier
        self._params = params if earlier is None else _as_before(params, earlier, random_thresholds)
        self._identity = identity or {}
        self._random_thresholds = random_thresholds
        self.seed = seed_of(params["random_state"])
        self.classification = classification

    def with_seed(self, seed: int) -> Planner:
        """The same planner with another seed."""
        other = copy(self)
        other.seed = seed
        return other

    def identity(self) -> dict[str, Any]:
        """The parameters that must be equal in another fit of the same data for the same forest."""
        model = {name: _plain(value) for name, value in self._identity.items()}
        kind = f"{'extra' if self._random_thresholds else 'best'} thresholds"
        identity = {"version": __version__, "kind": kind, "seed": self.seed, "parameters": model}
        return identity if self.earlier is None else identity | {"earlier": list(self.earlier.trees_of_top)}

    def expect(self, n_rows: int | None, n_features: int, n_classes: int) -> Plan:
        """The plan before the first pass, with the largest possible top sample. Raises for invalid
        parameters."""
        n = UNKNOWN_ROWS if n_rows is None else n_rows
        wide, narrow = (
            self.expected(DataSummary(n, n_features, n_classes, width * n_features)) for width in (4, 1)
        )
        return replace(wide, top_sample=max(wide.top_sample, narrow.top_sample))

    def expected(self, summary: DataSummary) -> Plan:
        """The plan if nothing further were learned."""
        known = replace(summary, n_classes=max(2, summary.n_classes) if self.classification else 0)
        return self._made(known, ())

    def plan(self, summary: DataSummary, classes: npt.NDArray[Any] | None) -> Plan:
        weights: tuple[float, ...] = ()
        if self.earlier is not None:
            self.earlier.check_classes(classes)
        _check_targets(self._params["criterion"], summary)
        if classes is not None:
            weights = _class_weights(self._params["class_weight"], classes, summary)
        return self._made(summary, weights)

    def _made(self, summary: DataSummary, weights: tuple[float, ...]) -> Plan:
        plan = make_plan(self._params, summary, self.seed, weights, self._random_thresholds)
        if plan.oob and self._params["warm_start"]:
            plan = replace(plan, keep_votes=True)
        return plan if self.earlier is None else replace(plan, earlier=self.earlier.trees_of_top)


def _as_before(params: dict[str, Any], earlier: Earlier, random_thresholds: bool) -> dict[str, Any]:
    """The parameters with as many trees on a top tree as the earlier forest has, if nothing else is said."""
    if params.get("trees_per_top") != "auto":
        return params
    first, *others = earlier.trees_of_top
    trees = first if others else max(first, auto_trees_per_top(first, random_thresholds))
    return params | {"trees_per_top": trees}


def _with_bootstrap(python: str) -> Callable[[Say], str]:
    """What a parameter must be if it has no effect without a bootstrap."""
    return lambda say: in_words_of(say, f"{python} unless bootstrap=True", "left out with --no-bootstrap")


def weights_that_are(which: str) -> Callable[[Say], str]:
    return lambda say: in_words_of(say, f"a dict of weights that are {which}", f"weights that are {which}")


def _class_weights(given: Any, classes: npt.NDArray[Any], summary: DataSummary) -> tuple[float, ...]:
    """The weight of each class; one without rows weighs one."""
    if given is None:
        return ()
    from sklearn.utils.class_weight import compute_class_weight

    present = summary.class_rows > 0
    weights = np.ones(len(classes))
    if isinstance(given, dict):
        try:
            weights[present] = compute_class_weight(given, classes=classes[present], y=classes[present])
        except (ValueError, TypeError) as error:
            there = listed(classes.tolist())
            raise ParameterError(
                "class_weight",
                given,
                lambda say: (
                    f"{in_words_of(say, 'a dict with', 'given for')} the labels of the target, of which "
                    f"there are {there}"
                ),
            ) from error
        if not _SMALLEST_WEIGHT <= weights[present].max() <= _LARGEST_WEIGHT:
            raise ParameterError("class_weight", given, weights_that_are("neither huge nor all zero"))
    else:
        weights[present] = summary.class_weight.sum() / (present.sum() * summary.class_weight[present])
    return tuple(weights.tolist())
