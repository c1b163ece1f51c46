"""Labels as class numbers, learned while they stream by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .datasets.labels import CodedLabels
from .errors import DataError, UnseenLabelError

# Whole numbers that lie this close are told apart by counting rather than sorting.
_COUNTED_SPAN = 2**16


class LabelCoder:
    """Numbers classes as they appear; once `finish`ed, in the order of the labels, and refuses new ones."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._dtype: np.dtype[Any] | None = None
        self.classes: npt.NDArray[Any] | None = None

    def code(
        self, y: npt.NDArray[Any] | CodedLabels, first_row: int, where_of: Callable[[int], str]
    ) -> npt.NDArray[np.float64]:
        labels, places = _told_apart(y)
        if self.classes is None:
            _check_labels(labels, places, first_row, where_of)
            self._dtype = labels.dtype if self._dtype is None else np.result_type(self._dtype, labels.dtype)
            numbers = [self._numbers.setdefault(label, len(self._numbers)) for label in labels.tolist()]
        else:
            numbers = [self._numbers.get(label, -1) for label in labels.tolist()]
            if -1 in numbers:
                unseen = numbers.index(-1)
                row = first_row + int(np.flatnonzero(places == unseen)[0])
                raise UnseenLabelError(labels[unseen].item(), row, where_of(row))
        return np.array(numbers, dtype=np.float64)[places]

    def finish(self) -> npt.NDArray[np.int64]:
        """The final number of each class numbered so far."""
        try:
            ordered = sorted(self._numbers)
        except TypeError as error:
            kinds = sorted({type(label).__name__ for label in self._numbers})
            raise DataError(f"The labels are of different kinds: {', '.join(kinds)}.") from error
        final = np.empty(len(ordered), dtype=np.int64)
        for number, label in enumerate(ordered):
            final[self._numbers[label]] = number
            self._numbers[label] = number
        self.classes = np.array(ordered, dtype=self._dtype)
        return final

    def state(self) -> dict[str, Any]:
        return {"labels": list(self._numbers), "dtype": None if self._dtype is None else self._dtype.str}

    def restore(self, state: dict[str, Any]) -> None:
        self._numbers = {label: i for i, label in enumerate(state["labels"])}
        self._dtype = None if state["dtype"] is None else np.dtype(state["dtype"])


def _told_apart(y: npt.NDArray[Any] | CodedLabels) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """The labels that occur, and for each row the place of its label among them."""
    if isinstance(y, CodedLabels):
        used, places = _told_apart(y.codes)
        return y.labels[used], places
    if y.dtype.kind in "ui" and len(y):
        low = int(y.min())
        if int(y.max()) - low < _COUNTED_SPAN:
            shifted = (
                (y.astype(np.int64) - low) if y.dtype != np.uint64 else (y - np.uint64(low)).astype(np.int64)
            )
            present = np.bincount(shifted) > 0
            found = np.flatnonzero(present)
            return found.astype(y.dtype) + y.dtype.type(low), (np.cumsum(present) - 1)[shifted]
    labels, places = np.unique(y, return_inverse=True)
    return labels, places.reshape(-1)


def _check_labels(
    labels: npt.NDArray[Any],
    places: npt.NDArray[np.intp],
    first_row: int,
    where_of: Callable[[int], str],
) -> None:
    """Refuse what scikit-learn refuses as a label: numbers that are not whole."""
    if labels.dtype.kind == "f" and not np.all(labels == np.floor(labels)):
        odd = int(np.flatnonzero(labels != np.floor(labels))[0])
        row = first_row + int(np.flatnonzero(places == odd)[0])
        raise DataError(
            f"The target holds the value {labels[odd]} in row {row} of {where_of(row)}, which is not a "
            "label: use a regressor for values that are not whole numbers."
        )
