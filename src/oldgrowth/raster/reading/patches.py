"""Patches: the pixels around a pixel, side by side, as the features of a row.

Lines of a strip are interleaved, so that the patch of a pixel is contiguous: patches are overlapping views.
Patches of bytes stay bytes; where pixels are missing, they become missing values when rows are filled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from ...datasets.batches import FloatsOrBytes
from .layers import Pixels

_FEW_IN_LINE = 64  # rows of a line; with fewer, many lines are copied at once
_ROWS_AT_ONCE = 1 << 12
_MANY_MISSING = 0.1  # share of rows that have missing values, with which floats are faster
Places = npt.NDArray[np.intp]


def patch_names(layers: Sequence[str], patch: int) -> tuple[str, ...]:
    """Names of the features: by column of the patch, line, and layer."""
    if patch == 1:
        return tuple(layers)
    around = range(-(patch // 2), patch // 2 + 1)
    return tuple(f"{name}({dx},{dy})" for dx in around for dy in around for name in layers)


def layer_of(feature: str) -> str:
    """The layer of a feature."""
    return feature.partition("(")[0]


def place_of(feature: str) -> tuple[int, int]:
    """Where in the patch a feature is: pixels and lines from the centre."""
    _, _, place = feature.removesuffix(")").partition("(")
    dx, dy = place.split(",") if place else ("0", "0")
    return int(dx), int(dy)


def touches_invalid(valid: npt.NDArray[np.bool_], patch: int) -> npt.NDArray[np.bool_]:
    """Whether the patch of each pixel has one that is not valid. `valid` has a border of half a patch."""
    invalid = ~valid
    height, width = (size - patch + 1 for size in valid.shape)
    lines = np.zeros((height, valid.shape[1]), dtype=bool)
    for dy in range(patch):
        lines |= invalid[dy : dy + height]
    found = np.zeros((height, width), dtype=bool)
    for dx in range(patch):
        found |= lines[:, dx : dx + width]
    return found


def patches_of(pixels: npt.NDArray[Any], patch: int) -> npt.NDArray[Any]:
    """The patches of all pixels, by line and pixel. `pixels` has a border of half a patch.

    The result is a view in which patches overlap: it must not be written to.
    """
    height, width = (size - patch + 1 for size in pixels.shape[:2])
    layers = pixels.shape[2]
    lines = np.empty((height, pixels.shape[1], patch, layers), dtype=pixels.dtype)
    for dy in range(patch):
        lines[:, :, dy] = pixels[dy : dy + height]
    strides = (lines.strides[0], lines.strides[1], lines.itemsize)
    return as_strided(lines, (height, width, patch * patch * layers), strides, writeable=False)


@dataclass(frozen=True)
class Rows:
    """Patches around some pixels of a strip, in the order of the scan."""

    patches: Pixels  # by line and pixel: views that overlap
    lines: Places
    pixels: Places
    present: npt.NDArray[np.bool_] | None = None  # likewise, which pixels of the patches are valid
    incomplete: npt.NDArray[np.bool_] | None = None  # the rows for which `present` matters

    @property
    def all_bytes(self) -> bool:
        return self.incomplete is None and self.patches.dtype == np.uint8

    def fill(self, out: FloatsOrBytes, start: int, columns: Places | None) -> None:
        """Fill in the rows from `start` on, or some of their columns."""
        for first, stop in self._parts(start, start + len(out)):
            part = out[first - start : stop - start]
            values = self._values(first, stop)
            part[...] = values if columns is None else values[:, columns]
            if self.incomplete is not None:
                self._fill_missing(part, first, stop, columns)

    def _parts(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Rows to be copied at once: those of a line, if it has many."""
        ends = start + 1 + np.flatnonzero(np.diff(self.lines[start:stop]))
        if (len(ends) + 1) * _FEW_IN_LINE > stop - start:
            ends = np.arange(start + _ROWS_AT_ONCE, stop, _ROWS_AT_ONCE)
        return pairwise([start, *ends.tolist(), stop])

    def _values(self, first: int, stop: int) -> Pixels:
        lines, pixels = self.lines[first:stop], self.pixels[first:stop]
        if lines[0] == lines[-1] and pixels[-1] - pixels[0] == stop - first - 1:  # without a gap
            return self.patches[lines[0], pixels[0] : pixels[-1] + 1]
        return self.patches[lines, pixels]

    def _fill_missing(self, part: FloatsOrBytes, first: int, stop: int, columns: Places | None) -> None:
        assert self.incomplete is not None and self.present is not None
        rows = np.flatnonzero(self.incomplete[first:stop])
        if not len(rows):
            return
        absent = ~self.present[self.lines[first:stop][rows], self.pixels[first:stop][rows]]
        absent = np.repeat(absent, self.patches.shape[2] // absent.shape[1], axis=1)
        values = part[rows]
        values[absent if columns is None else absent[:, columns]] = np.nan
        part[rows] = values


def rows_around(
    pixels: Pixels, valid: npt.NDArray[np.bool_], chosen: npt.NDArray[np.bool_], patch: int
) -> Rows:
    """The patches around chosen pixels, where pixels that are not valid are missing.

    `pixels` and `valid` have a border of half a patch. `pixels` may be changed.
    """
    lines, places = np.nonzero(chosen)
    if not len(lines):
        return Rows(np.empty((0, 0, patch * patch * pixels.shape[2]), pixels.dtype), lines, places)
    incomplete = touches_invalid(valid, patch)[lines, places]
    share = np.count_nonzero(incomplete) / len(lines)
    if share and pixels.dtype == np.uint8 and share < _MANY_MISSING:
        present = patches_of(valid[:, :, None], patch)
        return Rows(patches_of(pixels, patch), lines, places, present, incomplete)
    if share:
        pixels = pixels.astype(np.float32, copy=False)
        pixels[~valid] = np.nan
    return Rows(patches_of(pixels, patch), lines, places)
