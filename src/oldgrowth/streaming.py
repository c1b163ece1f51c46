"""Estimators on datasets: their columns, and predictions batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import numpy.typing as npt

from .datasets.base import Batch, Dataset
from .datasets.labels import CodedLabels
from .errors import DataError
from .forest import Forest
from .memory import memory_limit_of, resident_memory
from .plan import auto_chunk_size
from .predict import predict_sums
from .training_rows import read_ahead

# Fewer would keep no thread busy, and a forest that is mapped may take all that the limit allows.
_FEWEST_ROWS = 16_384


def columns_for(dataset: Dataset, n_features: int, names: npt.NDArray[np.object_] | None) -> Dataset:
    """The dataset with the features a forest was trained on, by name if both have names."""
    if names is not None and dataset.feature_names is not None:
        wanted = [str(name) for name in names]
        return dataset if list(dataset.feature_names) == wanted else dataset.select(wanted)
    if dataset.n_features != n_features:
        raise DataError(
            f"The dataset has {dataset.n_features} features, but the forest was trained on {n_features}."
        )
    return dataset


def rows_at_once(n_features: int, memory_limit: Any) -> int:
    """Rows of a batch, so that some of them fit the limit."""
    room = max(0, memory_limit_of(memory_limit) - resident_memory())
    return max(_FEWEST_ROWS, min(auto_chunk_size(n_features), room // 8 // (4 * n_features + 64)))


def predict_batches(
    forest: Forest, dataset: Dataset, rows: int, n_jobs: int, hard: bool
) -> Iterator[tuple[Batch, npt.NDArray[np.float64]]]:
    """Each batch with the sums over the trees for its rows; the next one is read meanwhile."""
    with closing(read_ahead(dataset.batches(rows))) as batches:
        for batch in batches:
            yield batch, predict_sums(forest, batch.x, n_jobs, hard)


def targets_of(batch: Batch, dataset: Dataset) -> npt.NDArray[Any]:
    """The targets of a batch as they are in the source."""
    if batch.y is None:
        raise DataError(
            "The dataset has no target: name its column, as in open_dataset(source, target='label')."
        )
    return batch.y.decoded() if isinstance(batch.y, CodedLabels) else batch.y
