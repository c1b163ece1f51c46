"""Scores of predictions, added up batch by batch in constant memory: accuracy, confusions, R2.

Everything that scores predictions does it here: `score` of the estimators, `oldgrowth evaluate`, plots,
out-of-bag scores and the demo. Results are those of scikit-learn's metrics up to rounding.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from numbers import Number
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..datasets.base import Dataset
from ..datasets.batches import Batch
from ..datasets.labels import CodedLabels, Labels
from ..errors import DataError, NoTargetError
from ..rows.class_codes import ScoredSpellings, numbers_of, told_apart
from .batch_predict import Needs
from .forest import Forest

Floats: TypeAlias = npt.NDArray[np.float64]

_MOST_UNKNOWN = 10_000  # distinct unknown labels that are counted; the wrong column would fill the memory
MOST_IN_MATRIX = 1024  # classes whose confusions are counted in a matrix
_MOST_PAIRS = 2**20  # distinct pairs of label and prediction that are counted if there are more classes
_LISTED_PAIRS = 10_000
_BLOCK_ROWS = 65_536
# Of a row that is scored: its target, prediction, weight, and what is computed from them.
_SCORED_BYTES = 96


def scoring_needs(forest: Forest) -> Needs:
    """The memory that batches need to be predicted and scored."""
    return Needs(8 * forest.n_outputs, _SCORED_BYTES)


@dataclass(frozen=True)
class ScoredBatch:
    """Rows to score: their targets, the means over the trees, and their weights, if any."""

    targets: Labels
    means: Floats
    weights: Floats | None

    @property
    def target_values(self) -> npt.NDArray[Any]:
        """The targets of a regression."""
        assert not isinstance(self.targets, CodedLabels)  # text was refused
        return self.targets

    @property
    def classes(self) -> npt.NDArray[np.intp]:
        """The number of the class that is predicted for each row."""
        return self.means.argmax(axis=1)

    @property
    def values(self) -> Floats:
        """The value that is predicted for each row."""
        return self.means[:, 0]


def with_targets(
    predicted: Iterable[tuple[Batch, Floats]], dataset: Dataset, classes: npt.NDArray[Any] | None = None
) -> Iterator[ScoredBatch]:
    """The predicted batches of a dataset with their targets, which are checked; `classes` of a classifier."""
    spellings = None if classes is None else ScoredSpellings(dataset.target, classes)
    for batch, means in predicted:
        if batch.y is None:
            raise NoTargetError(dataset.way_to_target)
        if spellings is not None:
            spellings.check(batch)
        check_kind(batch.y, classes, batch.first_row, dataset.target)
        yield ScoredBatch(batch.y, means, batch.weights)


def check_kind(
    y: Labels, classes: npt.NDArray[Any] | None = None, first_row: int = 0, column: str | None = None
) -> None:
    """Refuse targets that can equal no prediction: text where the forest knows numbers, or the reverse, or
    fractions where it knows classes.

    Without `classes` it predicts numbers.
    """
    values = y.labels if isinstance(y, CodedLabels) else np.asarray(y)
    if classes is not None:
        _refuse_fractions(values, first_row)
    known = {"numbers": None} if classes is None else _kinds(classes)
    for kind, example in _kinds(values).items():
        if known and kind not in known:
            trained, one = next(iter(known.items()))
            such_as = "" if classes is None else f", such as {one!r:.60}"
            named = "" if column is None else f" {column!r}"
            raise DataError(
                f"The rows to score have {kind} as their target{named}, such as {example!r:.60}, but the "
                f"forest was trained on {trained}{such_as}: convert one into the other."
            )


def _refuse_fractions(y: npt.NDArray[Any], first_row: int) -> None:
    if y.dtype.kind == "f" and not np.all(whole := y == np.floor(y)):
        row = int(np.argmin(whole))
        raise DataError(
            f"The rows to score have {y.reshape(-1)[row]} as their target in row {first_row + row}, which is "
            "not whole, but the forest was trained on classes."
        )


def _kinds(labels: npt.NDArray[Any]) -> dict[str, Any]:
    """The kinds of labels that occur, text or numbers, each with an example."""
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


class _Sums(ABC):
    """Sums over rows. They are added up in blocks of a fixed number of rows, so that rounding does not
    depend on the batches in which the rows come."""

    def __init__(self) -> None:
        self.rows = 0
        self._weight = 0.0
        self._block = np.empty((3, _BLOCK_ROWS))  # targets, predictions, weights
        self._filled = 0

    def add(
        self, targets: npt.NDArray[Any], predicted: npt.NDArray[Any], weights: Floats | None = None
    ) -> None:
        first, n = 0, len(targets)
        while first < n:
            last = min(n, first + _BLOCK_ROWS - self._filled)
            part = slice(self._filled, self._filled + last - first)
            self._block[0, part], self._block[1, part] = targets[first:last], predicted[first:last]
            self._block[2, part] = 1 if weights is None else weights[first:last]
            first, self._filled = last, part.stop
            if self._filled == _BLOCK_ROWS:
                self._finish_block()
        self.rows += n

    def _finish_block(self) -> None:
        targets, predicted, weights = self._block[:, : self._filled]
        weight = float(weights.sum())
        if weight > 0:
            self._add_block(targets, predicted, weights, weight)
            self._weight += weight
        self._filled = 0

    @abstractmethod
    def _add_block(self, targets: Floats, predicted: Floats, weights: Floats, weight: float) -> None:
        """Add rows of this weight in all, which is not zero."""

    def _finish(self) -> None:
        """To be called when all rows were added."""
        self._finish_block()
        if self._weight == 0:
            raise DataError("There is no row to score: all weights are zero.")

    @abstractmethod
    def score(self) -> float:
        """The score of all rows that were added."""


class Accuracy(_Sums):
    """The share of rows, by weight, whose class is predicted. Classes are numbers; -1 is an unknown one."""

    def __init__(self) -> None:
        super().__init__()
        self._right = 0.0

    def _add_block(self, targets: Floats, predicted: Floats, weights: Floats, weight: float) -> None:
        self._right += float(weights[targets == predicted].sum())

    def score(self) -> float:
        self._finish()
        return self._right / self._weight


class RegressionErrors(_Sums):
    """R2, RMSE and MAE of predicted values."""

    def __init__(self) -> None:
        super().__init__()
        self._mean = self._spread = 0.0  # of the targets: their mean, and the sum of squares around it
        self._squares = self._sizes = 0.0  # of the errors

    def _add_block(self, targets: Floats, predicted: Floats, weights: Floats, weight: float) -> None:
        # Means are merged without subtracting large sums from each other.
        mean = float(np.average(targets, weights=weights))
        step, total = mean - self._mean, self._weight + weight
        around = float((weights * (targets - mean) ** 2).sum())
        self._spread += around + step**2 * self._weight * weight / total
        self._mean += step * weight / total
        errors = targets - predicted
        self._squares += float((weights * errors**2).sum())
        self._sizes += float((weights * np.abs(errors)).sum())

    def score(self) -> float:
        """R2; NaN for fewer than two rows."""
        self._finish()
        if self.rows < 2:
            return math.nan
        if self._spread == 0:
            return 1.0 if self._squares == 0 else 0.0
        return 1 - self._squares / self._spread

    def scores(self) -> dict[str, Any]:
        r2 = self.score()
        mse, mae = self._squares / self._weight, self._sizes / self._weight
        return {"rows": self.rows, "r2": r2, "rmse": mse**0.5, "mae": mae}


class _Pairs:
    """Counts of (label, prediction): in a matrix, or for many classes only of pairs that occur."""

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
        """The most frequent wrong predictions: label, prediction and count."""
        labels, predicted = np.divmod(self._keys, self._k)
        wrong = np.flatnonzero((labels != predicted) & (self._counts > 0))
        most = wrong[np.argsort(-self._counts[wrong], kind="stable")[:n]]
        return list(
            zip(labels[most].tolist(), predicted[most].tolist(), self._counts[most].tolist(), strict=True)
        )


class Confusion:
    """How often each label was predicted as each class; labels unknown to the forest are counted too."""

    def __init__(self, classes: npt.NDArray[Any]) -> None:
        k = len(classes)
        self.classes = classes.tolist()
        self._index = {label: i for i, label in enumerate(self.classes)}
        self.pairs = _Pairs(k)
        self._right, self._support, self._predicted = (np.zeros(k, dtype=np.int64) for _ in range(3))
        self.unknown: dict[Any, int] = {}

    @property
    def matrix(self) -> npt.NDArray[np.int64] | None:
        """Numbers of rows by label and prediction; None if there are too many classes."""
        return self.pairs.matrix()

    def add(self, y: Labels, predicted: npt.NDArray[np.intp]) -> None:
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
        """The scores as scikit-learn defines them; an unknown label has recall 0."""
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
