"""The metadata of a model file, as JSON: everything about an estimator but its trees.

It holds only plain values, so that reading a file never runs code.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import __all__ as public_names
from .._version import __version__
from ..datasets.labels import text_array
from ..datasets.levels import FeatureLevels, Levels, check_levels, counts_of
from ..datasets.recipe import damaged_entry
from ..errors import UnsavableError
from ..reporting.report import FitReport

_PACKAGE = f"{__package__.partition('.')[0]}."
_INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_LABEL_TYPES = ("bool", *_INTS, "float16", "float32", "float64")


def describe(estimator: Any) -> dict[str, Any]:
    """The metadata of a fitted estimator."""
    # An instance of a subclass is saved as one of our class: the file holds no code, and knows of no cluster.
    ours = (c for c in type(estimator).__mro__ if c.__module__.startswith(f"{_PACKAGE}estimators."))
    cls: Any = next(c for c in ours if c.__name__ in public_names)
    parameters, not_saved = {}, {}
    for parameter in cls._get_param_names():
        try:
            parameters[parameter] = _plain(getattr(estimator, parameter))
        except UnsavableError as error:
            parameters[parameter], not_saved[parameter] = None, str(error)
    names = getattr(estimator, "feature_names_in_", None)
    meta = {
        "estimator": cls.__name__,
        "version": __version__,
        "parameters": parameters,
        "not_saved": not_saved,
        "n_features": int(estimator.forest_.n_features),
        "n_classes": int(estimator.forest_.n_classes),
        "feature_names": None if names is None else [str(n) for n in names],
        "classes": _labels(estimator.classes_) if hasattr(estimator, "classes_") else None,
        "importances": _plain(estimator.feature_importances_),
        "fit_report": _plain(estimator.fit_report_.as_dict()),
    }
    if getattr(estimator, "recipe_", None) is not None:
        meta["recipe"] = _plain(estimator.recipe_)
    if estimator._levels is not None:
        meta["levels"] = [None if one is None else _described(one) for one in estimator._levels]
    if hasattr(estimator, "oob_score_"):
        try:
            meta["oob_score"] = _plain(estimator.oob_score_)
            number_of(meta["oob_score"])
        except (UnsavableError, ValueError) as error:
            meta["not_saved"]["oob_score_"] = str(error)
            meta.pop("oob_score", None)
    return meta


def shape_of(meta: dict[str, Any]) -> tuple[int, int]:
    """The numbers of features and classes, after checking everything that depends on them."""
    n_features, n_classes = meta["n_features"], meta["n_classes"]
    if type(n_features) is not int or type(n_classes) is not int:
        raise ValueError("the numbers of features and classes are not numbers")
    if not (0 < n_features < 2**32 and 0 <= n_classes < 2**32):
        raise ValueError(f"{n_features} features and {n_classes} classes are out of range")
    names, classes, importances = meta["feature_names"], meta["classes"], meta["importances"]
    if names is not None:
        if type(names) is not list or len(names) != n_features:
            raise ValueError(f"there are not {n_features} feature names")
        for name in names:
            str.encode(name)  # raises if it is not text
    if type(importances) is not list or len(importances) != n_features:
        raise ValueError(f"there are not {n_features} importances")
    if (0 if classes is None else len(classes["values"])) != n_classes:
        raise ValueError(f"there are not {n_classes} classes")
    kind = "Classifier" if n_classes else "Regressor"
    if meta["estimator"] not in public_names or not meta["estimator"].endswith(kind):
        raise ValueError(f"{meta['estimator']!r} is not the estimator of a forest with {n_classes} classes")
    return n_features, n_classes


class SavedForest:
    """A saved forest for prediction, with the attributes of its estimator that prediction needs.

    It is not an estimator, as importing scikit-learn takes longer than predicting a million rows.
    """

    n_features_in_: int
    recipe_: dict[str, Any] | None
    _levels: FeatureLevels | None

    def __init__(self, meta: dict[str, Any], forest: Any) -> None:
        self.forest_ = forest
        self.n_jobs = value_of(meta["parameters"]["n_jobs"])
        self.voting = value_of(meta["parameters"].get("voting", "soft"))
        restore_columns(self, meta)


def restore_columns(estimator: Any, meta: dict[str, Any]) -> None:
    """Restore what is known of the features and the target."""
    estimator.n_features_in_ = meta["n_features"]
    estimator._levels = _levels_of(meta)
    if counts_of(estimator._levels) != estimator.forest_.levels:
        raise ValueError("the levels of the features are not those of the trees")
    estimator.recipe_ = value_of(meta["recipe"]) if "recipe" in meta else None
    if not isinstance(estimator.recipe_, dict | None):
        raise ValueError("the recipe of the features is not a table of values")
    if estimator.recipe_ is not None and (entry := damaged_entry(estimator.recipe_)) is not None:
        raise ValueError(f"the entry {entry!r} of the recipe of the features is not possible")
    if meta["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(meta["feature_names"], dtype=object)
    if meta["classes"] is not None:
        estimator.classes_ = _label_array(meta["classes"])
        estimator.n_classes_ = len(estimator.classes_)


def _described(levels: Levels) -> dict[str, Any]:
    return {"values": [_plain(value) for value in levels.values], "pooled": levels.pooled}


def _levels_of(meta: dict[str, Any]) -> FeatureLevels | None:
    """The levels of all features; None if no feature is categorical."""
    if "levels" not in meta:
        return None
    found = meta["levels"]
    if type(found) is not list or len(found) != meta["n_features"]:
        raise ValueError("there are no levels, or null, for each feature")
    return tuple(None if one is None else _levels(one) for one in found)


def _levels(described: dict[str, Any]) -> Levels:
    values, pooled = described["values"], described["pooled"]
    if type(pooled) is not bool or any(type(value) not in (str, int, float) for value in values):
        raise ValueError("a level is not a number or a string")
    levels = Levels(tuple(values), pooled)
    check_levels(levels)
    return levels


def report_of(meta: dict[str, Any], forest: Any) -> FitReport:
    report = FitReport.from_dict(value_of(meta["fit_report"]))
    counts, kept = np.diff(forest.bucket_start).tolist(), report.rows_by_bucket
    if kept and [len(top) for top in kept] != counts:
        raise ValueError("the buckets of the report are not those of the forest")
    if not all(type(rows) is int and 0 < rows < 2**63 for top in kept for rows in top):
        raise ValueError("the number of rows of a bucket is not a positive integer")
    return report


def _plain(value: Any) -> Any:
    """The value as JSON. A dict becomes pairs, as its keys need not be strings."""
    if isinstance(value, np.generic) or hasattr(value, "__array__"):  # also columns of pandas and polars
        value = np.asarray(value).tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {"pairs": [[_plain(k), _plain(v)] for k, v in value.items()]}
    raise UnsavableError(f"{type(value).__name__} objects cannot be saved")


def value_of(plain: Any) -> Any:
    """The inverse of `_plain`."""
    if isinstance(plain, list):
        return [value_of(v) for v in plain]
    if isinstance(plain, dict):
        if "float" in plain:
            return float(plain["float"])
        return {value_of(k): value_of(v) for k, v in plain["pairs"]}
    return plain


def number_of(plain: Any) -> float:
    number = value_of(plain)
    if (type(number) is int and abs(number) < 2**63) or type(number) is float:
        return number
    raise ValueError(f"{number!r:.40} is not a number")


def _labels(classes: npt.NDArray[Any]) -> dict[str, Any]:
    kind = "str" if classes.dtype.kind in "UT" else classes.dtype.name
    values = classes.tolist()
    if kind == "object":
        values = [v.item() if isinstance(v, np.generic) else v for v in values]
    elif kind not in (*_LABEL_TYPES, "str"):
        raise UnsavableError(f"Labels of type {classes.dtype} cannot be saved: use numbers or strings.")
    for value in values:
        if not isinstance(value, bool | int | float | str):
            raise UnsavableError(f"The label {value!r} cannot be saved: use numbers or strings as labels.")
    return {"type": kind, "values": [_plain(v) for v in values]}


def _label_array(labels: dict[str, Any]) -> npt.NDArray[Any]:
    kind, values = labels["type"], [value_of(v) for v in labels["values"]]
    if not all(isinstance(v, bool | int | float | str) for v in values):
        raise ValueError("a label is not a number or a string")
    if kind == "str":
        return text_array([str(v) for v in values])
    if kind != "object" and kind not in _LABEL_TYPES:
        raise ValueError(f"labels of type {kind!r}")
    if kind != "object" and any(isinstance(v, str) for v in values):
        raise ValueError(f"a label of type {kind!r} is a text")
    array = np.empty(len(values), dtype=kind)
    array[:] = values
    return array
