"""How far the search for sets of levels is from the best set, for more than two classes.

    python benchmarks/set_distance.py [--draws 100]

For two classes and for regression the search finds the best set. For more classes it follows the first
principal component of the class shares, and tries single levels. Here, nodes are drawn at random, and the
decrease of impurity by the search is compared with the best of all sets of levels.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from oldgrowth import RandomForestClassifier

Floats = np.ndarray[Any, np.dtype[np.float64]]
CRITERIA = ("gini", "entropy")
CLASSES = (3, 5, 10, 23)
LEVELS = (4, 6, 8, 10)
ROWS_OF_LEVEL = (3, 30, 300)
# Of the Dirichlet distribution of the class shares of a level: nearly pure levels, and any shares.
SPREADS = (0.1, 1.0)


@dataclass(frozen=True)
class Case:
    """Nodes of the same kind."""

    criterion: str
    classes: int
    levels: int
    rows_of_level: int
    spread: float


def impurity(criterion: str, counts: Floats) -> Floats:
    """The impurities of class counts, times their rows; classes are in the last dimension."""
    n = counts.sum(axis=-1, keepdims=True)
    shares = counts / np.maximum(n, 1)
    if criterion == "gini":
        return n[..., 0] * (1 - (shares**2).sum(axis=-1))
    return -n[..., 0] * (shares * np.log2(np.where(shares > 0, shares, 1))).sum(axis=-1)


def decreases(criterion: str, counts: Floats) -> Floats:
    """Of all sets of levels that have the first one; `counts` are those of each level."""
    levels = len(counts)
    sets = np.arange(2 ** (levels - 1) - 1)[:, None] >> np.arange(levels - 1) & 1
    inside = np.hstack([np.ones((len(sets), 1)), sets]) @ counts
    whole = counts.sum(axis=0)
    return impurity(criterion, whole) - impurity(criterion, inside) - impurity(criterion, whole - inside)


def found_share(case: Case, rng: np.random.Generator) -> float:
    """The decrease by the search as a share of the best one, in a node drawn at random."""
    n = case.levels * case.rows_of_level
    x = rng.integers(0, case.levels, n)
    shares = rng.dirichlet(np.full(case.classes, case.spread), case.levels)
    y = np.array([rng.choice(case.classes, p=shares[level]) for level in x])
    codes, x = np.unique(x, return_inverse=True)
    classes, y = np.unique(y, return_inverse=True)
    if len(codes) < 2 or len(classes) < 3:
        return 1.0  # nothing to search, or exact
    counts = np.zeros((len(codes), len(classes)))
    np.add.at(counts, (x, y), 1)
    best = decreases(case.criterion, counts).max()
    stump = RandomForestClassifier(
        1, criterion=case.criterion, max_depth=1, bootstrap=False, categorical_features=[0], n_jobs=1
    )
    column = x[:, None].astype(np.float32)
    leaves = stump.fit(column, y).apply(column)[:, 0]
    side = counts[np.unique(x[leaves == leaves[0]])].sum(axis=0)
    whole = counts.sum(axis=0)
    parts = impurity(case.criterion, side) + impurity(case.criterion, whole - side)
    return float((impurity(case.criterion, whole) - parts) / best) if best > 0 else 1.0


def measure(classes: int, levels: int, draws: int) -> Floats:
    """The shares for all criteria, sizes and spreads."""
    rng = np.random.default_rng([classes, levels])
    cases = [
        Case(criterion, classes, levels, rows, spread)
        for criterion in CRITERIA
        for rows in ROWS_OF_LEVEL
        for spread in SPREADS
    ]
    return np.array([found_share(case, rng) for case in cases for _ in range(draws)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100, help="nodes of each kind")
    draws = parser.parse_args().draws
    shown = Table(title="Decrease of impurity by the search as a share of the best", title_justify="left")
    for column in ("classes", "levels", "nodes", "best found", "mean", "1st percentile", "lowest"):
        shown.add_column(column, justify="right")
    for classes in CLASSES:
        for levels in LEVELS:
            found = measure(classes, levels, draws)
            exact = f"{np.mean(found > 1 - 1e-9):.1%}"
            figures = (found.mean(), np.quantile(found, 0.01), found.min())
            shown.add_row(str(classes), str(levels), str(len(found)), exact, *(f"{f:.4f}" for f in figures))
    Console().print(shown)


if __name__ == "__main__":
    main()
