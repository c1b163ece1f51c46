"""Unknown parameters: an error that says what to use instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar, cast

from ..errors import UnknownParameterError

_Init = TypeVar("_Init", bound=Callable[..., None])

# Parameters of scikit-learn's trees and ensembles that ours do not have, and what to do instead.
_OF_SCIKIT_LEARN = {
    "min_impurity_split": "scikit-learn replaced it by min_impurity_decrease",
    "splitter": "ExtraTreesClassifier and ExtraTreesRegressor split at random thresholds",
    "estimator": "the trees of a forest are not estimators of their own",
}
# Other names of our parameters, in other libraries and in common use.
_OTHER_WORDS = {
    "n_estimators": ("n_trees", "num_trees", "ntrees", "ntree", "trees", "num_boost_round", "iterations"),
    "random_state": ("seed", "random_seed"),
    "n_jobs": ("threads", "n_threads", "num_threads", "nthread", "nthreads", "n_workers", "jobs"),
    "max_features": ("mtry", "mtries", "colsample_bynode", "feature_fraction"),
    "max_samples": ("subsample", "sample_rate", "bagging_fraction"),
    "spill_dir": ("temp_dir", "tmp_dir", "tmpdir", "cache_dir", "scratch_dir"),
    "min_samples_leaf": ("min_node_size", "min_data_in_leaf", "min_child_samples", "min_examples"),
    "balance": ("lambda_",),
}
_OF_FIT = {"callback", "sample_weight"}
# The parameters of each estimator, by its name.
_PARAMETERS: dict[str, list[str]] = {}


def names_checked(init: _Init) -> _Init:
    """An `__init__` that explains unknown parameters. Its signature is unchanged."""
    known = list(inspect.signature(init).parameters)[1:]
    _PARAMETERS[init.__qualname__.partition(".")[0]] = known

    @wraps(init)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        refuse_unknown(type(self), kwargs, known)
        init(self, *args, **kwargs)

    return cast(_Init, checked)


def refuse_unknown(cls: type, given: Iterable[str], known: Iterable[str]) -> None:
    known = list(known)
    for name in given:
        if name not in known:
            raise UnknownParameterError(cls.__name__, name, _way(cls, name, known))


def _way(cls: type, name: str, known: list[str]) -> str:
    """What to do instead, as the end of a sentence."""
    if name in _OF_SCIKIT_LEARN:
        return _OF_SCIKIT_LEARN[name]
    if name in _OF_FIT:
        return f"give it to fit, as in fit(X, y, {name}=...)"
    others = [other for other, parameters in _PARAMETERS.items() if name in parameters]
    if name == "class_weight" and others:
        return "give weights of rows to fit, as in fit(X, y, sample_weight=...)"
    if others:
        return f"it is a parameter of {', '.join(others)}"
    meant = [ours for ours, words in _OTHER_WORDS.items() if name.lower() in words and ours in known]
    meant = meant or get_close_matches(name.lower(), known, n=1)
    return f"did you mean {meant[0]}?" if meant else f"its parameters are {', '.join(known)}"
