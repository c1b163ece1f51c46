"""How the points of a stratified sample are divided among the classes of a map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...errors import ParameterError

Floats = npt.NDArray[np.float64]

FEWEST = 2  # points of a class, without which its variance is unknown


def allocate(n: int, pixels: Sequence[int], min_per_class: int) -> list[int]:
    """Points of each class, `n` in all.

    They are proportional to the pixels of the classes, but at least `min_per_class` (or an equal share, if
    `n` is too small for that) and at most all pixels of the class.
    """
    total = sum(pixels)
    if n > total:
        raise ParameterError("n", n, f"at most {total:,}, the pixels that have a class")
    fewest = sum(min(FEWEST, size) for size in pixels)
    if n < fewest:
        wanted = f"at least {fewest:,}: the map has {len(pixels):,} classes, and each needs {FEWEST} points"
        raise ParameterError("n", n, wanted)
    sizes = np.array(pixels, dtype=float)
    least = np.minimum(sizes, max(FEWEST, min(min_per_class, n // len(pixels))))
    shares = _proportional(n, sizes, least)
    points = np.floor(shares).astype(np.int64)
    largest = np.argsort(points - shares, kind="stable")  # the largest remainder first
    room = [i for i in largest.tolist() if points[i] < sizes[i]]
    points[room[: n - int(points.sum())]] += 1
    return [int(count) for count in points]


def _proportional(n: int, sizes: Floats, least: Floats) -> Floats:
    """Parts of `n` proportional to the sizes, but not below `least` and not above the sizes."""
    low, high = 0.0, 1.0  # of the density, of which the sum is a growing function
    for _ in range(100):
        middle = (low + high) / 2
        if np.clip(middle * sizes, least, sizes).sum() > n:
            high = middle
        else:
            low = middle
    return np.clip(low * sizes, least, sizes)
