"""The six estimators, each with its parameters written out as scikit-learn wants them."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any

from .base import Classifier, Regressor, store_params
from .parameter_names import names_checked


class RandomForestClassifier(Classifier):
    """A random forest of fully-grown trees for classification.

    Parameters
    ----------
    n_estimators : int, default 100
        Number of trees.
    criterion : str, default "gini"
        "gini", "entropy" or "log_loss" (the same as "entropy").
    max_depth : int | None, default None
        Longest path from the root, top tree included; None grows until leaves are pure.
    min_samples_split : int | float, default 2
        Fewest rows of a node that may be split; a float is a share of all rows.
    min_samples_leaf : int | float, default 1
        Fewest rows of a leaf; a float is a share of all rows.
    min_weight_fraction_leaf : float, default 0.0
        Smallest share of the total weight of all rows that a leaf must have.
    min_impurity_decrease : float, default 0.0
        Smallest weighted decrease of impurity that a split must bring.
    max_features : int | float | str | None, default "sqrt"
        Features tried in each split, not counting those constant in the node: a number, a share, "sqrt",
        "log2" or None for all.
    bootstrap : bool, default True
        Whether each tree sees a bootstrap of the rows (Poisson counts) or every row once.
    max_samples : int | float | None, default None
        Expected number of rows in a bootstrap, or their share, up to 4 times all; None means as many as there
        are rows.
    oob_score : bool | Callable[..., float], default False
        Whether to score each row by the trees that did not see it; or the metric to do it with. Top trees are
        grown on a sample with its labels, so that with buckets of a few hundred rows or fewer scores are too
        high.
    class_weight : dict[Any, float] | str | None, default None
        Weights of the classes: a dict, "balanced", "balanced_subsample" (by each tree's bootstrap) or None.
    n_jobs : int | None, default -1
        Number of threads; -1 means all cores, None means 1.
    random_state : int, RandomState or None, default None
        A seed gives the same forest bit for bit, whatever n_jobs, chunk_size and store.
    verbose : int, default 0
        1 shows progress.
    trees_per_top : int | str, default "auto"
        Bottom trees in each bucket, that is: trees that share a top tree. "auto" is 4, or fewer
        where there would be fewer than twelve top trees. Few top trees cost accuracy; each takes time and, on
        disk, a copy of the rows.
    bucket_size : int | str, default "auto"
        Wanted largest number of rows in a bucket. With no more rows than this there is no top tree and
        the forest is an ordinary one. "auto" is what a core's cache holds, from 30,000 rows of many or wide
        features to 60,000, but all rows if there are at most 100,000.
    top_sample : int | str, default "auto"
        Rows that each top tree is grown on; "auto" is 2,048 for each expected bucket, but at least twice the
        bucket size, up to 65,535, and at most 500,000.
    top_max_features : int | float | str | None, default "auto"
        Features tried in each split of a top tree; "auto" takes max_features.
    balance : float | str, default "auto"
        Weight, from 0 to 1, of even splits against gain in top trees: the paper's lambda. "auto" is 0.
    bottom_balance : float, default 0.0
        The same in bottom trees, to study it: ordinary trees have 0.
    store : str, default "auto"
        Where buckets are kept: "memory", "disk", or "auto": in memory if all fits the limit.
    memory_limit : int | float | str, default "auto"
        What the process may take: bytes, a size like "2GB", or a share of the machine's memory. "auto" is
        80 % of what is free.
    spill_dir : path | None, default None
        Where a private directory for buckets is made; None takes the system's place for temporary files.
    spill_limit : int | float | str, default "auto"
        What the buckets may take on disk, as memory_limit; more rounds are made if it is too little for all
        top trees at once. "auto" is 80 % of what is free.
    chunk_size : int | str, default "auto"
        Rows read at a time; does not change the forest. "auto" is about 2 MB, or less if memory is short.
    checkpoint_dir : path | None, default None
        A directory in which an interrupted fit leaves its work; a fit of the same data with the same
        parameters takes it up there.
    voting : str, default "soft"
        "soft" averages the class shares of the leaves, "hard" counts each tree's majority as in the paper.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    feature_importances_ : array of shape (n_features,)
        Share of each feature in the decrease of impurity.
    oob_score_, oob_decision_function_
        Out-of-bag score and predictions, with oob_score.
    n_features_in_, feature_names_in_
        Number and, for data frames, names of the features.
    forest_ : Forest
        The trees; `forest_.digest()` is a hash of every bit of them.
    fit_report_ : FitReport
        Rows and seconds of each stage, bucket sizes, nodes, peak memory.

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
        n_jobs: int | None = -1,
        random_state: Any = None,
        verbose: int = 0,
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
    ) -> None:
        store_params(self, locals())


