"""Rows from an array in memory, handed out in chunks of float32 without copying more than a chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import InfiniteValueError


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows, the first of which has the number `first_row`."""

    first_row: int
    x: npt.NDArray[np.float32]
    targets: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64] | None

    @property
    def rows(self) -> int:
        return len(self.x)

    @property
    def end(self) -> int:
        return self.first_row + len(self.x)


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
    infinite, missing = _core.look_over(rows)
    if infinite >= 0:
        row, column = divmod(infinite, rows.shape[1])
        raise InfiniteValueError(int(numbers[row]), column if names is None else names[column])
    return rows, missing


class ArrayDataset:
    """Rows of X with their targets (class numbers or values) and weights; weight zero is passed over.

    `n_classes` is 0 for values.
    """

    def __init__(
        self,
        x: npt.NDArray[np.generic],
        targets: npt.NDArray[np.float64],
        n_classes: int,
        weights: npt.NDArray[np.float64] | None = None,
        names: npt.NDArray[np.object_] | None = None,
    ) -> None:
        self._x = x
        self.n_classes = n_classes
        self._names = names
        self.kept: npt.NDArray[np.intp] | None = None
        if weights is not None and not weights.all():
            self.kept = np.flatnonzero(weights)
            targets, weights = targets[self.kept], weights[self.kept]
        self.targets = targets
        self.weights = weights

    @property
    def n_rows(self) -> int:
        return len(self.targets)

    @property
    def n_features(self) -> int:
        return int(self._x.shape[1])

    def chunks(self, rows: int) -> Iterator[Chunk]:
        for first in range(0, self.n_rows, rows):
            last = min(first + rows, self.n_rows)
            part = self._x[first:last] if self.kept is None else self._x[self.kept[first:last]]
            numbers = range(first, last) if self.kept is None else self.kept[first:last]
            x, _ = as_float32(part, numbers, self._names)
            weights = None if self.weights is None else self.weights[first:last]
            yield Chunk(first, x, self.targets[first:last], weights)

    def take(self, rows: npt.NDArray[np.uint32]) -> npt.NDArray[np.float32]:
        """The rows of these numbers."""
        return np.ascontiguousarray(self._x[rows if self.kept is None else self.kept[rows]], dtype=np.float32)
