"""Positions of the nodes of a top tree in a drawing: leaves side by side, parents between their children."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .forest import Forest
from .nodes import NodeFormat, Nodes, is_leaf, levels_of_set, payload, threshold

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
    sets: list[tuple[list[int], bool] | None]  # of each split by levels: these, and whether they go left
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
        sets=_sets(forest, top, inner),
        links=np.concatenate([np.stack([splits, splits + 1], axis=1), np.stack([splits, right], axis=1)]),
    )


def _sets(forest: Forest, top: int, splits: Nodes) -> list[tuple[list[int], bool] | None]:
    """The levels of each split that is by levels, and whether they go left."""
    if not forest.levels:
        return [None] * len(splits)
    node_format = NodeFormat(forest.n_features)
    words = forest.top_sets[int(forest.top_set_start[top]) : int(forest.top_set_start[top + 1])]
    fields = zip(splits, node_format.feature(splits), node_format.missing_left(splits), strict=True)
    sets: list[tuple[list[int], bool] | None] = []
    for split, feature, missing_left in fields:
        n_levels, bits = forest.levels[feature], int(split) & 0xFFFFFFFF
        sets.append((levels_of_set(bits, n_levels, words), not missing_left) if n_levels else None)
    return sets
