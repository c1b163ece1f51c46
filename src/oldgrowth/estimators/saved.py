"""Loading estimators from model files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..checks import flag, path_of
from ..forest.model_file import Model, read_model, restored
from ..forest.model_meta import number_of, report_of, restore_columns, value_of
from ..messages.log import warn
from ..system.resource_limits import clear_limits
from . import forests
from .classifier import Classifier
from .regressor import Regressor


def load(path: str | os.PathLike[str], mmap: bool = True) -> Classifier | Regressor:
    """Load the fitted estimator that was saved to `path`.

    Parameters
    ----------
    path : str or path
        A file written by `save`.
    mmap : bool, default True
        Whether the trees stay in the file and are read as they are needed, so that a forest may be larger
        than memory. Saving over the file is safe; if it is truncated or changed in place, predictions end
        in an error.

    Examples
    --------
    >>> import oldgrowth, tempfile
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = oldgrowth.RandomForestClassifier(n_estimators=8, random_state=0).fit(X, y)
    >>> path = tempfile.mkdtemp() + "/forest.og"
    >>> model.save(path)
    >>> bool((oldgrowth.load(path).predict(X) == model.predict(X)).all())
    True
    """
    path = path_of("path", path)
    with clear_limits:
        return estimator_of(path, read_model(path, flag("mmap", mmap)))


def estimator_of(path: str | os.PathLike[str], model: Model) -> Any:
    """The estimator in a model file that was read."""
    return restored(path, model, _restore)


def _restore(meta: dict[str, Any], forest: Any) -> Any:
    """The fitted estimator that `describe` described, with these trees."""
    cls = getattr(forests, meta["estimator"])
    known = set(cls._get_param_names())
    saved = meta["parameters"].keys() - meta["not_saved"].keys()
    if saved - known:
        warn(
            f"The forest was saved by oldgrowth {meta['version']} with parameters that this version does not "
            f"have: {', '.join(sorted(saved - known))}. It predicts the same; a new fit would differ.",
            stacklevel=3,
        )
    estimator = cls(**{name: value_of(meta["parameters"][name]) for name in saved & known})
    estimator.forest_ = forest
    estimator.fit_report_ = report_of(meta, forest)
    estimator._importances = np.array([float(number_of(v)) for v in meta["importances"]])
    restore_columns(estimator, meta)
    if "oob_score" in meta:
        estimator.oob_score_ = number_of(meta["oob_score"])
    return estimator
