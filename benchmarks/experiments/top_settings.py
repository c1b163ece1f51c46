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
    sample = min(500_000, n_rows, max(100 * math.isqrt(n_rows), 100_000))
    return {"top_sample": sample, "top_max_features": None}
