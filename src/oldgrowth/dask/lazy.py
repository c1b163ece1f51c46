"""Lazy predictions on dask DataFrames and Arrays: partitions and chunks are kept.

A task has the path of the model file. A process maps the file once, so that the forest is never sent.
"""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np

from ..errors import DataError, MissingColumnError
from ..estimators.saved import load
from ..estimators.shared_model import SharedModel, shared
from ..messages.text import counted

_MOST_OPEN = 4
_opened: dict[SharedModel, Any] = {}
_lock = threading.Lock()


def is_lazy(X: Any) -> bool:
    """Whether X is a dask DataFrame or Array."""
    return hasattr(X, "__dask_graph__") and (hasattr(X, "map_partitions") or hasattr(X, "map_blocks"))


def check_chunks(X: Any) -> None:
    """Refuse a dask Array whose rows are cut by chunks."""
    if X.ndim != 2:
        raise DataError(f"X has {counted(X.ndim, 'dimension')}: it must have two, rows and columns.")
    if len(X.chunks[1]) != 1:
        raise DataError(
            f"X has {len(X.chunks[1])} chunks of columns: a row must be in one chunk. Rechunk it, as in "
            "X.rechunk({1: -1})."
        )


def predicted(estimator: Any, method: str, X: Any) -> Any:
    """The result of a method of a fitted forest for the rows of X, when it is computed."""
    model = shared(estimator)
    classes = getattr(estimator, "classes_", None)
    columns = classes if method == "predict_proba" else None
    dtype = np.dtype(np.float64) if classes is None or columns is not None else _plain(classes.dtype)
    settings = {"voting": estimator.voting} if classes is not None else {}
    if hasattr(X, "map_partitions"):
        _columns_of(estimator, X._meta)
        meta = _as_frame(np.empty((0, len(columns)) if columns is not None else 0, dtype), X._meta, columns)
        return X.map_partitions(_of_frame, model, method, columns, settings, meta=meta)
    check_chunks(X)
    if columns is None:
        return X.map_blocks(_of_rows, model, method, settings, drop_axis=1, dtype=dtype)
    chunks = (X.chunks[0], (len(columns),))
    return X.map_blocks(_of_rows, model, method, settings, chunks=chunks, dtype=dtype)


def _plain(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Text has no fixed width in a column."""
    return np.dtype(object) if dtype.kind in "UT" else dtype


def _of_rows(x: Any, model: SharedModel, method: str, settings: dict[str, Any]) -> Any:
    forest = _forest(model).set_params(**settings)
    if len(x):
        made = getattr(forest, method)(x)
    else:  # of which forests have nothing to say, but a type
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the row has no names
            made = getattr(forest, method)(np.full((1, forest.n_features_in_), np.nan, np.float32))[:0]
    return made.astype(_plain(made.dtype), copy=False)


def _of_frame(frame: Any, model: SharedModel, method: str, columns: Any, settings: dict[str, Any]) -> Any:
    rows = _columns_of(_forest(model), frame)
    return _as_frame(
        _of_rows(rows if len(rows) else rows.to_numpy(), model, method, settings), frame, columns
    )


def _columns_of(forest: Any, frame: Any) -> Any:
    """The features of a forest, which a frame may have in another order and among others."""
    names = getattr(forest, "feature_names_in_", None)
    if names is None:
        return frame
    if missing := [name for name in names if name not in frame.columns]:
        raise MissingColumnError(missing, "The dask DataFrame", frame.columns)
    return frame[list(names)]


def _as_frame(values: Any, like: Any, columns: Any) -> Any:
    import pandas as pd

    index = like.index[: len(values)]
    if columns is None:
        return pd.Series(values, index=index, dtype=values.dtype)
    return pd.DataFrame(values, index=index, columns=list(columns))


def _forest(model: SharedModel) -> Any:
    """The forest of a model file, opened by the first task of this process."""
    with _lock:
        if model not in _opened:
            model.opened()  # refuses a file that was replaced
            while len(_opened) >= _MOST_OPEN:
                del _opened[next(iter(_opened))]
            _opened[model] = load(model.path).set_params(n_jobs=1)
        return _opened[model]