class RandomForestRegressor(Regressor):
    """A random forest of fully-grown trees for regression.

    Parameters
    ----------
    n_estimators : int, default 100
        Number of trees.
    criterion : str, default "squared_error"
        "squared_error".
    max_depth : int | None, default None
        Longest path from the root, top tree included; None grows until leaves are pure.
    min_samples_split : int | float, default 2
        Fewest rows of a node that may be split; a float is a share of all rows.
    min_samples_leaf : int | float, default 1
        Fewest rows of a leaf; a float is a share of all rows.
    min_weight_fraction_leaf : float, default 0.0
        Smallest share of the total weight of all rows that a leaf must have.
    min_impurity_decrease : float, default 0.0
        Smallest weighted decrease of impurity that a split must bring.
    max_features : int | float | str | None, default 1.0
        Features tried in each split, not counting those constant in the node: a number, a share, "sqrt",
        "log2" or None for all.
    bootstrap : bool, default True
        Whether each tree sees a bootstrap of the rows (Poisson counts) or every row once.
    max_samples : int | float | None, default None
        Expected number of rows in a bootstrap, or their share, up to 4 times all; None means as many as there
        are rows.
    oob_score : bool | Callable[..., float], default False
        Whether to score each row by the trees that did not see it; or the metric to do it with. Top trees are
        grown on a sample with its labels, so that with buckets of a few hundred rows or fewer scores are too
        high.
    n_jobs : int | None, default -1
        Number of threads; -1 means all cores, None means 1.
    random_state : int, RandomState or None, default None
        A seed gives the same forest bit for bit, whatever n_jobs, chunk_size and store.
    verbose : int, default 0
        1 shows progress.
    trees_per_top : int | str, default "auto"
        Bottom trees in each bucket, that is: trees that share a top tree. "auto" is 4, or fewer
        where there would be fewer than twelve top trees. Few top trees cost accuracy; each takes time and, on
        disk, a copy of the rows.
    bucket_size : int | str, default "auto"
        Wanted largest number of rows in a bucket. With no more rows than this there is no top tree and
        the forest is an ordinary one. "auto" is what a core's cache holds, from 30,000 rows of many or wide
        features to 60,000, but all rows if there are at most 100,000.
    top_sample : int | str, default "auto"
        Rows that each top tree is grown on; "auto" is 2,048 for each expected bucket, but at least twice the
        bucket size, up to 65,535, and at most 500,000.
    top_max_features : int | float | str | None, default "auto"
        Features tried in each split of a top tree; "auto" takes max_features.
    balance : float | str, default "auto"
        Weight, from 0 to 1, of even splits against gain in top trees: the paper's lambda. "auto" is 0.
    bottom_balance : float, default 0.0
        The same in bottom trees, to study it: ordinary trees have 0.
    store : str, default "auto"
        Where buckets are kept: "memory", "disk", or "auto": in memory if all fits the limit.
    memory_limit : int | float | str, default "auto"
        What the process may take: bytes, a size like "2GB", or a share of the machine's memory. "auto" is
        80 % of what is free.
    spill_dir : path | None, default None
        Where a private directory for buckets is made; None takes the system's place for temporary files.
    spill_limit : int | float | str, default "auto"
        What the buckets may take on disk, as memory_limit; more rounds are made if it is too little for all
        top trees at once. "auto" is 80 % of what is free.
    chunk_size : int | str, default "auto"
        Rows read at a time; does not change the forest. "auto" is about 2 MB, or less if memory is short.
    checkpoint_dir : path | None, default None
        A directory in which an interrupted fit leaves its work; a fit of the same data with the same
        parameters takes it up there.

    Attributes
    ----------
    feature_importances_ : array of shape (n_features,)
        Share of each feature in the decrease of impurity.
    oob_score_, oob_prediction_
        Out-of-bag score and predictions, with oob_score.
    n_features_in_, feature_names_in_
        Number and, for data frames, names of the features.
    forest_ : Forest
        The trees; `forest_.digest()` is a hash of every bit of them.
    fit_report_ : FitReport
        Rows and seconds of each stage, bucket sizes, nodes, peak memory.

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
        n_jobs: int | None = -1,
        random_state: Any = None,
        verbose: int = 0,
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
    ) -> None:
        store_params(self, locals())


class ExtraTreesClassifier(Classifier):
    """Extremely randomized trees for classification: random thresholds, the best of the features tried.

    Parameters
    ----------
    n_estimators : int, default 100
        Number of trees.
    criterion : str, default "gini"
        "gini", "entropy" or "log_loss" (the same as "entropy").
    max_depth : int | None, default None
        Longest path from the root, top tree included; None grows until leaves are pure.
    min_samples_split : int | float, default 2
        Fewest rows of a node that may be split; a float is a share of all rows.
    min_samples_leaf : int | float, default 1
        Fewest rows of a leaf; a float is a share of all rows.
    min_weight_fraction_leaf : float, default 0.0
        Smallest share of the total weight of all rows that a leaf must have.
    min_impurity_decrease : float, default 0.0
        Smallest weighted decrease of impurity that a split must bring.
    max_features : int | float | str | None, default "sqrt"
        Features tried in each split, not counting those constant in the node: a number, a share, "sqrt",
        "log2" or None for all.
    bootstrap : bool, default False
        Whether each tree sees a bootstrap of the rows (Poisson counts) or every row once.
    max_samples : int | float | None, default None
        Expected number of rows in a bootstrap, or their share, up to 4 times all; None means as many as there
        are rows.
    oob_score : bool | Callable[..., float], default False
        Whether to score each row by the trees that did not see it; or the metric to do it with. Top trees are
        grown on a sample with its labels, so that with buckets of a few hundred rows or fewer scores are too
        high.
    class_weight : dict[Any, float] | str | None, default None
        Weights of the classes: a dict, "balanced", "balanced_subsample" (by each tree's bootstrap) or None.
    n_jobs : int | None, default -1
        Number of threads; -1 means all cores, None means 1.
    random_state : int, RandomState or None, default None
        A seed gives the same forest bit for bit, whatever n_jobs, chunk_size and store.
    verbose : int, default 0
        1 shows progress.
    trees_per_top : int | str, default "auto"
        Bottom trees in each bucket, that is: trees that share a top tree. "auto" is 4. Each top
        tree takes time and, on disk, a copy of the rows.
    bucket_size : int | str, default "auto"
        Wanted largest number of rows in a bucket. With no more rows than this there is no top tree and
        the forest is an ordinary one. "auto" is 30,000, but all rows if there are at most 100,000.
    top_sample : int | str, default "auto"
        Rows that each top tree is grown on; "auto" is 2,048 for each expected bucket, but at least twice the
        bucket size, up to 65,535, and at most 500,000.
    top_max_features : int | float | str | None, default "auto"
        Features tried in each split of a top tree; "auto" takes max_features.
    balance : float | str, default "auto"
        Weight, from 0 to 1, of even splits against gain in top trees: the paper's lambda. "auto" is 0.
    bottom_balance : float, default 0.0
        The same in bottom trees, to study it: ordinary trees have 0.
    store : str, default "auto"
        Where buckets are kept: "memory", "disk", or "auto": in memory if all fits the limit.
    memory_limit : int | float | str, default "auto"
        What the process may take: bytes, a size like "2GB", or a share of the machine's memory. "auto" is
        80 % of what is free.
    spill_dir : path | None, default None
        Where a private directory for buckets is made; None takes the system's place for temporary files.
    spill_limit : int | float | str, default "auto"
        What the buckets may take on disk, as memory_limit; more rounds are made if it is too little for all
        top trees at once. "auto" is 80 % of what is free.
    chunk_size : int | str, default "auto"
        Rows read at a time; does not change the forest. "auto" is about 2 MB, or less if memory is short.
    checkpoint_dir : path | None, default None
        A directory in which an interrupted fit leaves its work; a fit of the same data with the same
        parameters takes it up there.
    voting : str, default "soft"
        "soft" averages the class shares of the leaves, "hard" counts each tree's majority as in the paper.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    feature_importances_ : array of shape (n_features,)
        Share of each feature in the decrease of impurity.
    oob_score_, oob_decision_function_
        Out-of-bag score and predictions, with oob_score.
    n_features_in_, feature_names_in_
        Number and, for data frames, names of the features.
    forest_ : Forest
        The trees; `forest_.digest()` is a hash of every bit of them.
    fit_report_ : FitReport
        Rows and seconds of each stage, bucket sizes, nodes, peak memory.

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
        n_jobs: int | None = -1,
        random_state: Any = None,
        verbose: int = 0,
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
    ) -> None:
        store_params(self, locals())


