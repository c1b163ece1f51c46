"""Forests that predict labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..datasets.base import Dataset
from ..datasets.labels import kept_apart
from ..forest.scoring import Accuracy, check_kind
from ..rows.array_rows import ArrayRows
from ..rows.class_codes import class_numbers, numbers_of
from ..system.resource_limits import clear_about_limits
from .base import ForestBase, Weights
from .inputs import given_targets, refuse_with_a_dataset, targets_to_score


class Classifier(ClassifierMixin, ForestBase):
    _classification = True
    classes_: npt.NDArray[Any]
    oob_decision_function_: npt.NDArray[np.float64]

    def _array_rows(self, x: npt.NDArray[Any], y: npt.NDArray[Any], weights: Weights) -> ArrayRows:
        classes, numbers = class_numbers(y)
        return ArrayRows(x, numbers, len(classes), weights, self._names(), classes)

    def _set_classes(self, classes: npt.NDArray[Any] | None) -> None:
        assert classes is not None
        self.classes_, self.n_classes_ = classes, len(classes)

    def _set_oob(self, means: npt.NDArray[np.float64]) -> None:
        self.oob_decision_function_ = means

    @clear_about_limits
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Probability of each class: its share in the leaves, averaged over the trees, or its share of the
        votes if voting='hard'."""
        predicting = self._predicting()
        row_bytes = 8 * self.forest_.n_outputs
        return self._gathered(X, predicting, lambda means: means, row_bytes, row_bytes)

    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            probabilities = self.predict_proba(X)
            return np.log(probabilities, out=probabilities)

    @clear_about_limits
    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Label of the highest probability for each row."""
        predicting = self._predicting()
        row_bytes, kept_bytes = 8 * self.forest_.n_outputs, 8 + self.classes_.itemsize
        best = self._gathered(X, predicting, lambda means: means.argmax(axis=1), row_bytes, kept_bytes)
        return self.classes_.take(best)

    @clear_about_limits
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy on rows with their labels, or on a dataset that has them and may be larger than memory."""
        check_is_fitted(self, "forest_")
        accuracy = Accuracy()
        numbers = {label: i for i, label in enumerate(self.classes_.tolist())}
        if isinstance(X, Dataset):
            refuse_with_a_dataset(y, sample_weight)
            for batch in self._scored(X):
                accuracy.add(numbers_of(batch.targets, numbers), batch.classes, batch.weights)
            return accuracy.score()
        y = kept_apart(given_targets(y, "labels"))
        predicted = self._gathered(
            X, self._predicting(), lambda means: means.argmax(axis=1), 8 * self.forest_.n_outputs, 8
        )
        labels, weights = targets_to_score(y, sample_weight, len(predicted), numeric=False)
        check_kind(labels, self.classes_)
        accuracy.add(numbers_of(labels, numbers), predicted, weights)
        return accuracy.score()
