"""What all forests share: scikit-learn's interface on top of fitting and predicting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_X_y, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ..checks import hard_votes, path_of
from ..datasets.arguments import library_of
from ..datasets.base import Dataset
from ..datasets.batches import Batch
from ..datasets.labels import kept_apart
from ..datasets.levels import FeatureLevels
from ..errors import DataError, NotNumbersError
from ..fitting.pipeline import Fitted, fit_forest
from ..forest.batch_predict import (
    BatchPredictor,
    Kernel,
    Needs,
    columns_for,
    gathered,
    plan_array,
    plan_batches,
)
from ..forest.forest import Forest
from ..forest.predict import ROWS_WORTH_A_THREAD, apply, predict_means
from ..forest.scoring import ScoredBatch, scoring_needs, with_targets
from ..messages.log import warn
from ..messages.warnings import NoMoreTreesWarning
from ..planning.planner import Planner, check_jobs, jobs_of
from ..reporting.progress import Callback, Observers
from ..reporting.report import FitReport
from ..rows.array_rows import ArrayRows
from ..rows.streamed_rows import StreamedRows
from ..rows.training_rows import TrainingRows
from ..storage.votes import AllVotes
from ..system.limits import limits_of, nearest_existing
from ..system.memory import check_memory_limit, memory_limit_of
from ..system.resource_limits import check_address_space, clear_about_limits
from .atomic_fit import whole_or_not_at_all
from .categories import (
    categorical_places,
    coded,
    dataset_of,
    learned,
    levels_by_name,
    may_have_text,
)
from .disk_estimate import DiskEstimating
from .exportable import Exportable
from .feature_names import check_whole_names, whole_names
from .inputs import (
    as_numbers,
    bad_columns,
    check_target,
    explained,
    plain_numbers,
    refuse_other_sources,
    refuse_with_a_dataset,
    row_weights,
)
from .narrow_frame import narrow_frame
from .oob_scores import OobScorer
from .parameter_checks import FROM_DTYPE, categorical
from .parameter_names import refuse_unknown
from .parameters import Parameter, checked, that_change_the_model
from .single_trees import SingleTrees
from .warm_start import add_trees, check_columns, earlier_of, fitted_before

Weights: TypeAlias = npt.NDArray[np.float64] | None

# For scikit-learn's validation: numbers keep their type, and missing values are allowed.
_AS_IT_IS: dict[str, Any] = {"dtype": "numeric", "ensure_all_finite": False}


class ForestBase(Exportable, SingleTrees, DiskEstimating, BaseEstimator, ABC):
    """Checks the data, fits, predicts; what differs for labels and values is in Classifier and Regressor."""

    _classification: bool
    _random_thresholds = False
    _parameters: dict[str, Parameter]
    _keep_checkpoint = False
    forest_: Forest
    fit_report_: FitReport
    recipe_: dict[str, Any] | None
    _levels: FeatureLevels | None = None
    _votes: AllVotes | None = None  # of a forest that trees may be added to
    oob_score_: float
    n_features_in_: int

    def set_params(self, **params: Any) -> Self:
        """Set parameters by their names in the constructor."""
        refuse_unknown(type(self), params, self.get_params())
        super().set_params(**params)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, callback: Callback | None = None
    ) -> Self:
        """Fit a forest to the rows of X and their targets.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features), or dataset
            Numbers of any width; NaN is a missing value. A dataset, from `open_dataset`, has its target and
            weights in it, and need not fit in memory.
        y : array of shape (n_samples,)
            Classifiers take labels: whole numbers, strings or booleans. Regressors take finite numbers.
        sample_weight : array of shape (n_samples,), optional
            A row of weight 3 counts like three equal rows; a row of weight 0 is left out.
        callback : function, optional
            Called with a `FitProgress` (stage, rows, bytes read and written, memory) when a stage begins and
            ends, and up to ten times a second in between. Its result is ignored. To stop the fit, raise an
            exception: the fit ends as if interrupted, and `fit` raises the exception.

        Returns
        -------
        self
        """
        before = fitted_before(self)
        if before is not None and before.forest_.n_trees == self.n_estimators:
            warn(NoMoreTreesWarning(self.n_estimators))
            return self
        self._fit(X, y, sample_weight, callback, before)
        return self

    @whole_or_not_at_all
    def _fit(self, X: Any, y: Any, sample_weight: Any, callback: Callback | None, before: Any) -> None:
        """Fit all trees, or those that `before` lacks."""
        if isinstance(X, Dataset):
            streamed = self._streamed(X, y, sample_weight)
            fitted = self._fit_rows(streamed, callback, before)
            self._levels = streamed.feature_levels
            self._set_classes(streamed.classes)
        else:
            x, y, weights = self._check_training_data(X, y, sample_weight)
            rows = self._array_rows(x, y, weights)
            rows.use_levels(self._levels)
            # A resumed fit, or one that adds trees, may be given other arrays.
            rows.checked = self.checkpoint_dir is not None or (self.warm_start and bool(self.oob_score))
            fitted = self._fit_rows(rows, callback, before)
            self._set_classes(rows.classes)
            if fitted.oob is not None:
                self._set_oob(_oob_means(fitted, rows, len(y)))
        if before is not None:
            add_trees(before, self, fitted.continued)

    @abstractmethod
    def _array_rows(self, x: npt.NDArray[Any], y: npt.NDArray[Any], weights: Weights) -> ArrayRows:
        """The rows of checked arrays, with targets as the trees learn them."""

    def _set_classes(self, classes: npt.NDArray[Any] | None) -> None:
        """Keep the classes that a fit has found; values have none."""

    @abstractmethod
    def _set_oob(self, means: npt.NDArray[np.float64]) -> None:
        """Keep the mean out-of-bag predictions of all rows."""

    @property
    def feature_importances_(self) -> npt.NDArray[np.float64]:
        """Share of each feature in the decrease of impurity, averaged over the trees."""
        check_is_fitted(self, "forest_")
        return self._importances

    @property
    def levels_(self) -> dict[Any, list[Any]]:
        """The levels of the categorical features, by the names or numbers of these."""
        check_is_fitted(self, "forest_")
        return levels_by_name(self._levels or (), self._names())

    @clear_about_limits
    def apply(self, X: Any) -> npt.NDArray[np.int64]:
        """Number of the leaf that each row reaches in each tree, of shape (n_samples, n_estimators)."""
        check_is_fitted(self, "forest_")
        row_bytes = 8 * self.forest_.n_trees
        return self._gathered(X, partial(apply, self.forest_), lambda leaves: leaves, row_bytes, row_bytes)

    def _check_use(self) -> None:
        """Refuse invalid parameters of prediction, even if these rows do not need them."""
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
        with explained("X", X, self._takes_text):
            if self._levels is not None:
                return self._coded_rows(X)
            X = plain_numbers(X)
            narrow = narrow_frame(X)
            x: npt.NDArray[np.generic] = validate_data(
                self, X, reset=False, skip_check_array=narrow is not None, **_AS_IT_IS
            )
        x = x if narrow is None else narrow
        x = as_numbers(x, X)
        check_whole_names(X, getattr(self, "_whole_names", None))
        return x

    def _takes_text(self) -> bool:
        return self._levels is not None

    def _coded_rows(self, X: Any) -> npt.NDArray[np.generic]:
        """X with codes in place of the values of categories."""
        assert self._levels is not None
        dataset = dataset_of(X)
        validate_data(self, X, reset=False, skip_check_array=dataset is not None, **_AS_IT_IS)
        if dataset is None:
            raise NotNumbersError(bad_columns(X) or {0: "other values"}, library_of(X))
        check_whole_names(X, getattr(self, "_whole_names", None))
        return coded(dataset, self._levels, self._jobs(dataset.n_rows or 0))

    def _is_plain(self, X: Any) -> bool:
        """Whether X needs no validation, which would take longer than predicting a single row."""
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.dtype.kind in "fiu"
            and X.shape[0] > 0
            and hasattr(self, "forest_")
            and X.shape[1] == self.n_features_in_
            and self._names() is None
            and self._levels is None
        )

    def _gathered(
        self,
        X: Any,
        kernel: Kernel,
        finish: Callable[[npt.NDArray[Any]], npt.NDArray[Any]],
        row_bytes: int,
        kept_bytes: int,
    ) -> npt.NDArray[Any]:
        """The results of the kernel for all rows, each batch passed through `finish`.

        A row takes `row_bytes` in the result of the kernel, and `kept_bytes` in that of `finish`.
        """
        self._check_use()
        if isinstance(X, Dataset):
            held = kept_bytes * (X.n_rows or 0)
            found = self._by_batch(X, kernel, Needs(row_bytes, kept_bytes, held))
            return gathered((finish(made) for _, made in found), X.n_rows)
        x = self._check_rows(X)
        jobs = self._jobs(len(x))
        needs = Needs(row_bytes, kept_bytes, kept_bytes * len(x), n_rows=len(x))
        plan = plan_array(self.forest_, len(x), self.memory_limit, jobs, needs)
        predictor = BatchPredictor(kernel, plan, self._names())
        return gathered((finish(made) for made in predictor.of_array(x)), len(x))

    def _by_batch(
        self, dataset: Dataset, kernel: Kernel, needs: Needs
    ) -> Iterator[tuple[Batch, npt.NDArray[Any]]]:
        """The batches of a dataset with the kernel's results."""
        self._check_use()
        dataset = columns_for(dataset.made_by(self.recipe_), self.n_features_in_, self._names())
        dataset = dataset.coded_for(self._levels)
        jobs = jobs_of(self.n_jobs)
        check_address_space()
        limit = memory_limit_of(self.memory_limit)
        plan = plan_batches(self.forest_, limit, jobs, needs.with_reading(dataset))
        return BatchPredictor(kernel, plan).of_dataset(dataset)

    def _predicting(self) -> Kernel:
        """The kernel that gives the mean over the trees for each row: class probabilities, or a value."""
        check_is_fitted(self, "forest_")
        return partial(predict_means, self.forest_, hard_votes(self))

    def _scored(self, dataset: Dataset) -> Iterator[ScoredBatch]:
        """The batches of a dataset with what is predicted for them, to be scored."""
        predicted = self._by_batch(dataset, self._predicting(), scoring_needs(self.forest_))
        return with_targets(predicted, dataset, getattr(self, "classes_", None))

    def _check_training_data(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[npt.NDArray[np.generic], npt.NDArray[Any], Weights]:
        numeric = not self._classification
        y = y if numeric else kept_apart(y)
        refuse_other_sources(X)
        self._whole_names, self.recipe_ = whole_names(X), None
        check_target(y, numeric)
        with explained("X", X, self._takes_text):
            narrow = self._learned_rows(X, sample_weight)
            if narrow is None:
                X = plain_numbers(X)
                narrow = narrow_frame(X)
            if narrow is not None:
                validate_data(self, X, skip_check_array=True)
                x, y = check_X_y(narrow, y, multi_output=True, y_numeric=numeric, estimator=self, **_AS_IT_IS)
            else:
                x, y = validate_data(self, X, y, multi_output=True, y_numeric=numeric, **_AS_IT_IS)
            x = x if self._levels is not None else as_numbers(x, X)
            if y.ndim == 2 and y.shape[1] > 1:
                raise DataError(
                    f"y has {y.shape[1]} columns, but a forest has one target: fit a forest for each column."
                )
            y = column_or_1d(y, warn=True)
            if not numeric:
                check_classification_targets(y)
        weights = row_weights(sample_weight, len(x))
        return x, y, None if weights is None or np.all(weights == 1) else weights

    def _learned_rows(self, X: Any, sample_weight: Any) -> npt.NDArray[np.generic] | None:
        """X with codes in place of the values of categories, whose levels are learned; None without any."""
        self._levels = None
        given = categorical("categorical_features", self.categorical_features)
        if (given is None or given == FROM_DTYPE) and not may_have_text(X):
            return None
        dataset = dataset_of(X)
        places = () if dataset is None else categorical_places(given, dataset)
        if dataset is None or not places:
            return None
        assert dataset.n_rows is not None
        self._levels = learned(dataset, places, row_weights(sample_weight, dataset.n_rows))
        return coded(dataset, self._levels, self._jobs(dataset.n_rows or 0))

    def _streamed(self, dataset: Dataset, y: Any, sample_weight: Any) -> StreamedRows:
        refuse_with_a_dataset(y, sample_weight)
        self.n_features_in_, self._whole_names = dataset.n_features, None
        self.recipe_, self._levels = dataset.recipe, None
        if dataset.feature_names is not None:
            self.feature_names_in_ = np.array(dataset.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if self.spill_dir is not None:
            dataset = dataset.unpacked_in(nearest_existing(path_of("spill_dir", self.spill_dir)))
        categorical = categorical_places(self.categorical_features, dataset)
        return StreamedRows(dataset, self._classification, categorical)

    def _fit_rows(self, rows: TrainingRows, callback: Callback | None, before: Any = None) -> Fitted:
        given = self.get_params()
        params = checked(self._parameters, given)
        check_address_space()
        earlier = None
        if before is not None:
            check_columns(before, self, rows.categorical)
            earlier = earlier_of(before)
        identity = that_change_the_model(given)
        planner = Planner(params, self._random_thresholds, self._classification, identity, earlier)
        scorer = OobScorer(lambda: rows.classes, self.oob_score, keep=rows.random_access)
        observers = Observers(params["verbose"], callback)
        limits = limits_of(params)
        rows.read_within(limits.memory - limits.resident)
        return self._kept(fit_forest(rows, planner, limits, observers, scorer, self._keep_checkpoint))

    def __getstate__(self) -> dict[str, Any]:
        """Without the votes of all rows, which may be in a file."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_votes"}

    def _kept(self, fitted: Fitted) -> Fitted:
        """Keep the forest, its report, its importances and its out-of-bag score."""
        self.forest_ = fitted.forest
        self.fit_report_ = fitted.report
        self._importances = fitted.importances
        self._votes = fitted.votes
        if fitted.oob is not None:
            self.oob_score_ = fitted.oob.score
        return fitted


def _oob_means(fitted: Fitted, rows: ArrayRows, n_rows: int) -> npt.NDArray[np.float64]:
    """The mean out-of-bag prediction of each of the caller's rows; NaN where there is none."""
    kept: npt.NDArray[np.float64] = fitted.oob.rows
    if rows.kept is None:
        return kept
    means = np.full((n_rows, kept.shape[1]), np.nan)
    means[rows.kept] = kept
    return means


def store_params(estimator: BaseEstimator, params: dict[str, Any]) -> None:
    for name, value in params.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)