class ExtraTreesRegressor(Regressor):
    """Extremely randomized trees for regression: random thresholds, the best of the features tried.

    Parameters
    ----------
    n_estimators : int, default 100
        Number of trees.
    criterion : str, default "squared_error"
        "squared_error".
    max_depth : int | None, default None
        Longest path from the root, top tree included; None grows until leaves are pure.
    min_samples_split : int | float, default 2
        Fewest rows of a node that may be split; a float is a share of all rows.
    min_samples_leaf : int | float, default 1
        Fewest rows of a leaf; a float is a share of all rows.
    min_weight_fraction_leaf : float, default 0.0
        Smallest share of the total weight of all rows that a leaf must have.
    min_impurity_decrease : float, default 0.0
        Smallest weighted decrease of impurity that a split must bring.
    max_features : int | float | str | None, default 1.0
        Features tried in each split, not counting those constant in the node: a number, a share, "sqrt",
        "log2" or None for all.
    bootstrap : bool, default False
        Whether each tree sees a bootstrap of the rows (Poisson counts) or every row once.
    max_samples : int | float | None, default None
        Expected number of rows in a bootstrap, or their share, up to 4 times all; None means as many as there
        are rows.
    oob_score : bool | Callable[..., float], default False
        Whether to score each row by the trees that did not see it; or the metric to do it with. Top trees are
        grown on a sample with its labels, so that with buckets of a few hundred rows or fewer scores are too
        high.
    n_jobs : int | None, default -1
        Number of threads; -1 means all cores, None means 1.
    random_state : int, RandomState or None, default None
        A seed gives the same forest bit for bit, whatever n_jobs, chunk_size and store.
    verbose : int, default 0
        1 shows progress.
    trees_per_top : int | str, default "auto"
        Bottom trees in each bucket, that is: trees that share a top tree. "auto" is 4. Each top
        tree takes time and, on disk, a copy of the rows.
    bucket_size : int | str, default "auto"
        Wanted largest number of rows in a bucket. With no more rows than this there is no top tree and
        the forest is an ordinary one. "auto" is 30,000, but all rows if there are at most 100,000.
    top_sample : int | str, default "auto"
        Rows that each top tree is grown on; "auto" is 2,048 for each expected bucket, but at least twice the
        bucket size, up to 65,535, and at most 500,000.
    top_max_features : int | float | str | None, default "auto"
        Features tried in each split of a top tree; "auto" takes max_features.
    balance : float | str, default "auto"
        Weight, from 0 to 1, of even splits against gain in top trees: the paper's lambda. "auto" is 0.
    bottom_balance : float, default 0.0
        The same in bottom trees, to study it: ordinary trees have 0.
    store : str, default "auto"
        Where buckets are kept: "memory", "disk", or "auto": in memory if all fits the limit.
    memory_limit : int | float | str, default "auto"
        What the process may take: bytes, a size like "2GB", or a share of the machine's memory. "auto" is
        80 % of what is free.
    spill_dir : path | None, default None
        Where a private directory for buckets is made; None takes the system's place for temporary files.
    spill_limit : int | float | str, default "auto"
        What the buckets may take on disk, as memory_limit; more rounds are made if it is too little for all
        top trees at once. "auto" is 80 % of what is free.
    chunk_size : int | str, default "auto"
        Rows read at a time; does not change the forest. "auto" is about 2 MB, or less if memory is short.
    checkpoint_dir : path | None, default None
        A directory in which an interrupted fit leaves its work; a fit of the same data with the same
        parameters takes it up there.

    Attributes
    ----------
    feature_importances_ : array of shape (n_features,)
        Share of each feature in the decrease of impurity.
    oob_score_, oob_prediction_
        Out-of-bag score and predictions, with oob_score.
    n_features_in_, feature_names_in_
        Number and, for data frames, names of the features.
    forest_ : Forest
        The trees; `forest_.digest()` is a hash of every bit of them.
    fit_report_ : FitReport
        Rows and seconds of each stage, bucket sizes, nodes, peak memory.

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
        n_jobs: int | None = -1,
        random_state: Any = None,
        verbose: int = 0,
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
    ) -> None:
        store_params(self, locals())


class SubsetForestClassifier(Classifier):
    """The baseline: each tree is grown on its own random subset of the rows, nothing is distributed.

    Parameters
    ----------
    n_estimators : int, default 100
        Number of trees.
    criterion : str, default "gini"
        "gini", "entropy" or "log_loss" (the same as "entropy").
    max_depth : int | None, default None
        Longest path from the root, top tree included; None grows until leaves are pure.
    min_samples_split : int | float, default 2
        Fewest rows of a node that may be split; a float is a share of all rows.
    min_samples_leaf : int | float, default 1
        Fewest rows of a leaf; a float is a share of all rows.
    min_weight_fraction_leaf : float, default 0.0
        Smallest share of the total weight of all rows that a leaf must have.
    min_impurity_decrease : float, default 0.0
        Smallest weighted decrease of impurity that a split must bring.
    max_features : int | float | str | None, default "sqrt"
        Features tried in each split, not counting those constant in the node: a number, a share, "sqrt",
        "log2" or None for all.
    bootstrap : bool, default True
        Whether each tree sees a bootstrap of the rows (Poisson counts) or every row once.
    max_samples : int | float | None, default None
        Expected number of rows in a bootstrap, or their share, up to 4 times all; None means as many as there
        are rows.
    oob_score : bool | Callable[..., float], default False
        Whether to score each row by the trees that did not see it; or the metric to do it with.
    class_weight : dict[Any, float] | str | None, default None
        Weights of the classes: a dict, "balanced", "balanced_subsample" (by each tree's bootstrap) or None.
    n_jobs : int | None, default -1
        Number of threads; -1 means all cores, None means 1.
    random_state : int, RandomState or None, default None
        A seed gives the same forest bit for bit, whatever n_jobs, chunk_size and store.
    verbose : int, default 0
        1 shows progress.
    subset_size : int | str, default "auto"
        Rows that each tree is grown on; "auto" is 30,000, or a 60th of all rows if that is more.
    memory_limit : int | float | str, default "auto"
        What the process may take: bytes, a size like "2GB", or a share of the machine's memory. "auto" is
        80 % of what is free.
    spill_dir : path | None, default None
        Where sampled rows and trees go that do not fit memory; None takes the system's place for temporary
        files.
    chunk_size : int | str, default "auto"
        Rows read at a time; does not change the forest. "auto" is about 2 MB, or less if memory is short.
    checkpoint_dir : path | None, default None
        A directory in which an interrupted fit leaves its work; a fit of the same data with the same
        parameters takes it up there.
    voting : str, default "soft"
        "soft" averages the class shares of the leaves, "hard" counts each tree's majority as in the paper.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    feature_importances_ : array of shape (n_features,)
        Share of each feature in the decrease of impurity.
    oob_score_, oob_decision_function_
        Out-of-bag score and predictions, with oob_score.
    n_features_in_, feature_names_in_
        Number and, for data frames, names of the features.
    forest_ : Forest
        The trees; `forest_.digest()` is a hash of every bit of them.
    fit_report_ : FitReport
        Rows and seconds of each stage, bucket sizes, nodes, peak memory.

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
        n_jobs: int | None = -1,
        random_state: Any = None,
        verbose: int = 0,
        subset_size: int | str = "auto",
        memory_limit: int | float | str = "auto",
        spill_dir: str | PathLike[str] | None = None,
        chunk_size: int | str = "auto",
        checkpoint_dir: str | PathLike[str] | None = None,
        voting: str = "soft",
    ) -> None:
        store_params(self, locals())


