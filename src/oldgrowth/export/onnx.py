"""Forests as ONNX models: one TreeEnsembleRegressor that adds up class shares or averages values.

It adds up in float64, as we do, for any number of classes; an ArgMax finds the label.

Needs onnx, which is imported when it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._version import __version__
from ..errors import ExportError, MissingExtraError
from ..forest.forest import Forest
from ..forest.whole_trees import WholeTree, trees_of, whole_sizes
from ..messages.text import human_bytes
from ..system.atomic_file import new_file
from .chains import ChainedTree, chained, chained_sizes

MOST_BYTES = 2**31 - 1  # of a protobuf message
# Supported by the runtimes in use; 3 is the first version of ai.onnx.ml with float64 trees.
_OPSET, _ML_OPSET, _IR_VERSION = 15, 3, 8
# Other nodes of the graph, names, versions.
_FRAME_BYTES = 4096


def onnx_model(estimator: Any, path: str | PathLike[str] | None) -> Any:
    """An ONNX `ModelProto`, saved if a path is given; see `to_onnx` of the estimators."""
    try:
        import onnx
    except ImportError as error:
        raise MissingExtraError("onnx>=1.17", "to_onnx") from error
    forest: Forest = estimator.forest_
    labels = _labels(estimator.classes_) if forest.n_classes else None
    _check_size(estimator, 0 if labels is None else sum(len(str(label)) + 8 for label in labels))
    graph = _graph(onnx, _tree_node(onnx, forest, trees_of(estimator)), forest, labels)
    model = onnx.helper.make_model(
        graph,
        producer_name="oldgrowth",
        producer_version=__version__,
        ir_version=_IR_VERSION,
        opset_imports=[
            onnx.helper.make_opsetid("", _OPSET),
            onnx.helper.make_opsetid("ai.onnx.ml", _ML_OPSET),
        ],
    )
    if path is not None:
        with new_file(Path(path)) as file:
            file.write(model.SerializeToString())
    return model


def _labels(classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    labels = np.array(classes.tolist())
    return labels.astype(object) if labels.dtype.kind in "SU" else labels


def _check_size(estimator: Any, label_bytes: int) -> None:
    """Refuse a model that is too large, before building it: a number has a tag, and seven bits per byte."""
    forest: Forest = estimator.forest_

    def number(largest: int) -> int:
        return 1 + max(1, -(-largest.bit_length() // 7))

    sizes = whole_sizes(forest)
    n_leaves = (int(sizes.sum()) + len(sizes)) // 2
    if forest.levels:
        sizes = chained_sizes(trees_of(estimator))
    n_nodes = int(sizes.sum())
    place, tree = number(int(sizes.max())), number(len(sizes))
    n_weights = n_leaves + (int(np.count_nonzero(forest.table)) if forest.n_classes else 0)
    needed = (n_nodes - n_leaves) * (3 * place + number(forest.n_features) + 2 + len("BRANCH_LEQ"))
    needed += n_leaves * (place + 3 * number(0) + 2 + len("LEAF"))
    needed += n_nodes * (tree + number(1) + 8)
    needed += n_weights * (tree + place + number(forest.n_outputs) + 8) + label_bytes + _FRAME_BYTES
    if needed > MOST_BYTES:
        raise ExportError(
            "ONNX",
            f"{n_nodes:,} nodes take up to {human_bytes(needed)}, and an ONNX file at most "
            f"{human_bytes(MOST_BYTES)}. Fit fewer or smaller trees, for example with min_samples_leaf",
        )


class _Attributes:
    """The attributes of the tree ensemble, filled tree by tree to avoid a list of all numbers."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self._lists: dict[str, Any] = {}
        self._arrays: dict[str, list[npt.NDArray[np.float64]]] = {}

    def numbers(self, name: str, values: npt.NDArray[Any]) -> None:
        self._list(name, self._onnx.AttributeProto.INTS).ints.extend(values.tolist())

    def words(self, name: str, values: list[bytes]) -> None:
        self._list(name, self._onnx.AttributeProto.STRINGS).strings.extend(values)

    def doubles(self, name: str, values: npt.NDArray[np.float64]) -> None:
        self._arrays.setdefault(name, []).append(values)

    def all(self) -> list[Any]:
        tensors = {
            name: self._onnx.numpy_helper.from_array(np.concatenate(parts), name)
            for name, parts in self._arrays.items()
        }
        made = [self._onnx.helper.make_attribute(name, tensor) for name, tensor in tensors.items()]
        return [*self._lists.values(), *made]

    def _list(self, name: str, kind: int) -> Any:
        return self._lists.setdefault(name, self._onnx.AttributeProto(name=name, type=kind))


