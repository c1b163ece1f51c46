"""The forest: top trees and bottom trees in a few flat arrays, immutable once assembled."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from .grow import BottomTree
from .top_tree import TopTree

ARRAYS = (
    "top_nodes",
    "top_start",
    "bucket_start",
    "trees_of_top",
    "bottom_start",
    "nodes",
    "node_start",
    "table_start",
    "table",
)


def _starts(lengths: list[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)


class Forest:
    """Flat arrays, described in docs/formats.md, and the core's view of them. Every index is checked."""

    def __init__(self, n_features: int, n_classes: int, arrays: dict[str, npt.NDArray[Any]]) -> None:
        self.n_features = n_features
        self.n_classes = n_classes
        self._arrays = arrays
        for array in arrays.values():
            array.flags.writeable = False
        self._core = _core.Forest(n_features, n_classes, **arrays)

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        if name in ARRAYS:
            return self._arrays[name]
        raise AttributeError(name)

    @property
    def n_trees(self) -> int:
        return int(self.trees_of_top.sum())

    @property
    def n_nodes(self) -> int:
        return len(self.nodes) + len(self.top_nodes)

    @property
    def n_outputs(self) -> int:
        return self.n_classes or 1

    def __repr__(self) -> str:
        return f"Forest({self.n_trees} trees, {self.n_nodes:,} nodes, {self.n_features} features)"

    def digest(self) -> str:
        """A hash of every bit of the model."""
        digest = hashlib.sha256(f"{self.n_features} {self.n_classes}".encode())
        for name in ARRAYS:
            digest.update(name.encode())
            digest.update(self._arrays[name].tobytes())
        return digest.hexdigest()

    def predict_sums(
        self, x: npt.NDArray[np.float32], may_miss: bool, hard: bool, sums: npt.NDArray[np.float64]
    ) -> None:
        self._core.predict_sums(x, may_miss, hard, sums)

    def apply(self, x: npt.NDArray[np.float32], may_miss: bool, leaves: npt.NDArray[np.int64]) -> None:
        self._core.apply(x, may_miss, leaves)

    def __reduce__(self) -> tuple[Any, ...]:
        return Forest, (self.n_features, self.n_classes, self._arrays)


def assemble(
    n_features: int,
    n_classes: int,
    tops: list[TopTree],
    trees_of_tops: list[int],
    grown: dict[tuple[int, int, int], BottomTree],
) -> Forest:
    """Stage 5: all trees in their order, whatever the order they were grown in. Empties `grown`."""
    order = [
        (i, bucket, tree)
        for i, (top, trees) in enumerate(zip(tops, trees_of_tops, strict=True))
        for bucket in range(top.n_buckets)
        for tree in range(trees)
    ]
    node_start = _starts([len(grown[key].nodes) for key in order])
    table_start = _starts([len(grown[key].table) // max(n_classes, 1) for key in order])
    nodes = np.empty(int(node_start[-1]), dtype=np.uint64)
    table = np.empty(int(table_start[-1]) * max(n_classes, 1), dtype=np.float32)
    for i, key in enumerate(order):
        tree = grown.pop(key)
        nodes[int(node_start[i]) : int(node_start[i + 1])] = tree.nodes
        table[int(table_start[i]) * max(n_classes, 1) : int(table_start[i + 1]) * max(n_classes, 1)] = (
            tree.table
        )
    buckets = [top.n_buckets for top in tops]
    arrays = {
        "top_nodes": np.concatenate([top.nodes for top in tops]),
        "top_start": _starts([len(top.nodes) for top in tops]),
        "bucket_start": _starts(buckets),
        "trees_of_top": np.array(trees_of_tops, dtype=np.uint64),
        "bottom_start": _starts([b * t for b, t in zip(buckets, trees_of_tops, strict=True)]),
        "nodes": nodes,
        "node_start": node_start,
        "table_start": table_start,
        "table": table,
    }
    return Forest(n_features, n_classes, arrays)
