"""Forests as scikit-learn's: the same trees in scikit-learn's arrays.

Imported when it is used: scikit-learn's forests take time and memory to import.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn import ensemble
from sklearn.base import clone, is_classifier
from sklearn.tree._tree import NODE_DTYPE, TREE_LEAF, TREE_UNDEFINED, Tree

from ..errors import ExportError
from ..forest.forest import Forest
from ..forest.whole_trees import WholeTree, tree_of, trees_of, whole_sizes
from ..messages.text import counted, human_bytes
from ..system.memory import memory_limit_of, resident_memory

# Parameters that are not copied: threads would add up the trees in any order, so that the last bit of a
# prediction varies; there are no out-of-bag predictions; a warm start would add other trees.
_NOT_TAKEN = {"n_jobs", "oob_score", "warm_start"}
# Our nodes do not store their number of rows. Results from invented numbers would look right and be wrong: so
# shap refuses (it needs positive weights) or gives NaN, and scikit-learn's partial_dependence by recursion
# refuses.
_UNKNOWN_WEIGHT = -np.inf
# Bytes of a node, beside its values, while its tree is converted; and copies of the values.
_AT_WORK, _COPIES = 200, 2


def sklearn_forest(estimator: Any) -> Any:
    """A fitted scikit-learn forest with the same trees; see `to_sklearn` of the estimators."""
    _refuse_categories(estimator.forest_)
    return with_thresholds(estimator)


def with_thresholds(estimator: Any) -> Any:
    """The same of any forest; where its nodes split by sets of levels, thresholds are zero."""
    _check_memory(estimator.forest_, estimator.memory_limit)
    model = _without_trees(estimator)
    model.estimators_ = [_tree_estimator(model, tree) for tree in trees_of(estimator)]
    return model


class SingleTrees(Sequence[Any]):
    """The trees of a fitted forest as estimators of scikit-learn, each made when it is asked for."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        self._model = _without_trees(estimator)

    def __len__(self) -> int:
        return int(self._estimator.forest_.n_trees)

    def __getitem__(self, place: Any) -> Any:
        numbers = range(len(self))[place]
        if isinstance(numbers, range):
            return [self._made(number) for number in numbers]
        return self._made(numbers)

    def __repr__(self) -> str:
        return f"{counted(len(self), 'tree')} of scikit-learn, made when asked for"

    def _made(self, number: int) -> Any:
        _refuse_categories(self._estimator.forest_)
        return _tree_estimator(self._model, tree_of(self._estimator, number))


def _refuse_categories(forest: Forest) -> None:
    n = sum(levels > 0 for levels in forest.levels)
    if n:
        raise ExportError(
            "scikit-learn",
            f"its nodes split {n} categorical feature{'s' * (n > 1)} by sets of levels, and scikit-learn's "
            "trees have thresholds only. Predict with oldgrowth, convert with to_treelite() or to_onnx(), or "
            "fit on numbers made of the categories",
        )


def _without_trees(estimator: Any) -> Any:
    """A forest of scikit-learn with the same features and classes, but no trees yet."""
    model = _unfitted(estimator)
    model.n_features_in_ = estimator.n_features_in_
    if hasattr(estimator, "feature_names_in_"):
        model.feature_names_in_ = estimator.feature_names_in_
    model.n_outputs_ = 1
    model.estimator_ = model.estimator
    if is_classifier(estimator):
        model.classes_, model.n_classes_ = estimator.classes_, estimator.n_classes_
    return model


def _check_memory(forest: Forest, memory_limit: Any) -> None:
    sizes = whole_sizes(forest)
    values = 8 * forest.n_outputs
    needed = int(sizes.sum()) * (NODE_DTYPE.itemsize + values)
    needed += int(sizes.max()) * (_AT_WORK + _COPIES * values)
    room = memory_limit_of(memory_limit) - resident_memory()
    if needed > room:
        raise ExportError(
            "scikit-learn",
            f"it would take {human_bytes(needed)} for {int(sizes.sum()):,} nodes, and memory_limit leaves "
            f"{human_bytes(max(room, 0))}. Raise memory_limit with set_params, or fit fewer or smaller trees",
        )


def _unfitted(estimator: Any) -> Any:
    """An unfitted forest of the same kind, with all parameters that both have."""
    extra = "ExtraTrees" if estimator._random_thresholds else "RandomForest"
    kind = getattr(ensemble, extra + ("Classifier" if is_classifier(estimator) else "Regressor"))
    known = kind().get_params()
    given = estimator.get_params(deep=False).items()
    return kind(**{name: value for name, value in given if name in known and name not in _NOT_TAKEN})


def _tree_estimator(model: Any, tree: WholeTree) -> Any:
    one = clone(model.estimator).set_params(**{name: getattr(model, name) for name in model.estimator_params})
    one.n_features_in_, one.n_outputs_ = model.n_features_in_, 1
    n_classes = 1
    if is_classifier(model):  # the trees of a forest have numbers as classes
        n_classes = model.n_classes_
        one.classes_, one.n_classes_ = np.arange(n_classes, dtype=np.float64), n_classes
    one.tree_ = _sklearn_tree(tree, model.n_features_in_, n_classes)
    return one


def _sklearn_tree(tree: WholeTree, n_features: int, n_classes: int) -> Tree:
    value = tree.value
    value[~tree.is_leaf] = np.nan
    nodes = np.zeros(len(tree), dtype=NODE_DTYPE)
    nodes["left_child"] = np.where(tree.is_leaf, TREE_LEAF, tree.left)
    nodes["right_child"] = np.where(tree.is_leaf, TREE_LEAF, tree.right)
    nodes["feature"] = np.where(tree.is_leaf, TREE_UNDEFINED, tree.feature)
    nodes["threshold"] = np.where(tree.is_leaf, TREE_UNDEFINED, tree.threshold)
    nodes["impurity"] = np.nan
    nodes["n_node_samples"] = 0
    nodes["weighted_n_node_samples"] = np.where(tree.is_leaf, 1, _UNKNOWN_WEIGHT)
    nodes["missing_go_to_left"] = tree.missing_left
    made = Tree(n_features, np.array([n_classes], dtype=np.intp), 1)
    depth = len(tree.levels()) - 1
    made.__setstate__(
        {"max_depth": depth, "node_count": len(tree), "nodes": nodes, "values": value[:, None, :]}
    )
    return made
