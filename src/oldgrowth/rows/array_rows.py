"""Rows of an array in memory, handed out in chunks without copying more than a chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..datasets.batches import BYTE_VALUES, FloatsOrBytes
from ..datasets.levels import FeatureLevels
from ..errors import InfiniteValueError
from .mapped_input import MappedInput
from .training_rows import Chunk, Place, Taken, TrainingRows

# Rows that a fingerprint looks at.
_LOOKED_AT = 4096


def as_float32(
    x: npt.NDArray[np.generic],
    numbers: Sequence[int] | npt.NDArray[np.intp],
    names: npt.NDArray[np.object_] | None = None,
) -> tuple[npt.NDArray[np.float32], bool]:
    """The rows as contiguous float32, and whether any value is missing; infinite values are refused.

    `numbers` are the rows' numbers in the caller's data, for the error.
    """
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(x, dtype=np.float32)
    infinite, missing = _core.find_non_finite(rows)
    if infinite >= 0:
        row, column = divmod(infinite, rows.shape[1])
        raise InfiniteValueError(int(numbers[row]), column if names is None else names[column])
    return rows, missing


class ArrayRows(TrainingRows):
    """Rows of X with their targets (class numbers or values) and weights; weight zero is passed over.

    `n_classes` is 0 for values.
    """

    random_access = True
    checked = False

    def __init__(
        self,
        x: npt.NDArray[np.generic],
        targets: npt.NDArray[np.float64],
        n_classes: int,
        weights: npt.NDArray[np.float64] | None = None,
        names: npt.NDArray[np.object_] | None = None,
        classes: npt.NDArray[Any] | None = None,
    ) -> None:
        self._x = x
        self._mapped = MappedInput(x)
        self.n_features = int(x.shape[1])
        self.n_classes = n_classes
        self.classification = n_classes > 0
        self.names = names
        self.classes = classes
        self.kept: npt.NDArray[np.intp] | None = None
        if weights is not None and not weights.all():
            self.kept = np.flatnonzero(weights)
            targets, weights = targets[self.kept], weights[self.kept]
        self.targets = targets
        self.weights = weights

    def use_levels(self, levels: FeatureLevels | None) -> None:
        """Set the levels of the features whose values are codes."""
        self.feature_levels = levels
        self.categorical = tuple(f for f, one in enumerate(levels or ()) if one is not None)

    @property
    def n_rows(self) -> int:
        return len(self.targets)

    @property
    def weighted(self) -> bool:
        return self.weights is not None

    @property
    def most_values(self) -> int | None:
        return BYTE_VALUES if self._x.dtype in (np.uint8, np.int8, np.bool_) else None

    def chunks(self, rows: int, start: Place) -> Iterator[Chunk]:
        for first in range(start.row, self.n_rows, rows):
            last = min(first + rows, self.n_rows)
            part = self._x[first:last] if self.kept is None else self._x[self.kept[first:last]]
            numbers = range(first, last) if self.kept is None else self.kept[first:last]
            x: FloatsOrBytes
            if part.dtype == np.uint8:
                x = np.ascontiguousarray(part, dtype=np.uint8)
            else:
                x, _ = as_float32(part, numbers, self.names)
            weights = None if self.weights is None else self.weights[first:last]
            self._mapped.give_back()
            yield Chunk(first, x, self.targets[first:last], weights, last)

    def take(self, rows: npt.NDArray[np.uint64]) -> Taken:
        places = rows if self.kept is None else self.kept[rows]
        x = np.empty((len(places), self.n_features), dtype=np.float32)
        for part in self._mapped.parts(places):
            x[part] = self._x[places[part]]
            self._mapped.give_back()
        return Taken(x, self.targets[rows], None if self.weights is None else self.weights[rows])

    def whole_targets(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64] | None]:
        return self.targets, self.weights

    def fingerprint(self) -> dict[str, Any]:
        looked_at = np.unique(np.linspace(0, self.n_rows - 1, _LOOKED_AT).astype(np.uint64))
        x = self.take(looked_at).x
        return {
            "kind": "array",
            "rows": self.n_rows,
            "features": self.n_features,
            "values": _core.crc32c(x.reshape(-1).view(np.uint8)),
            "targets": _core.crc32c(np.ascontiguousarray(self.targets).view(np.uint8)),
            "weights": None
            if self.weights is None
            else _core.crc32c(np.ascontiguousarray(self.weights).view(np.uint8)),
        }
