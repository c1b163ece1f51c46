"""Estimators on datasets: their columns, and predictions batch by batch."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .datasets.base import Batch, Dataset, shortened
from .datasets.labels import CodedLabels
from .errors import DataError
from .forest import Forest
from .memory import READING_BYTES, memory_limit_of, resident_memory
from .messages import warn
from .predict import predict_sums
from .training_rows import read_ahead
from .user_warnings import FeatureNamesWarning

# Fewer would keep no thread busy; a usual batch is what one pass through the forest takes for each thread.
_FEWEST_ROWS, _USUAL_ROWS, _MOST_ROWS = 16_384, 131_072, 2**24
# A mapped forest of less than this is not worth a question.
_ALWAYS_FITS = 32 * 2**20
# Of Parquet files, whose pages are larger the fewer columns there are.
_PAGE_BYTES, _MANY_COLUMNS = 2**20, 128


def columns_for(dataset: Dataset, n_features: int, names: npt.NDArray[np.object_] | None) -> Dataset:
    """The dataset with the features a forest was trained on, by name if both have names."""
    if names is not None and dataset.feature_names is not None:
        wanted = [str(name) for name in names]
        return dataset if list(dataset.feature_names) == wanted else dataset.select(wanted)
    known = None if names is None else list(names)
    warn_of_names(dataset.feature_names, known, "See that they are in the order of training.")
    if dataset.n_features != n_features:
        raise DataError(
            f"The dataset has {dataset.n_features} features, but the forest was trained on {n_features}."
        )
    return dataset


def warn_of_names(found: Sequence[str] | None, known: Sequence[str] | None, way: str) -> None:
    """Say that columns are taken in their order, if only the data or only the forest has names for them."""
    if (found is None) == (known is None):
        return
    what = "The data has no names of features, but the forest was fitted with them"
    if found is not None:
        what = f"The data has names of features ({shortened(found)}), but the forest was fitted without"
    warn(f"{what}: columns are taken in their order. {way}", FeatureNamesWarning, stacklevel=4)


@dataclass(frozen=True)
class Room:
    """What a memory limit leaves for prediction: rows at a time, and whether parts of the forest must go."""

    rows: int
    let_go: bool


def must_let_go(forest: Forest, memory_limit: Any) -> bool:
    """Whether a mapped forest would take too much of the memory."""
    if not forest.mapped or forest.nbytes < _ALWAYS_FITS:
        return False
    return forest.nbytes > _limit_lately(memory_limit, int(time.monotonic())) // 2


@lru_cache(maxsize=16, typed=True)
def _limit_lately(memory_limit: Any, second: int) -> int:
    """The limit, asked for once in a second: the system's answer takes longer than to predict a row."""
    return memory_limit_of(memory_limit)


def _row_bytes(forest: Forest) -> int:
    """Of rows that are read, wait and are predicted."""
    return 3 * 4 * forest.n_features + 3 * 8 * forest.n_outputs + 32


def _reading_bytes(forest: Forest) -> int:
    """What libraries hold that read files, with a page of each of many columns."""
    return READING_BYTES + min(forest.n_features, _MANY_COLUMNS) * _PAGE_BYTES


def least_memory(forest: Forest, rows: int | None = None) -> int:
    """The lowest memory limit under which batches of so many rows can be predicted now."""
    return resident_memory() + _reading_bytes(forest) + 2 * (rows or _FEWEST_ROWS) * _row_bytes(forest)


def room_for(forest: Forest, memory_limit: Any) -> Room:
    """Rows of a batch: all of the forest is read for each, if it does not fit."""
    room = max(0, memory_limit_of(memory_limit) - resident_memory())
    beside = room - _reading_bytes(forest) - (forest.nbytes if forest.mapped else 0)
    if must_let_go(forest, memory_limit) or (forest.mapped and beside < _FEWEST_ROWS * _row_bytes(forest)):
        return Room(max(_FEWEST_ROWS, min(_MOST_ROWS, room // 2 // _row_bytes(forest))), True)
    return Room(max(_FEWEST_ROWS, min(_USUAL_ROWS, beside // 8 // (4 * forest.n_features + 64))), False)


def predict_batches(
    forest: Forest, dataset: Dataset, room: Room, n_jobs: int, hard: bool
) -> Iterator[tuple[Batch, npt.NDArray[np.float64]]]:
    """Each batch with the sums over the trees for its rows; the next one is read meanwhile."""
    with closing(read_ahead(dataset.batches(room.rows), depth=1)) as batches:
        for batch in batches:
            yield batch, predict_sums(forest, batch.x, n_jobs, hard, let_go=room.let_go)


def targets_of(batch: Batch, dataset: Dataset) -> npt.NDArray[Any]:
    """The targets of a batch as they are in the source."""
    if batch.y is None:
        raise DataError(
            "The dataset has no target: name its column, as in open_dataset(source, target='label')."
        )
    return batch.y.decoded() if isinstance(batch.y, CodedLabels) else batch.y
