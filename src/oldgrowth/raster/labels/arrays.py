"""The rows of a scene as arrays, for tools that need them whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...datasets.base import Dataset
from ...datasets.batches import FloatsOrBytes
from ...datasets.labels import CodedLabels, Labels, join_labels, text_array
from ...errors import MemoryLimitError, ParameterError
from ...system.memory import memory_limit_of, resident_memory

_ROWS = 1 << 16  # read at a time
_LABEL_BYTES = 8
_WAY = "Or fit the forest on the scene itself, which is read in batches."


def in_arrays(data: Dataset, memory_limit: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """All rows and their labels, unless they do not fit."""
    if data.target is None:
        raise ParameterError("data", "a scene without labels", "a scene with labels: see with_labels")
    limit, n_rows = memory_limit_of(memory_limit), data.count_rows()
    reading = data.reading_bytes + 4 * _ROWS * data.n_features + _LABEL_BYTES * n_rows
    x: FloatsOrBytes | None = None
    labels: list[Labels] = []
    for batch in data.batches(_ROWS, keep_bytes=True):
        if x is None or x.dtype == np.uint8 != batch.x.dtype:  # the first values that are no bytes
            before = x
            _check(limit, n_rows * data.n_features * batch.x.dtype.itemsize + reading)
            x = np.empty((n_rows, data.n_features), dtype=batch.x.dtype)  # type: ignore[assignment]
            if before is not None:
                x[: batch.first_row] = before[: batch.first_row]
        x[batch.first_row : batch.first_row + batch.rows] = batch.x
        assert batch.y is not None
        labels.append(batch.y)
    assert x is not None
    y = join_labels(labels)
    if isinstance(y, CodedLabels):
        _check(limit, n_rows * text_array(y.labels.tolist()).dtype.itemsize)
        return x, y.decoded()
    return x, y


def _check(limit: int, needed: int) -> None:
    """Refuse a limit that does not allow this much more memory."""
    least = resident_memory() + needed
    if least > limit:
        raise MemoryLimitError(limit, least, _WAY)