def _tree_node(onnx: Any, forest: Forest, trees: Iterator[WholeTree]) -> Any:
    attributes = _Attributes(onnx)
    for number, tree in enumerate(trees):
        _add_tree(attributes, number, chained(tree), forest.n_classes > 0)
    node = onnx.helper.make_node(
        "TreeEnsembleRegressor",
        ["doubles"],
        ["sums"],
        domain="ai.onnx.ml",
        n_targets=forest.n_outputs,
        aggregate_function="SUM" if forest.n_classes else "AVERAGE",
    )
    node.attribute.extend(attributes.all())
    return node


def _add_tree(attributes: _Attributes, number: int, tree: ChainedTree, classes: bool) -> None:
    if not classes and np.abs(tree.value).max() > np.finfo(np.float32).max:
        raise ExportError("ONNX", "a value is too large for float32, which ONNX returns. Scale the targets")
    n = len(tree)
    attributes.numbers("nodes_treeids", np.full(n, number))
    attributes.numbers("nodes_nodeids", np.arange(n))
    attributes.numbers("nodes_featureids", tree.feature)
    attributes.words("nodes_modes", np.where(tree.is_leaf, b"LEAF", b"BRANCH_LEQ").tolist())
    attributes.doubles("nodes_values_as_tensor", tree.threshold)
    attributes.numbers("nodes_truenodeids", tree.below)
    attributes.numbers("nodes_falsenodeids", tree.above)
    attributes.numbers("nodes_missing_value_tracks_true", tree.missing_below.astype(np.int64))
    if classes:
        at, target = np.nonzero(tree.value)
    else:
        at = np.flatnonzero(tree.is_leaf)
        target = np.zeros_like(at)
    attributes.numbers("target_treeids", np.full(len(at), number))
    attributes.numbers("target_nodeids", at)
    attributes.numbers("target_ids", target)
    attributes.doubles("target_weights_as_tensor", tree.value[at, target])


def _graph(onnx: Any, trees: Any, forest: Forest, labels: npt.NDArray[Any] | None) -> Any:
    """From rows to labels and probabilities, or to values."""
    make, kinds = onnx.helper, onnx.TensorProto

    def constant(name: str, array: npt.NDArray[Any]) -> Any:
        return onnx.numpy_helper.from_array(array, name)

    rows = make.make_tensor_value_info("X", kinds.FLOAT, [None, forest.n_features])
    nodes = [make.make_node("Cast", ["X"], ["doubles"], to=kinds.DOUBLE), trees]
    if labels is None:
        nodes.append(make.make_node("Squeeze", ["sums", "column"], ["prediction"]))
        constants = [constant("column", np.array([1]))]
        outputs = [make.make_tensor_value_info("prediction", kinds.FLOAT, [None])]
    else:
        nodes += [
            make.make_node("ArgMax", ["sums"], ["best"], axis=1, keepdims=0),
            make.make_node("Gather", ["labels", "best"], ["label"]),
            make.make_node("Div", ["sums", "n_trees"], ["probabilities"]),
        ]
        constants = [constant("labels", labels), constant("n_trees", np.array(forest.n_trees, np.float32))]
        outputs = [
            make.make_tensor_value_info("label", constants[0].data_type, [None]),
            make.make_tensor_value_info("probabilities", kinds.FLOAT, [None, forest.n_classes]),
        ]
    return make.make_graph(nodes, "forest", [rows], outputs, constants)
