"""Which features are categories; arrays and data frames with codes in place of their values."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..datasets import open_dataset
from ..datasets.arguments import library_of
from ..datasets.base import Dataset
from ..datasets.labels import type_class
from ..datasets.level_counts import LearnedLevels
from ..datasets.levels import FeatureLevels
from ..errors import ColumnTypeError, MissingColumnError, ParameterError, TextColumnsError
from ..system.threads import workers
from .parameter_checks import FROM_DTYPE, categorical

_ROWS_AT_ONCE = 1 << 16
_ROWS_WORTH_A_THREAD = 1 << 14  # when they are coded: Python does a part of it


def categorical_places(given: Any, dataset: Dataset) -> tuple[int, ...]:
    """The numbers of the features that are categories; text that is not to be one is refused."""
    given = categorical("categorical_features", given)
    if given == FROM_DTYPE:
        return dataset.typed_categories
    places = () if given is None else _places(given, dataset)
    text = [place for place in dataset.text_features if place not in places]
    if text:
        why = "" if given is None else ", but is not in categorical_features"
        raise TextColumnsError(dataset.named(text), dataset.where, why)
    return places


def _places(given: list[Any], dataset: Dataset) -> tuple[int, ...]:
    n, names = dataset.n_features, dataset.feature_names
    if names is None:  # the command line gives numbers as text
        given = [int(one) if isinstance(one, str) and one.isdecimal() else one for one in given]
    if given and isinstance(given[0], bool):
        if len(given) != n:
            raise ParameterError("categorical_features", given, f"a list of {n} bools, one for each feature")
        return tuple(np.flatnonzero(given).tolist())
    text = [name for name in given if isinstance(name, str)]
    unknown = [name for name in text if names is None or name not in names]
    if unknown:
        raise MissingColumnError(unknown, dataset.where, names or range(n), "feature")
    wrong = [place for place in given if not isinstance(place, str) and not -n <= place < n]
    if wrong:
        raise ParameterError("categorical_features", given, f"numbers of features, from 0 to {n - 1}")
    found = {names.index(one) if isinstance(one, str) and names else int(one) % n for one in given}
    return tuple(sorted(found))


def dataset_of(X: Any) -> Dataset | None:
    """X as a dataset; None if it cannot be one, which other checks explain."""
    pandas, polars, arrow = (sys.modules.get(name) for name in ("pandas", "polars", "pyarrow"))
    frames = [(pandas, "DataFrame"), (polars, "DataFrame"), (arrow, "Table")]
    if not any(library is not None and isinstance(X, getattr(library, name)) for library, name in frames):
        try:
            X = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
        except ValueError:  # rows of different lengths
            return None
    if X.ndim != 2 if isinstance(X, np.ndarray) else False:
        return None
    if 0 in X.shape or (isinstance(X, np.ndarray) and X.dtype.kind not in "biufOUT"):
        return None
    try:
        return open_dataset(X)
    except ColumnTypeError:
        return None


def may_have_text(X: Any) -> bool:
    """Whether a look at the types of X leaves it open that it has categories."""
    if isinstance(X, np.ndarray):
        return X.dtype.kind in "OUT"
    if isinstance(X, list | tuple):
        return any(isinstance(value, str) for row in X if isinstance(row, list | tuple) for value in row)
    if library_of(X) == "pyarrow":
        return any(type_class(kind) == "text" or pa.types.is_dictionary(kind) for kind in X.schema.types)
    dtypes = getattr(X, "dtypes", ())
    if not hasattr(dtypes, "__iter__"):
        return False  # a single column
    if library_of(X) == "polars":
        return any(str(dtype).startswith(("String", "Cat", "Enum", "Obj")) for dtype in dtypes)
    return any(getattr(dtype, "kind", "O") not in "biufc" or hasattr(dtype, "categories") for dtype in dtypes)


def learned(
    dataset: Dataset, places: tuple[int, ...], weights: npt.NDArray[np.float64] | None
) -> FeatureLevels:
    """The levels of rows in memory that have a weight."""
    levels = LearnedLevels(dataset, places)
    if weights is None:
        for _ in levels.learn(dataset):
            pass
    else:
        for part in dataset.raw_columns(places, 0):
            levels.add(replace(part, weights=weights[part.first_row : part.end]))
    return levels.finish(dataset.n_features)


def coded(dataset: Dataset, levels: FeatureLevels, n_jobs: int) -> npt.NDArray[np.float32]:
    """All rows, with codes in place of the values of categories."""
    assert dataset.n_rows is not None
    x = np.empty((dataset.n_rows, dataset.n_features), dtype=np.float32)
    source = dataset.coded_by(levels)
    jobs = max(1, min(n_jobs, len(x) // _ROWS_WORTH_A_THREAD))
    step = min(_ROWS_AT_ONCE, -(-len(x) // jobs))

    def one(first: int) -> None:
        batch = next(source.batches(step, first))
        x[first : first + batch.rows] = batch.x

    starts = range(0, len(x), step)
    if jobs == 1:
        for first in starts:
            one(first)
        return x
    with workers(jobs) as pool:
        for _ in pool.map(one, starts):
            pass
    return x


def levels_by_name(levels: FeatureLevels, names: npt.NDArray[np.object_] | None) -> dict[Any, list[Any]]:
    """The levels of the categorical features, by their names or numbers."""
    return {
        place if names is None else names[place]: list(one.values)
        for place, one in enumerate(levels)
        if one is not None
    }
