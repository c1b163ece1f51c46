"""Scores that are added up batch by batch: counts of labels, or sums of errors."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt

from .datasets.labels import Labels
from .errors import DataError
from .labels import numbers_of, told_apart

_MOST_UNKNOWN = 10_000  # labels that are told apart; the wrong column would fill the memory


def refuse_other_kinds(y: Any, classes: npt.NDArray[Any] | None = None) -> None:
    """Refuse targets that can equal no prediction: text where the forest knows numbers, or the reverse.

    Without `classes` it predicts numbers.
    """
    known = {"numbers": None} if classes is None else _kinds(classes)
    for kind, example in _kinds(np.asarray(y)).items():
        if known and kind not in known:
            trained, one = next(iter(known.items()))
            such_as = "" if classes is None else f", such as {one!r:.60}"
            raise DataError(
                f"The rows to score have {kind} as their target, such as {example!r:.60}, but the forest was "
                f"trained on {trained}{such_as}: convert one into the other."
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


class Confusion:
    """How often each label was taken for each class; labels that the forest does not know are counted too."""

    def __init__(self, classes: npt.NDArray[Any]) -> None:
        self.classes = classes.tolist()
        self._index = {label: i for i, label in enumerate(self.classes)}
        self.matrix = np.zeros((len(classes), len(classes)), dtype=np.int64)  # label by prediction
        self.unknown: dict[Any, int] = {}
        self._unknown_predicted = np.zeros(len(classes), dtype=np.int64)

    def add(self, y: Labels, predicted: npt.NDArray[np.intp]) -> None:
        rows = numbers_of(y, self._index)
        known = rows >= 0
        k = len(self.classes)
        self.matrix += np.bincount(rows[known] * k + predicted[known], minlength=k * k).reshape(k, k)
        if known.all():
            return
        self._unknown_predicted += np.bincount(predicted[~known], minlength=k)
        labels, places = told_apart(y)
        counts = np.bincount(places[~known], minlength=len(labels))
        for label, count in zip(labels.tolist(), counts.tolist(), strict=True):
            if count:
                name = label if len(self.unknown) < _MOST_UNKNOWN else "others"
                self.unknown[name] = self.unknown.get(name, 0) + count

    @property
    def rows(self) -> int:
        return int(self.matrix.sum()) + self.unknown_rows

    @property
    def unknown_rows(self) -> int:
        return sum(self.unknown.values())

    def scores(self) -> dict[str, Any]:
        """As scikit-learn has them: an unknown label is a label that is never found."""
        right, support = np.diag(self.matrix), self.matrix.sum(axis=1)
        predicted = self.matrix.sum(axis=0) + self._unknown_predicted
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
            "confusion": {"labels": self.classes, "counts": self.matrix},
            "unknown_labels": [{"label": label, "rows": rows} for label, rows in self.unknown.items()],
        }


class Errors:
    """R2, RMSE and MAE of a regression."""

    def __init__(self) -> None:
        self.rows = 0
        self._mean = self._spread = 0.0  # of the values: their mean, and the sum of squares around it
        self._squares = self._sizes = 0.0

    def add(self, y: npt.NDArray[np.float64], predicted: npt.NDArray[np.float64]) -> None:
        n, mean = len(y), float(y.mean())
        # Two means are joined without a difference of large sums.
        step = mean - self._mean
        total = self.rows + n
        self._spread += float(((y - mean) ** 2).sum()) + step**2 * self.rows * n / total
        self._mean += step * n / total
        self.rows = total
        self._squares += float(((y - predicted) ** 2).sum())
        self._sizes += float(np.abs(y - predicted).sum())

    def scores(self) -> dict[str, Any]:
        n = max(1, self.rows)
        r2 = 1 - self._squares / self._spread if self._spread else float(self._squares == 0)
        return {"rows": self.rows, "r2": r2, "rmse": (self._squares / n) ** 0.5, "mae": self._sizes / n}