class SubsetForestRegressor(Regressor):
    """The baseline: each tree is grown on its own random subset of the rows, nothing is distributed.

    Parameters
    ----------
    n_estimators : int, default 100
        Number of trees.
    criterion : str, default "squared_error"
        "squared_error".
    max_depth : int | None, default None
        Longest path from the root, top tree included; None grows until leaves are pure.
    min_samples_split : int | float, default 2
        Fewest rows of a node that may be split; a float is a share of all rows.
    min_samples_leaf : int | float, default 1
        Fewest rows of a leaf; a float is a share of all rows.
    min_weight_fraction_leaf : float, default 0.0
        Smallest share of the total weight of all rows that a leaf must have.
    min_impurity_decrease : float, default 0.0
        Smallest weighted decrease of impurity that a split must bring.
    max_features : int | float | str | None, default 1.0
        Features tried in each split, not counting those constant in the node: a number, a share, "sqrt",
        "log2" or None for all.
    bootstrap : bool, default True
        Whether each tree sees a bootstrap of the rows (Poisson counts) or every row once.
    max_samples : int | float | None, default None
        Expected number of rows in a bootstrap, or their share, up to 4 times all; None means as many as there
        are rows.
    oob_score : bool | Callable[..., float], default False
        Whether to score each row by the trees that did not see it; or the metric to do it with.
    n_jobs : int | None, default -1
        Number of threads; -1 means all cores, None means 1.
    random_state : int, RandomState or None, default None
        A seed gives the same forest bit for bit, whatever n_jobs, chunk_size and store.
    verbose : int, default 0
        1 shows progress.
    subset_size : int | str, default "auto"
        Rows that each tree is grown on; "auto" is 30,000, or a 60th of all rows if that is more.
    memory_limit : int | float | str, default "auto"
        What the process may take: bytes, a size like "2GB", or a share of the machine's memory. "auto" is
        80 % of what is free.
    spill_dir : path | None, default None
        Where sampled rows and trees go that do not fit memory; None takes the system's place for temporary
        files.
    chunk_size : int | str, default "auto"
        Rows read at a time; does not change the forest. "auto" is about 2 MB, or less if memory is short.
    checkpoint_dir : path | None, default None
        A directory in which an interrupted fit leaves its work; a fit of the same data with the same
        parameters takes it up there.

    Attributes
    ----------
    feature_importances_ : array of shape (n_features,)
        Share of each feature in the decrease of impurity.
    oob_score_, oob_prediction_
        Out-of-bag score and predictions, with oob_score.
    n_features_in_, feature_names_in_
        Number and, for data frames, names of the features.
    forest_ : Forest
        The trees; `forest_.digest()` is a hash of every bit of them.
    fit_report_ : FitReport
        Rows and seconds of each stage, bucket sizes, nodes, peak memory.

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
        n_jobs: int | None = -1,
        random_state: Any = None,
        verbose: int = 0,
        subset_size: int | str = "auto",
        memory_limit: int | float | str = "auto",
        spill_dir: str | PathLike[str] | None = None,
        chunk_size: int | str = "auto",
        checkpoint_dir: str | PathLike[str] | None = None,
    ) -> None:
        store_params(self, locals())
