"""Scores that are added up batch by batch: counts of labels, or sums of errors."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt

from ..datasets.labels import CodedLabels, Labels
from ..errors import DataError
from ..rows.class_codes import numbers_of, told_apart

_MOST_UNKNOWN = 10_000  # labels that are told apart; the wrong column would fill the memory
MOST_IN_MATRIX = 1024  # classes whose confusions are counted in a matrix
_MOST_PAIRS = 2**20  # of label and prediction that are told apart where there are more classes
_LISTED_PAIRS = 10_000


def refuse_other_kinds(y: Any, classes: npt.NDArray[Any] | None = None, first_row: int = 0) -> None:
    """Refuse targets that can equal no prediction: text where the forest knows numbers, or the reverse, or
    fractions where it knows classes.

    Without `classes` it predicts numbers.
    """
    if classes is not None:
        _refuse_fractions(np.asarray(y), first_row)
    known = {"numbers": None} if classes is None else _kinds(classes)
    for kind, example in _kinds(np.asarray(y)).items():
        if known and kind not in known:
            trained, one = next(iter(known.items()))
            such_as = "" if classes is None else f", such as {one!r:.60}"
            raise DataError(
                f"The rows to score have {kind} as their target, such as {example!r:.60}, but the forest was "
                f"trained on {trained}{such_as}: convert one into the other."
            )


def _refuse_fractions(y: npt.NDArray[Any], first_row: int) -> None:
    if y.dtype.kind == "f" and not np.all(whole := y == np.floor(y)):
        row = int(np.argmin(whole))
        raise DataError(
            f"The rows to score have {y.reshape(-1)[row]} as their target in row {first_row + row}, but the "
            "forest was trained on classes, and labels that are not whole numbers are none."
        )


def _kinds(labels: npt.NDArray[Any]) -> dict[str, Any]:
    """What labels there are, text or numbers, each with an example."""
    labels = labels.reshape(-1)
    if labels.dtype.kind != "O":
        return {_kind(value): value for value in labels[:1].tolist()}
    examples = {type(value): value for value in labels.tolist()}
    return {_kind(value): value for value in examples.values()}


def _kind(value: Any) -> str:
    if value is None:
        return "missing values"
    if isinstance(value, Number | np.bool_):
        return "numbers"
    return "text" if isinstance(value, str) else type(value).__name__


class _Pairs:
    """Counts of (label, prediction) in a matrix, or, of many classes, only of the pairs that occur."""

    def __init__(self, n_classes: int) -> None:
        self._k = n_classes
        self._dense = n_classes <= MOST_IN_MATRIX
        self._keys = np.arange(n_classes**2) if self._dense else np.zeros(0, dtype=np.int64)
        self._counts = np.zeros(len(self._keys), dtype=np.int64)

    def add(self, labels: npt.NDArray[np.intp], predicted: npt.NDArray[np.intp]) -> None:
        keys = labels.astype(np.int64) * self._k + predicted
        if self._dense:
            self._counts += np.bincount(keys, minlength=len(self._keys))
            return
        new, counts = np.unique(keys, return_counts=True)
        place = np.asarray(np.searchsorted(self._keys, new))
        known = place < len(self._keys)
        known[known] = self._keys[place[known]] == new[known]
        self._counts[place[known]] += counts[known]
        room = max(0, _MOST_PAIRS - len(self._keys))
        more = np.flatnonzero(~known)[:room]
        self._counts = np.insert(self._counts, place[more], counts[more])
        self._keys = np.insert(self._keys, place[more], new[more])

    def matrix(self) -> npt.NDArray[np.int64] | None:
        return self._counts.reshape(self._k, self._k) if self._dense else None

    def most_confused(self, n: int) -> list[tuple[int, int, int]]:
        """The pairs of label and other prediction that occur most often, with how often."""
        labels, predicted = np.divmod(self._keys, self._k)
        wrong = np.flatnonzero((labels != predicted) & (self._counts > 0))
        most = wrong[np.argsort(-self._counts[wrong], kind="stable")[:n]]
        return list(
            zip(labels[most].tolist(), predicted[most].tolist(), self._counts[most].tolist(), strict=True)
        )


class Confusion:
    """How often each label was taken for each class; labels that the forest does not know are counted too."""

    def __init__(self, classes: npt.NDArray[Any]) -> None:
        k = len(classes)
        self.classes = classes.tolist()
        self._index = {label: i for i, label in enumerate(self.classes)}
        self.pairs = _Pairs(k)
        self._right, self._support, self._predicted = (np.zeros(k, dtype=np.int64) for _ in range(3))
        self.unknown: dict[Any, int] = {}

    @property
    def matrix(self) -> npt.NDArray[np.int64] | None:
        """Rows by label and prediction, unless there are too many classes."""
        return self.pairs.matrix()

    def add(self, y: Labels, predicted: npt.NDArray[np.intp]) -> None:
        if not isinstance(y, CodedLabels):
            _refuse_fractions(y, self.rows)
        rows = numbers_of(y, self._index)
        known = rows >= 0
        k = len(self.classes)
        self.pairs.add(rows[known], predicted[known])
        self._support += np.bincount(rows[known], minlength=k)
        self._predicted += np.bincount(predicted, minlength=k)
        self._right += np.bincount(predicted[rows == predicted], minlength=k)
        if known.all():
            return
        labels, places = told_apart(y)
        counts = np.bincount(places[~known], minlength=len(labels))
        for label, count in zip(labels.tolist(), counts.tolist(), strict=True):
            if count:
                name = label if len(self.unknown) < _MOST_UNKNOWN else "others"
                self.unknown[name] = self.unknown.get(name, 0) + count

    @property
    def rows(self) -> int:
        return int(self._support.sum()) + self.unknown_rows

    @property
    def unknown_rows(self) -> int:
        return sum(self.unknown.values())

    def scores(self) -> dict[str, Any]:
        """As scikit-learn has them: an unknown label is a label that is never found."""
        right, support, predicted = self._right, self._support, self._predicted
        with np.errstate(invalid="ignore"):
            recall, precision = right / support, right / predicted
        present = int((support > 0).sum()) + len(self.unknown)
        return {
            "rows": self.rows,
            "accuracy": right.sum() / max(1, self.rows),
            "balanced_accuracy": np.nansum(recall) / max(1, present),
            "classes": [
                {
                    "class": label,
                    "precision": precision[i],
                    "recall": recall[i],
                    "support": support[i],
                    "predicted": predicted[i],
                }
                for i, label in enumerate(self.classes)
            ],
            "confusion": self._confusion(),
            "unknown_labels": [{"label": label, "rows": rows} for label, rows in self.unknown.items()],
        }

    def _confusion(self) -> dict[str, Any]:
        if self.matrix is not None:
            return {"labels": self.classes, "counts": self.matrix}
        names = self.classes
        pairs = [(names[a], names[b], rows) for a, b, rows in self.pairs.most_confused(_LISTED_PAIRS)]
        return {"pairs": [{"label": a, "taken_for": b, "rows": rows} for a, b, rows in pairs]}


class Errors:
    """R2, RMSE and MAE of a regression."""

    def __init__(self) -> None:
        self.rows = 0
        self._weight = 0.0
        self._mean = self._spread = 0.0  # of the values: their mean, and the sum of squares around it
        self._squares = self._sizes = 0.0

    def add(
        self,
        y: npt.NDArray[Any],
        predicted: npt.NDArray[np.float64],
        weights: npt.NDArray[np.float64] | None = None,
    ) -> None:
        self.rows += len(y)
        y = y.astype(np.float64)
        w = np.ones(len(y)) if weights is None else weights
        weight = float(w.sum())
        if weight == 0:
            return
        # Two means are joined without a difference of large sums.
        mean = float(np.average(y, weights=w))
        step, total = mean - self._mean, self._weight + weight
        self._spread += float((w * (y - mean) ** 2).sum()) + step**2 * self._weight * weight / total
        self._mean += step * weight / total
        self._weight = total
        self._squares += float((w * (y - predicted) ** 2).sum())
        self._sizes += float((w * np.abs(y - predicted)).sum())

    def scores(self) -> dict[str, Any]:
        """As scikit-learn has them."""
        if self._weight == 0:
            raise DataError("There is no row to score: all weights are zero.")
        r2 = 1 - self._squares / self._spread if self._spread else float(self._squares == 0)
        if self.rows < 2:
            r2 = math.nan
        mse, mae = self._squares / self._weight, self._sizes / self._weight
        return {"rows": self.rows, "r2": r2, "rmse": mse**0.5, "mae": mae}
