"""The six estimators, each with its signature written out, as scikit-learn requires.

The parameters are described in parameters.py.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any

from .base import store_params
from .classifier import Classifier
from .docstrings import described
from .parameter_names import names_checked
from .regressor import Regressor


@described("random-forest", "classification")
class RandomForestClassifier(Classifier):
    """A random forest of fully-grown trees for classification.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from oldgrowth import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RandomForestClassifier(n_estimators=24, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    @names_checked
    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        max_features: int | float | str | None = "sqrt",
        bootstrap: bool = True,
        max_samples: int | float | None = None,
        oob_score: bool | Callable[..., float] = False,
        class_weight: dict[Any, float] | str | None = None,
        categorical_features: list[Any] | str | None = "from_dtype",
        n_jobs: int | None = -1,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        trees_per_top: int | str = "auto",
        bucket_size: int | str = "auto",
        top_sample: int | str = "auto",
        top_max_features: int | float | str | None = "auto",
        balance: float | str = "auto",
        bottom_balance: float = 0.0,
        store: str = "auto",
        memory_limit: int | float | str = "auto",
        spill_dir: str | PathLike[str] | None = None,
        spill_limit: int | float | str = "auto",
        chunk_size: int | str = "auto",
        checkpoint_dir: str | PathLike[str] | None = None,
        voting: str = "soft",
        max_leaf_nodes: None = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: None = None,
    ) -> None:
        store_params(self, locals())


@described("random-forest", "regression")
class RandomForestRegressor(Regressor):
    """A random forest of fully-grown trees for regression.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from oldgrowth import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RandomForestRegressor(n_estimators=24, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.5
    True
    """

    @names_checked
    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        max_features: int | float | str | None = 1.0,
        bootstrap: bool = True,
        max_samples: int | float | None = None,
        oob_score: bool | Callable[..., float] = False,
        categorical_features: list[Any] | str | None = "from_dtype",
        n_jobs: int | None = -1,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        trees_per_top: int | str = "auto",
        bucket_size: int | str = "auto",
        top_sample: int | str = "auto",
        top_max_features: int | float | str | None = "auto",
        balance: float | str = "auto",
        bottom_balance: float = 0.0,
        store: str = "auto",
        memory_limit: int | float | str = "auto",
        spill_dir: str | PathLike[str] | None = None,
        spill_limit: int | float | str = "auto",
        chunk_size: int | str = "auto",
        checkpoint_dir: str | PathLike[str] | None = None,
        max_leaf_nodes: None = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: None = None,
    ) -> None:
        store_params(self, locals())


@described("extra-trees", "classification")
class ExtraTreesClassifier(Classifier):
    """Extremely randomized trees for classification: random thresholds, of which the best is chosen.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from oldgrowth import ExtraTreesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ExtraTreesClassifier(n_estimators=24, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _random_thresholds = True

    @names_checked
    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        max_features: int | float | str | None = "sqrt",
        bootstrap: bool = False,
        max_samples: int | float | None = None,
        oob_score: bool | Callable[..., float] = False,
        class_weight: dict[Any, float] | str | None = None,
        categorical_features: list[Any] | str | None = "from_dtype",
        n_jobs: int | None = -1,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        trees_per_top: int | str = "auto",
        bucket_size: int | str = "auto",
        top_sample: int | str = "auto",
        top_max_features: int | float | str | None = "auto",
        balance: float | str = "auto",
        bottom_balance: float = 0.0,
        store: str = "auto",
        memory_limit: int | float | str = "auto",
        spill_dir: str | PathLike[str] | None = None,
        spill_limit: int | float | str = "auto",
        chunk_size: int | str = "auto",
        checkpoint_dir: str | PathLike[str] | None = None,
        voting: str = "soft",
        max_leaf_nodes: None = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: None = None,
    ) -> None:
        store_params(self, locals())


@described("extra-trees", "regression")
class ExtraTreesRegressor(Regressor):
    """Extremely randomized trees for regression: random thresholds, of which the best is chosen.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from oldgrowth import ExtraTreesRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ExtraTreesRegressor(n_estimators=24, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.5
    True
    """

    _random_thresholds = True

    @names_checked
    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        max_features: int | float | str | None = 1.0,
        bootstrap: bool = False,
        max_samples: int | float | None = None,
        oob_score: bool | Callable[..., float] = False,
        categorical_features: list[Any] | str | None = "from_dtype",
        n_jobs: int | None = -1,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        trees_per_top: int | str = "auto",
        bucket_size: int | str = "auto",
        top_sample: int | str = "auto",
        top_max_features: int | float | str | None = "auto",
        balance: float | str = "auto",
        bottom_balance: float = 0.0,
        store: str = "auto",
        memory_limit: int | float | str = "auto",
        spill_dir: str | PathLike[str] | None = None,
        spill_limit: int | float | str = "auto",
        chunk_size: int | str = "auto",
        checkpoint_dir: str | PathLike[str] | None = None,
        max_leaf_nodes: None = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: None = None,
    ) -> None:
        store_params(self, locals())


@described("subsets", "classification")
class SubsetForestClassifier(Classifier):
    """The baseline: each tree is grown on its own random subset of the rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from oldgrowth import SubsetForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SubsetForestClassifier(n_estimators=24, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    @names_checked
    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        max_features: int | float | str | None = "sqrt",
        bootstrap: bool = True,
        max_samples: int | float | None = None,
        oob_score: bool | Callable[..., float] = False,
        class_weight: dict[Any, float] | str | None = None,
        categorical_features: list[Any] | str | None = "from_dtype",
        n_jobs: int | None = -1,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        subset_size: int | str = "auto",
        memory_limit: int | float | str = "auto",
        spill_dir: str | PathLike[str] | None = None,
        chunk_size: int | str = "auto",
        checkpoint_dir: str | PathLike[str] | None = None,
        voting: str = "soft",
        max_leaf_nodes: None = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: None = None,
    ) -> None:
        store_params(self, locals())


@described("subsets", "regression")
class SubsetForestRegressor(Regressor):
    """The baseline: each tree is grown on its own random subset of the rows.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from oldgrowth import SubsetForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SubsetForestRegressor(n_estimators=24, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.5
    True
    """

    @names_checked
    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        max_features: int | float | str | None = 1.0,
        bootstrap: bool = True,
        max_samples: int | float | None = None,
        oob_score: bool | Callable[..., float] = False,
        categorical_features: list[Any] | str | None = "from_dtype",
        n_jobs: int | None = -1,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        subset_size: int | str = "auto",
        memory_limit: int | float | str = "auto",
        spill_dir: str | PathLike[str] | None = None,
        chunk_size: int | str = "auto",
        checkpoint_dir: str | PathLike[str] | None = None,
        max_leaf_nodes: None = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: None = None,
    ) -> None:
        store_params(self, locals())
