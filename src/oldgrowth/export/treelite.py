"""A forest as a treelite model, by way of scikit-learn's arrays, which treelite reads as a whole.

Needs treelite; importing this module does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ExportError, MissingExtraError
from ..forest.whole_trees import whole_sizes

_OLDEST = (4, 8)  # earlier ones send missing values the other way
# Whether nodes have what ours do not keep.
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
    if estimator.forest_.n_classes == 1:
        raise ExportError("treelite", "all labels were the same, and a classifier there has two at least")
    largest = int(whole_sizes(estimator.forest_).max())
    if largest > MOST_NODES:
        raise ExportError(
            "treelite",
            f"a tree has {largest:,} nodes, and treelite holds {MOST_NODES:,} in a tree. Grow smaller trees, "
            "as with min_samples_leaf",
        )
    from .sklearn import sklearn_forest

    model = treelite.sklearn.import_model(sklearn_forest(estimator))
    for number in range(model.num_tree):
        tree = model.get_tree_accessor(number)
        for name in _UNKNOWN:
            tree.set_field(name, np.zeros_like(tree.get_field(name)))
    return model
