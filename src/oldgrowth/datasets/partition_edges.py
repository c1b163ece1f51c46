"""Row numbers at which partitions begin and end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def row_edges(first: int, rows: int | None, n: int) -> list[int]:
    """Row numbers at which `n` partitions of about equal size begin and end, for splits at any row."""
    return [] if rows is None else sorted({first + rows * i // n for i in range(n + 1)})


def nearest_edges(possible: Sequence[int], n: int) -> list[int]:
    """Begin and end of `n` parts of about equal size, chosen among the possible places, which are sorted and
    include the first and the last. If there are too few places, there are fewer parts."""
    places = np.asarray(possible, dtype=np.int64)
    first, last = int(places[0]), int(places[-1])
    wanted = [first + (last - first) * i // n for i in range(n + 1)]
    above = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
    below = np.maximum(above - 1, 0)
    nearer_below = np.array(wanted) - places[below] < places[above] - np.array(wanted)
    edges = sorted({int(place) for place in places[np.where(nearer_below, below, above)]})
    return edges if len(edges) > 1 else [first, last]
