"""What the estimators are made of: scikit-learn's interface on top of the pipeline in fit.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_X_y, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ..checks import hard_votes, path_of
from ..datasets.base import Batch, Dataset
from ..datasets.labels import kept_apart
from ..errors import DataError
from ..fitting.pipeline import Fitted, fit_forest
from ..forest.batch_predict import (
    BatchPredictor,
    Kernel,
    Needs,
    columns_for,
    gathered,
    plan_array,
    plan_batches,
    targets_of,
)
from ..forest.forest import Forest
from ..forest.predict import ROWS_WORTH_A_THREAD, apply, predict_means
from ..forest.scoring import Errors, refuse_other_kinds
from ..planning.planner import Planner, check_jobs, jobs_of
from ..reporting.progress import Callback, Observers
from ..reporting.report import FitReport
from ..rows.array_rows import ArrayRows
from ..rows.class_codes import ScoredSpellings, class_numbers, numbers_of
from ..rows.streamed_rows import StreamedRows
from ..rows.training_rows import TrainingRows
from ..system.limits import limits_of, nearest_existing
from ..system.memory import check_memory_limit, memory_limit_of
from ..system.resource_limits import clear_about_limits
from .atomic_fit import whole_or_not_at_all
from .disk_estimate import DiskEstimating
from .exportable import Exportable
from .feature_names import check_whole_names, whole_names
from .inputs import (
    as_numbers,
    check_target,
    check_weights,
    explained,
    plain_numbers,
    refuse_other_sources,
    targets_to_score,
)
from .narrow_frame import narrow_frame
from .oob_scores import OobScorer
from .parameter_names import refuse_unknown
from .parameters import Parameter, checked, that_change_the_model

# For scikit-learn's validation: numbers stay in the type they have, and missing ones are welcome.
_AS_IT_IS: dict[str, Any] = {"dtype": "numeric", "ensure_all_finite": False}
# Of a row that is scored: its target, prediction, weight, and what is computed from them.
_SCORED_BYTES = 96


class _ForestBase(Exportable, DiskEstimating, BaseEstimator):
    """What all forests share: checking the data, fitting, walking the trees."""

    _random_thresholds = False
    _parameters: dict[str, Parameter]
    _keep_checkpoint = False
    forest_: Forest
    fit_report_: FitReport
    oob_score_: float
    n_features_in_: int

    def set_params(self, **params: Any) -> Self:
        """Set parameters, by the names that they have in the constructor."""
        refuse_unknown(type(self), params, self.get_params())
        super().set_params(**params)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def feature_importances_(self) -> npt.NDArray[np.float64]:
        """The share of each feature in the decrease of impurity, averaged over the trees."""
        check_is_fitted(self, "forest_")
        return self._importances

    @clear_about_limits
    def apply(self, X: Any) -> npt.NDArray[np.int64]:
        """The number of the leaf that each row reaches in each tree, of shape (n_samples, n_estimators)."""
        check_is_fitted(self, "forest_")
        row_bytes = 8 * self.forest_.n_trees
        return self._gathered(X, partial(apply, self.forest_), lambda leaves: leaves, row_bytes, row_bytes)

    def _check_use(self) -> None:
        """Refuse bad values of what predictions depend on, even where these rows do not need them."""
        check_jobs(self.n_jobs)
        check_memory_limit(self.memory_limit)

    def _jobs(self, n_rows: int) -> int:
        """Threads for these rows; counting the cores takes longer than predicting a row."""
        return 1 if n_rows < ROWS_WORTH_A_THREAD else jobs_of(self.n_jobs)

    def _names(self) -> npt.NDArray[np.object_] | None:
        return getattr(self, "feature_names_in_", None)

    def _check_rows(self, X: Any) -> npt.NDArray[np.generic]:
        if self._is_plain(X):
            return X
        check_is_fitted(self, "forest_")
        refuse_other_sources(X)
        with explained("X", X):
            X = plain_numbers(X)
            narrow = narrow_frame(X)
            x: npt.NDArray[np.generic] = validate_data(
                self, X, reset=False, skip_check_array=narrow is not None, **_AS_IT_IS
            )
        x = x if narrow is None else narrow
        x = as_numbers(x, X)
        check_whole_names(X, getattr(self, "_whole_names", None))
        return x

    def _is_plain(self, X: Any) -> bool:
        """Whether X is an array with which nothing can be wrong, as single rows to predict are in a hurry."""
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.dtype.kind in "fiu"
            and X.shape[0] > 0
            and hasattr(self, "forest_")
            and X.shape[1] == self.n_features_in_
            and self._names() is None
        )

    def _gathered(
        self,
        X: Any,
        kernel: Kernel,
        finish: Callable[[npt.NDArray[Any]], npt.NDArray[Any]],
        row_bytes: int,
        candidate_bytes: int,
    ) -> npt.NDArray[Any]:
        """What `finish` makes of the kernel's results for all rows.

        The kernel's results take `row_bytes` for each row of a batch, what is made of them `candidate_bytes`.
        """
        self._check_use()
        if isinstance(X, Dataset):
            held = candidate_bytes * (X.n_rows or 0)
            found = self._by_batch(X, kernel, Needs(row_bytes, candidate_bytes, held))
            return gathered((finish(made) for _, made in found), X.n_rows)
        x = self._check_rows(X)
        jobs = self._jobs(len(x))
        needs = Needs(row_bytes, candidate_bytes, candidate_bytes * len(x), n_rows=len(x))
        plan = plan_array(self.forest_, len(x), self.memory_limit, jobs, needs)
        predictor = BatchPredictor(kernel, plan, self._names())
        return gathered((finish(made) for made in predictor.of_array(x)), len(x))

    def _by_batch(
        self, dataset: Dataset, kernel: Kernel, needs: Needs
    ) -> Iterator[tuple[Batch, npt.NDArray[Any]]]:
        """The batches of a dataset with the kernel's results."""
        self._check_use()
        dataset = columns_for(dataset, self.n_features_in_, self._names())
        jobs = jobs_of(self.n_jobs)
        limit = memory_limit_of(self.memory_limit)
        plan = plan_batches(self.forest_, limit, jobs, needs.with_reading(dataset))
        return BatchPredictor(kernel, plan).of_dataset(dataset)

    def _predicting(self) -> Kernel:
        """Gives for each row the mean over the trees: probabilities of the classes, or a value."""
        check_is_fitted(self, "forest_")
        return partial(predict_means, self.forest_, hard_votes(self))

    def _predicted(self, dataset: Dataset) -> Iterator[tuple[Batch, npt.NDArray[np.float64]]]:
        """The batches of a dataset, each with the means over the trees, to be scored."""
        predicting = self._predicting()
        return self._by_batch(dataset, predicting, Needs(8 * self.forest_.n_outputs, _SCORED_BYTES))

    def _check_training_data(
        self, X: Any, y: Any, sample_weight: Any, numeric: bool
    ) -> tuple[npt.NDArray[np.generic], npt.NDArray[Any], npt.NDArray[np.float64] | None]:
        refuse_other_sources(X)
        self._whole_names = whole_names(X)
        check_target(y, numeric)
        with explained("X", X):
            X = plain_numbers(X)
            narrow = narrow_frame(X)
            if narrow is not None:
                validate_data(self, X, skip_check_array=True)
                x, y = check_X_y(narrow, y, multi_output=True, y_numeric=numeric, estimator=self, **_AS_IT_IS)
            else:
                x, y = validate_data(self, X, y, multi_output=True, y_numeric=numeric, **_AS_IT_IS)
            x = as_numbers(x, X)
            if y.ndim == 2 and y.shape[1] > 1:
                raise DataError(f"y has {y.shape[1]} columns, but a forest has one target: fit one for each.")
            y = column_or_1d(y, warn=True)
            if not numeric:
                check_classification_targets(y)
        if sample_weight is None:
            return x, y, None
        check_weights(sample_weight, len(x))
        with explained("sample_weight"):
            weights = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
        return x, y, None if np.all(weights == 1) else weights

    def _streamed(self, dataset: Dataset, y: Any, sample_weight: Any, classification: bool) -> StreamedRows:
        _refuse_with_a_dataset(y, sample_weight)
        self.n_features_in_, self._whole_names = dataset.n_features, None
        if dataset.feature_names is not None:
            self.feature_names_in_ = np.array(dataset.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if self.spill_dir is not None:
            dataset = dataset.unpacked_in(nearest_existing(path_of("spill_dir", self.spill_dir)))
        return StreamedRows(dataset, classification)

    def _fit_rows(self, rows: TrainingRows, classification: bool, callback: Callback | None) -> Fitted:
        given = self.get_params()
        params = checked(self._parameters, given)
        planner = Planner(params, self._random_thresholds, classification, that_change_the_model(given))
        scorer = OobScorer(lambda: rows.classes, self.oob_score, keep=rows.random_access)
        observers = Observers(params["verbose"], callback)
        fitted = fit_forest(rows, planner, limits_of(params), observers, scorer, self._keep_checkpoint)
        self.forest_ = fitted.forest
        self.fit_report_ = fitted.report
        self._importances = fitted.importances
        if fitted.oob is not None:
            self.oob_score_ = fitted.oob.score
        return fitted

    def _oob_rows(self, fitted: Fitted, rows: ArrayRows, n_rows: int) -> npt.NDArray[np.float64]:
        """The mean out-of-bag prediction of each of the caller's rows; NaN where there is none."""
        kept: npt.NDArray[np.float64] = fitted.oob.rows
        if rows.kept is None:
            return kept
        means = np.full((n_rows, kept.shape[1]), np.nan)
        means[rows.kept] = kept
        return means


def _refuse_with_a_dataset(y: Any, sample_weight: Any) -> None:
    for name, given in (("y", y), ("sample_weight", sample_weight)):
        if given is not None:
            raise DataError(f"{name} must not be given with a dataset, which has its own: see open_dataset.")


def _given(y: Any, what: str) -> Any:
    if y is None:
        raise DataError(f"y is missing: a score needs the {what} of the rows.")
    return y


class Classifier(ClassifierMixin, _ForestBase):
    classes_: npt.NDArray[Any]
    oob_decision_function_: npt.NDArray[np.float64]

    @whole_or_not_at_all
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, callback: Callback | None = None
    ) -> Self:
        """Fit a forest to the rows of X and their labels.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features), or dataset
            Numbers of any width; NaN is a missing value. A dataset, from `open_dataset`, has its target and
            weights in it, and need not fit memory.
        y : array of shape (n_samples,)
            Labels: whole numbers, strings or booleans.
        sample_weight : array of shape (n_samples,), optional
            A row of weight 3 counts like three equal rows; a row of weight 0 is left out.
        callback : function, optional
            Called with a `FitProgress` (stage, rows, bytes read and written, memory) when a stage begins and
            ends, and up to ten times a second between. What it returns is ignored; to stop the fit, raise:
            it ends as if interrupted, and the exception comes out of `fit`.
        """
        if isinstance(X, Dataset):
            streamed = self._streamed(X, y, sample_weight, classification=True)
            self._fit_rows(streamed, True, callback)
            assert streamed.classes is not None
            self.classes_, self.n_classes_ = streamed.classes, len(streamed.classes)
            return self
        y = kept_apart(y)
        x, y, weights = self._check_training_data(X, y, sample_weight, numeric=False)
        self.classes_, targets = class_numbers(y)
        self.n_classes_ = len(self.classes_)
        rows = ArrayRows(x, targets, self.n_classes_, weights, self._names(), self.classes_)
        rows.checked = self.checkpoint_dir is not None  # when resumed, the arrays may be others
        fitted = self._fit_rows(rows, True, callback)
        if fitted.oob is not None:
            self.oob_decision_function_ = self._oob_rows(fitted, rows, len(y))
        return self

    @clear_about_limits
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The mean over the trees of each class's share in the leaf, or share of votes if voting='hard'."""
        predicting = self._predicting()
        row_bytes = 8 * self.forest_.n_outputs
        return self._gathered(X, predicting, lambda means: means, row_bytes, row_bytes)

    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            probabilities = self.predict_proba(X)
            return np.log(probabilities, out=probabilities)

    @clear_about_limits
    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The label of the highest probability for each row."""
        predicting = self._predicting()
        row_bytes, candidate_bytes = 8 * self.forest_.n_outputs, 8 + self.classes_.itemsize
        best = self._gathered(X, predicting, lambda means: means.argmax(axis=1), row_bytes, candidate_bytes)
        return self.classes_.take(best)

    @clear_about_limits
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The accuracy on rows with their labels, or on a dataset that has them."""
        check_is_fitted(self, "forest_")
        if not isinstance(X, Dataset):
            y = kept_apart(_given(y, "labels"))
            predicted = self.predict(X)
            y = targets_to_score(y, sample_weight, len(predicted), numeric=False)
            refuse_other_kinds(y, self.classes_)
            if self.classes_.dtype == object or y.dtype == object:
                # scikit-learn would give all texts the width of the longest.
                return float(np.average(y.astype(object) == predicted, weights=sample_weight))
            return float(accuracy_score(y, predicted, sample_weight=sample_weight))
        _refuse_with_a_dataset(y, sample_weight)
        right = total = 0.0
        classes = {label: i for i, label in enumerate(self.classes_.tolist())}
        spellings = ScoredSpellings(X.target, self.classes_)
        for batch, means in self._predicted(X):
            spellings.check(batch)
            weights = np.ones(len(means)) if batch.weights is None else batch.weights
            labels = targets_of(batch, X)
            refuse_other_kinds(labels, self.classes_, batch.first_row)
            hit = numbers_of(labels, classes) == means.argmax(axis=1)
            right, total = right + float(weights[hit].sum()), total + float(weights.sum())
        if total == 0:
            raise DataError("There is no row to score: all weights are zero.")
        return right / total


