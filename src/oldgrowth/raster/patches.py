"""Patches: the pixels around a pixel, side by side, as the features of a row.

Lines of a strip are interleaved, so that the patch of a pixel is contiguous: patches are overlapping views.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from .layers import Pixels


def patch_names(layers: Sequence[str], patch: int) -> tuple[str, ...]:
    """Names of the features: by column of the patch, line, and layer."""
    if patch == 1:
        return tuple(layers)
    around = range(-(patch // 2), patch // 2 + 1)
    return tuple(f"{name}({dx},{dy})" for dx in around for dy in around for name in layers)


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


def patches_of(pixels: Pixels, patch: int) -> Pixels:
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
