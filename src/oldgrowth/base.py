"""What the estimators are made of: scikit-learn's interface on top of the pipeline in fit.py."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .datasets import ArrayDataset
from .errors import DataError
from .fit import Fitted, fit_forest
from .forest import Forest
from .model_file import write_model
from .params import Planner, jobs_of
from .predict import apply, predict_sums
from .report import FitReport


class _ForestBase(BaseEstimator):
    """What all forests share: checking the data, fitting, walking the trees."""

    _random_thresholds = False
    forest_: Forest
    fit_report_: FitReport
    oob_score_: float
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def feature_importances_(self) -> npt.NDArray[np.float64]:
        """The share of each feature in the decrease of impurity, averaged over the trees."""
        check_is_fitted(self, "forest_")
        return self._importances

    def apply(self, X: Any) -> npt.NDArray[np.int64]:
        """The number of the leaf that each row reaches in each tree, of shape (n_samples, n_estimators)."""
        x = self._check_rows(X)
        return apply(self.forest_, x, self._jobs(), self._names())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted forest to a file that `oldgrowth.load` reads, here or elsewhere.

        The file appears whole or not at all. It holds no code and is checked when it is read. The out-of-bag
        predictions of single rows are not in it, nor a metric given as `oob_score`, nor a `random_state` that
        is a generator.

        Parameters
        ----------
        path : str or path
            Where to write; what is there is replaced.

        Examples
        --------
        >>> import oldgrowth, tempfile
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = oldgrowth.RandomForestClassifier(n_estimators=8, random_state=0).fit(X, y)
        >>> path = tempfile.mkdtemp() + "/forest.og"
        >>> model.save(path)
        >>> oldgrowth.load(path).classes_
        array([0, 1, 2])
        """
        check_is_fitted(self, "forest_")
        write_model(path, self)

    def _jobs(self) -> int:
        return jobs_of(self.n_jobs)

    def _names(self) -> npt.NDArray[np.object_] | None:
        return getattr(self, "feature_names_in_", None)

    def _check_rows(self, X: Any) -> npt.NDArray[np.generic]:
        check_is_fitted(self, "forest_")
        x: npt.NDArray[np.generic] = validate_data(
            self, X, reset=False, dtype="numeric", ensure_all_finite=False
        )
        return x

    def _sums(self, X: Any, hard: bool = False) -> npt.NDArray[np.float64]:
        x = self._check_rows(X)
        return predict_sums(self.forest_, x, self._jobs(), hard, self._names())

    def _check_training_data(
        self, X: Any, y: Any, sample_weight: Any, numeric: bool
    ) -> tuple[npt.NDArray[np.generic], npt.NDArray[Any], npt.NDArray[np.float64] | None]:
        x, y = validate_data(
            self, X, y, dtype="numeric", ensure_all_finite=False, multi_output=True, y_numeric=numeric
        )
        if y.ndim == 2 and y.shape[1] > 1:
            raise DataError(
                f"y has {y.shape[1]} columns, but a forest has one target: fit one forest for each column."
            )
        y = column_or_1d(y, warn=True)
        if sample_weight is None:
            return x, y, None
        weights = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
        return x, y, None if np.all(weights == 1) else weights

    def _keep(self, fitted: Fitted) -> None:
        self.forest_ = fitted.forest
        self.fit_report_ = fitted.report
        self._importances = fitted.importances

    def _oob_rows(self, fitted: Fitted, data: ArrayDataset, n_rows: int) -> npt.NDArray[np.float64]:
        """The mean out-of-bag prediction of each of the caller's rows; NaN where there is none."""
        assert fitted.oob is not None
        rows = np.full((n_rows, fitted.oob.shape[1]), np.nan)
        rows[slice(None) if data.kept is None else data.kept] = fitted.oob
        without = int(np.isnan(fitted.oob[:, 0]).sum())
        if without:
            warnings.warn(
                f"{without} rows were seen by every tree and have no out-of-bag prediction (NaN): "
                "more trees, or weights with a mean of 1, would help.",
                UserWarning,
                stacklevel=3,
            )
        return rows


class Classifier(ClassifierMixin, _ForestBase):
    classes_: npt.NDArray[Any]
    oob_decision_function_: npt.NDArray[np.float64]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Classifier:
        """Fit a forest to the rows of X and their labels.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Numbers of any width; NaN is a missing value.
        y : array of shape (n_samples,)
            Labels: whole numbers, strings or booleans.
        sample_weight : array of shape (n_samples,), optional
            A row of weight 3 counts like three equal rows; a row of weight 0 is left out.
        """
        x, y, weights = self._check_training_data(X, y, sample_weight, numeric=False)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.n_classes_ = len(self.classes_)
        data = ArrayDataset(x, codes.astype(np.float64), self.n_classes_, weights, self._names())
        planner = Planner(self.get_params(), self._random_thresholds, classification=True)
        fitted = fit_forest(data, planner, self.classes_, int(self.verbose))
        self._keep(fitted)
        if fitted.oob is not None:
            self.oob_decision_function_ = self._oob_rows(fitted, data, len(y))
            seen = ~np.isnan(self.oob_decision_function_[:, 0])
            guess = self.classes_[np.nan_to_num(self.oob_decision_function_[seen]).argmax(axis=1)]
            score = self.oob_score if callable(self.oob_score) else accuracy_score
            self.oob_score_ = score(y[seen], guess) if seen.any() else np.nan
        return self

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The mean over the trees of each class's share in the leaf, or share of votes if voting='hard'."""
        sums = self._sums(X, hard=self.voting == "hard")
        return sums / self.forest_.n_trees

    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The label of the highest probability for each row."""
        sums = self._sums(X, hard=self.voting == "hard")
        return self.classes_.take(sums.argmax(axis=1))


class Regressor(RegressorMixin, _ForestBase):
    oob_prediction_: npt.NDArray[np.float64]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Regressor:
        """Fit a forest to the rows of X and their values.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Numbers of any width; NaN is a missing value.
        y : array of shape (n_samples,)
            Finite numbers.
        sample_weight : array of shape (n_samples,), optional
            A row of weight 3 counts like three equal rows; a row of weight 0 is left out.
        """
        x, y, weights = self._check_training_data(X, y, sample_weight, numeric=True)
        data = ArrayDataset(x, np.asarray(y, dtype=np.float64), 0, weights, self._names())
        planner = Planner(self.get_params(), self._random_thresholds, classification=False)
        fitted = fit_forest(data, planner, None, int(self.verbose))
        self._keep(fitted)
        if fitted.oob is not None:
            self.oob_prediction_ = self._oob_rows(fitted, data, len(y))[:, 0]
            seen = ~np.isnan(self.oob_prediction_)
            score = self.oob_score if callable(self.oob_score) else r2_score
            self.oob_score_ = score(y[seen], self.oob_prediction_[seen]) if seen.any() else np.nan
        return self

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """The mean of the trees' values for each row."""
        sums = self._sums(X)
        return sums[:, 0] / self.forest_.n_trees


def store_params(estimator: BaseEstimator, params: dict[str, Any]) -> None:
    for name, value in params.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)
