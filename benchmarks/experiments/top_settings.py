"""Our top trees and the paper's: how many rows they are grown on, and how many features a split looks at."""

from __future__ import annotations

import math
from typing import Any

TREES = 24
OURS, PAPERS = "our top trees", "the paper's top trees"


def top_settings(tops: str, n_rows: int) -> dict[str, Any]:
    """Ours are the defaults: features are drawn in each split. The paper's look at all of them."""
    if tops == OURS:
        return {}
    return {"top_sample": papers_size(n_rows), "top_max_features": None}


def papers_size(n_rows: int) -> int:
    """The rows of a top tree's sample, and of a bucket, if nothing else is said."""
    return min(500_000, n_rows, max(100 * math.isqrt(n_rows), 100_000))
