"""Forests that predict values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.validation import check_is_fitted

from ..datasets.base import Dataset
from ..forest.scoring import RegressionErrors, check_kind
from ..messages.log import warn
from ..rows.array_rows import ArrayRows
from ..system.resource_limits import clear_about_limits
from .base import ForestBase, Weights
from .inputs import given_targets, refuse_with_a_dataset, targets_to_score


class Regressor(RegressorMixin, ForestBase):
    _classification = False
    oob_prediction_: npt.NDArray[np.float64]

    def _array_rows(self, x: npt.NDArray[Any], y: npt.NDArray[Any], weights: Weights) -> ArrayRows:
        return ArrayRows(x, np.asarray(y, dtype=np.float64), 0, weights, self._names())

    def _set_oob(self, means: npt.NDArray[np.float64]) -> None:
        self.oob_prediction_ = means[:, 0]

    @clear_about_limits
    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """Predicted value for each row: the mean over the trees."""
        return self._gathered(X, self._predicting(), lambda means: means[:, 0], 8, 8)

    @clear_about_limits
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R2 on rows with their values, or on a dataset that has them and may be larger than memory."""
        check_is_fitted(self, "forest_")
        errors = RegressionErrors()
        if isinstance(X, Dataset):
            refuse_with_a_dataset(y, sample_weight)
            for batch in self._scored(X):
                errors.add(batch.target_values, batch.values, batch.weights)
        else:
            check_kind(given_targets(y, "values"))
            predicted = self.predict(X)
            values, weights = targets_to_score(y, sample_weight, len(predicted), numeric=True)
            errors.add(values, predicted, weights)
        r2 = errors.score()
        if math.isnan(r2):
            warn("R2 is not defined for fewer than two rows.", UndefinedMetricWarning, stacklevel=3)
        return r2
