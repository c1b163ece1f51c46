"""Positions of the nodes of a top tree in a drawing: leaves side by side, parents between their children."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .forest import Forest
from .nodes import NodeFormat, is_leaf, payload, threshold

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TreeLayout:
    """Arrays for all nodes in order, for leaves (`leaves`) and for inner nodes (`splits`)."""

    x: npt.NDArray[np.float64]  # leaves are at 0, 1, 2, ...
    depth: Ints
    leaves: Ints
    bucket: Ints  # of each leaf
    splits: Ints
    feature: Ints  # of each split
    threshold: npt.NDArray[np.float32]
    links: Ints  # parent and child, one pair for each branch


def lay_out(forest: Forest, top: int) -> TreeLayout:
    """The layout of a top tree."""
    nodes = forest.top_nodes[int(forest.top_start[top]) : int(forest.top_start[top + 1])]
    node_format, leaf = NodeFormat(forest.n_features), is_leaf(nodes)
    splits, leaves = np.flatnonzero(~leaf), np.flatnonzero(leaf)
    inner = nodes[splits]
    right = splits + node_format.right(inner)
    x, depth = np.zeros(len(nodes)), np.zeros(len(nodes), dtype=np.int64)
    x[leaves] = np.arange(len(leaves))
    # Children come after their parents: depths are computed forwards, positions backwards.
    for parent, child in zip(splits.tolist(), right.tolist(), strict=True):
        depth[[parent + 1, child]] = depth[parent] + 1
    for parent, child in zip(splits[::-1].tolist(), right[::-1].tolist(), strict=True):
        x[parent] = (x[parent + 1] + x[child]) / 2
    return TreeLayout(
        x=x,
        depth=depth,
        leaves=leaves,
        bucket=payload(nodes[leaves]),
        splits=splits,
        feature=node_format.feature(inner),
        threshold=threshold(inner),
        links=np.concatenate([np.stack([splits, splits + 1], axis=1), np.stack([splits, right], axis=1)]),
    )
