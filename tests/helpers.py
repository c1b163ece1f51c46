"""Helpers for several tests: difficult data, and decoded trees."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from oldgrowth.fitting import pipeline, strategy
from oldgrowth.forest.forest import Forest

LEAF = 1 << 63
MIXED = 1 << 62


@dataclass
class Inner:
    """An inner node of a decoded tree; leaves are their payload, an int."""

    feature: int
    threshold: float
    missing_left: bool
    left: Any
    right: Any


def decode(forest: Forest, bottom: int = 0) -> Any:
    """A bottom tree as nested nodes, read independently of the C++ code."""
    start, end = int(forest.node_start[bottom]), int(forest.node_start[bottom + 1])
    nodes = [int(node) for node in forest.nodes[start:end]]
    bits = max(1, (forest.n_features - 1).bit_length())

    def at(i: int) -> Any:
        node = nodes[i]
        if node & LEAF:
            return node & ~LEAF
        threshold = np.array([node & 0xFFFFFFFF], dtype=np.uint32).view(np.float32)[0]
        feature = (node >> 32) & ((1 << bits) - 1)
        return Inner(
            feature, float(threshold), bool(node >> (32 + bits) & 1), at(i + 1), at(i + (node >> (33 + bits)))
        )

    return at(0)


def goes_left(node: Inner, x: np.ndarray) -> np.ndarray:
    column = x[:, node.feature]
    return np.where(np.isnan(column), node.missing_left, column <= np.float32(node.threshold))


def make_data(n: int, d: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Continuous, whole, few-valued and missing features; labels that depend on some of them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    x[:, 1::4] = np.round(x[:, 1::4] * 3)
    x[:, 2::4] = np.round(x[:, 2::4] * 4) / 7
    signal = x[:, 0] + 0.5 * x[:, 1 % d] - x[:, 2 % d] + 0.5 * rng.normal(size=n)
    x[:, 3::4][rng.random((n, len(range(3, d, 4)))) < 0.2] = np.nan
    if n_classes == 0:
        return x, signal
    return x, np.digitize(signal, np.quantile(signal, np.linspace(0, 1, n_classes + 1)[1:-1]))


def module_of_stage(name: str) -> ModuleType:
    """The module that calls this function of a stage: where a test replaces it."""
    return strategy if name == "distribute_round" else pipeline