class Regressor(RegressorMixin, _ForestBase):
    oob_prediction_: npt.NDArray[np.float64]

    @whole_or_not_at_all
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, callback: Callback | None = None
    ) -> Self:
        """Fit a forest to the rows of X and their values.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features), or dataset
            Numbers of any width; NaN is a missing value. A dataset, from `open_dataset`, has its target and
            weights in it, and need not fit memory.
        y : array of shape (n_samples,)
            Finite numbers.
        sample_weight : array of shape (n_samples,), optional
            A row of weight 3 counts like three equal rows; a row of weight 0 is left out.
        callback : function, optional
            Called with a `FitProgress` (stage, rows, bytes read and written, memory) when a stage begins and
            ends, and up to ten times a second between. What it returns is ignored; to stop the fit, raise:
            it ends as if interrupted, and the exception comes out of `fit`.
        """
        if isinstance(X, Dataset):
            self._fit_rows(self._streamed(X, y, sample_weight, classification=False), False, callback)
            return self
        x, y, weights = self._check_training_data(X, y, sample_weight, numeric=True)
        rows = ArrayRows(x, np.asarray(y, dtype=np.float64), 0, weights, self._names())
        rows.checked = self.checkpoint_dir is not None
        fitted = self._fit_rows(rows, False, callback)
        if fitted.oob is not None:
            self.oob_prediction_ = self._oob_rows(fitted, rows, len(y))[:, 0]
        return self

    @clear_about_limits
    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """The mean of the trees' values for each row."""
        return self._gathered(X, self._predicting(), lambda means: means[:, 0], 8, 8)

    @clear_about_limits
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R2 on rows with their values, or on a dataset that has them."""
        check_is_fitted(self, "forest_")
        if not isinstance(X, Dataset):
            refuse_other_kinds(_given(y, "values"))
            predicted = self.predict(X)
            y = targets_to_score(y, sample_weight, len(predicted), numeric=True)
            return float(r2_score(y, predicted, sample_weight=sample_weight))
        _refuse_with_a_dataset(y, sample_weight)
        errors = Errors()
        for batch, means in self._predicted(X):
            targets = targets_of(batch, X)
            refuse_other_kinds(targets)
            errors.add(targets, means[:, 0], batch.weights)
        return float(errors.scores()["r2"])


def store_params(estimator: BaseEstimator, params: dict[str, Any]) -> None:
    for name, value in params.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)
