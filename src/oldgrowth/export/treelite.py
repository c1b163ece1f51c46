"""Forests as treelite models, converted from scikit-learn's arrays.

Needs treelite, which is imported when it is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ExportError, MissingExtraError
from ..forest.whole_trees import whole_sizes
from .categories import refuse_categories

_OLDEST = (4, 8)  # earlier versions send missing values the other way
# Flags for what our nodes do not store.
_UNKNOWN = ("gain_present", "data_count_present", "sum_hess_present")
MOST_NODES = 2**31 - 1  # treelite numbers the nodes of a tree with 32 bits


def treelite_model(estimator: Any) -> Any:
    """A treelite `Model`; see `to_treelite` of the estimators."""
    try:
        import treelite
    except ImportError as error:
        raise MissingExtraError("treelite>=4.8", "to_treelite") from error
    if tuple(int(part) for part in treelite.__version__.split(".")[:2]) < _OLDEST:
        raise MissingExtraError("treelite>=4.8", "to_treelite")
    refuse_categories(estimator.forest_, "treelite", "only thresholds are converted")
    if estimator.forest_.n_classes == 1:
        raise ExportError("treelite", "all labels were the same, and a treelite classifier needs two classes")
    largest = int(whole_sizes(estimator.forest_).max())
    if largest > MOST_NODES:
        raise ExportError(
            "treelite",
            f"a tree has {largest:,} nodes, and treelite allows {MOST_NODES:,}. Grow smaller trees, for "
            "example with min_samples_leaf",
        )
    from .sklearn import sklearn_forest  # imports scikit-learn's forests

    model = treelite.sklearn.import_model(sklearn_forest(estimator))
    for number in range(model.num_tree):
        tree = model.get_tree_accessor(number)
        for name in _UNKNOWN:
            tree.set_field(name, np.zeros_like(tree.get_field(name)))
    return model
