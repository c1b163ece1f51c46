"""dask DataFrames and Arrays as rows for a fit: each partition is computed once, and kept by a worker."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from dask.delayed import delayed
from distributed import Client

from ..cluster.row_parts import GivenRows
from ..cluster.values import Roles
from ..cluster.work import TARGET, WEIGHT, as_table
from ..datasets import Dataset, open_dataset
from ..errors import DataError, MissingColumnError, ParameterError
from .lazy import check_chunks


def given_rows(X: Any, y: Any, sample_weight: Any, client: Client) -> tuple[Dataset, GivenRows]:
    """What the rows are like, as a dataset of a few made-up rows, and the rows."""
    if y is None:
        raise DataError("y is missing: a fit needs the labels or values of the rows.")
    if hasattr(X, "map_partitions"):
        for name, given in (("y", y), ("sample_weight", sample_weight)):
            if isinstance(given, str) and given not in X.columns:
                raise MissingColumnError(given, "The dask DataFrame", X.columns)
            if not (isinstance(given, str) or given is None or _is_series(given)):
                raise ParameterError(
                    name, given, "a dask Series or the name of a column, as X is a dask DataFrame"
                )
        return _frame(X, y, sample_weight, client)
    return _arrays(X, y, sample_weight, client)


def _frame(X: Any, y: Any, sample_weight: Any, client: Client) -> tuple[Dataset, GivenRows]:
    """`y` and `sample_weight` are columns of X by name, or Series with the same partitions."""
    target = y if isinstance(y, str) else TARGET
    weight = sample_weight if isinstance(sample_weight, str) or sample_weight is None else WEIGHT
    features = tuple(str(name) for name in X.columns if name not in (target, weight))
    more = {name: given for name, given in ((TARGET, y), (WEIGHT, sample_weight)) if hasattr(given, "dask")}
    rows = X.assign(**more) if more else X
    roles = Roles(features, target, weight)
    like = open_dataset(as_table(rows._meta_nonempty), features=list(features), target=target, weight=weight)
    return like, GivenRows(_loaders(rows.to_delayed(), client), roles, _fingerprint(rows))


def _arrays(X: Any, y: Any, sample_weight: Any, client: Client) -> tuple[Dataset, GivenRows]:
    check_chunks(X)
    for name, given in (("y", y), ("sample_weight", sample_weight)):
        if given is not None and (not hasattr(given, "to_delayed") or given.ndim != 1):
            raise ParameterError(name, given, "a dask Array of one dimension, as X is a dask Array")
        if given is not None and not _may_be_equal(_rows(X), _rows(given)):
            raise DataError(
                f"X has {_rows(X):,.0f} rows and {name} has {_rows(given):,.0f}: they must be as many."
            )
    columns = [array.rechunk((X.chunks[0],)) for array in (y, sample_weight) if array is not None]
    together = delayed(_together)
    blocks = [X.to_delayed().ravel(), *(column.to_delayed().ravel() for column in columns)]
    rows = [together(*parts) for parts in zip(*blocks, strict=True)]
    weight = None if sample_weight is None else WEIGHT
    features = tuple(str(i) for i in range(X.shape[1]))
    weights = None if weight is None else np.ones(2)
    like = open_dataset(np.zeros((2, X.shape[1])), target=np.arange(2), weight=weights)
    roles = Roles(features, TARGET, weight)
    return like, GivenRows(_loaders(rows, client), roles, _fingerprint(X, *columns))


def _is_series(given: Any) -> bool:
    return hasattr(given, "to_delayed") and given.ndim == 1


def _rows(array: Any) -> float:
    """NaN if it is not known before chunks are computed."""
    return float(array.shape[0])


def _may_be_equal(one: float, other: float) -> bool:
    return one == other or math.isnan(one) or math.isnan(other)


def _fingerprint(*collections: Any) -> dict[str, Any]:
    """The names of collections, which dask makes of all that they are computed from."""
    return {"dask": [str(collection.__dask_keys__()) for collection in collections]}


def _together(*arrays: Any) -> tuple[Any, ...]:
    return arrays


def _loaders(rows: Any, client: Client) -> list[Callable[[], Any]]:
    return [partial(client.compute, part) for part in rows]
