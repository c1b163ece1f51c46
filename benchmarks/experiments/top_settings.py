"""Settings of our top trees and the paper's: sample size, and number of features per split."""

from __future__ import annotations

import math
from typing import Any

TREES = 24
OURS, PAPERS = "our top trees", "the paper's top trees"


def top_settings(tops: str, n_rows: int) -> dict[str, Any]:
    """Ours are the defaults: features are drawn for each split. The paper's use all features."""
    if tops == OURS:
        return {}
    return {"top_sample": papers_size(n_rows), "top_max_features": None}


def papers_size(n_rows: int) -> int:
    """The paper's default size of a top tree's sample, and of a bucket."""
    return min(500_000, n_rows, max(100 * math.isqrt(n_rows), 100_000))
