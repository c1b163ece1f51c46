"""Lines of a file, read in whole rows of its blocks: each block is decoded once, whatever is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

# Reads lines from a number on into an array of bands, lines and pixels.
ReadLines = Callable[[int, npt.NDArray[Any]], None]


class LineBuffer:
    """Lines are asked for in order; those that were asked for last are kept.

    `step` lines are read at a time, from a multiple of it.
    """

    def __init__(self, read: ReadLines, shape: tuple[int, int, int], dtype: np.dtype[Any], step: int) -> None:
        self._read, self._dtype, self._step = read, dtype, step
        self._bands, self._height, self._width = shape
        self._first = 0
        self._kept: npt.NDArray[Any] = np.empty((self._bands, 0, self._width), dtype)

    def lines(self, first: int, stop: int) -> npt.NDArray[Any]:
        """Values by band, line and pixel: a view of what is kept."""
        have = self._first + self._kept.shape[1]
        if first < self._first or first > have:
            self._kept, self._first, have = self._kept[:, :0], first, first
        if stop > have:
            end = min(self._height, -(-stop // self._step) * self._step)
            overlap = self._kept[:, first - self._first :].copy()
            del self._kept  # before there is another one
            self._kept = np.empty((self._bands, end - first, self._width), self._dtype)
            self._kept[:, : have - first] = overlap
            self._first = first
            self._read(have, self._kept[:, have - first :])
        return self._kept[:, first - self._first : stop - self._first]
