"""Forests with categorical features, which other formats do not take."""

from __future__ import annotations

from ..errors import ExportError
from ..forest.forest import Forest


def refuse_categories(forest: Forest, target: str, why: str) -> None:
    """Refuse nodes that split by sets of levels; `why` says what the target lacks."""
    n = sum(levels > 0 for levels in forest.levels)
    if n:
        raise ExportError(
            target,
            f"its nodes split {n} categorical feature{'s' * (n > 1)} by sets of levels, and {why}. Predict "
            "with oldgrowth, or fit on numbers made of the categories",
        )
