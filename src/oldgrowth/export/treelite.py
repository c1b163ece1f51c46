"""Forests as treelite models, converted from scikit-learn's arrays.

Needs treelite, which is imported when it is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ExportError, MissingExtraError
from ..forest.whole_trees import WholeTree, trees_of, whole_sizes

_OLDEST = (4, 8)  # earlier versions send missing values the other way
# Flags for what our nodes do not store.
_UNKNOWN = ("gain_present", "data_count_present", "sum_hess_present")
_CATEGORICAL = 2  # a kind of node
MOST_NODES = 2**31 - 1  # treelite numbers the nodes of a tree with 32 bits


def treelite_model(estimator: Any) -> Any:
    """A treelite `Model`; see `to_treelite` of the estimators."""
    try:
        import treelite
    except ImportError as error:
        raise MissingExtraError("treelite>=4.8", "to_treelite") from error
    if tuple(int(part) for part in treelite.__version__.split(".")[:2]) < _OLDEST:
        raise MissingExtraError("treelite>=4.8", "to_treelite")
    if estimator.forest_.n_classes == 1:
        raise ExportError("treelite", "all labels were the same, and a treelite classifier needs two classes")
    largest = int(whole_sizes(estimator.forest_).max())
    if largest > MOST_NODES:
        raise ExportError(
            "treelite",
            f"a tree has {largest:,} nodes, and treelite allows {MOST_NODES:,}. Grow smaller trees, for "
            "example with min_samples_leaf",
        )
    from .sklearn import with_thresholds  # imports scikit-learn's forests

    model = treelite.sklearn.import_model(with_thresholds(estimator))
    if estimator.forest_.levels:
        for number, whole in enumerate(trees_of(estimator)):
            _set_categories(model.get_tree_accessor(number), whole)
    for number in range(model.num_tree):
        tree = model.get_tree_accessor(number)
        for name in _UNKNOWN:
            tree.set_field(name, np.zeros_like(tree.get_field(name)))
    return model


def _set_categories(tree: Any, whole: WholeTree) -> None:
    """Give a tree of thresholds its sets: their levels go right where missing values go left."""
    kind = tree.get_field("node_type").copy()  # not a view of what is replaced
    kind[whole.by_set] = _CATEGORICAL
    goes_right = (whole.by_set & whole.missing_left).astype(np.uint8)
    fields = {
        "node_type": kind,
        "has_categorical_split": np.array([whole.by_set.any()], dtype=np.uint8),
        "category_list_right_child": goes_right,
        "category_list": whole.levels_in_sets.astype(np.uint32),
        "category_list_begin": whole.set_start[:-1].astype(np.uint64),
        "category_list_end": whole.set_start[1:].astype(np.uint64),
    }
    for name, values in fields.items():
        tree.set_field(name, values)
