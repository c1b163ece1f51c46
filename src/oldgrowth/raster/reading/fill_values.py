"""Warns of a scene that has much of one value around it, which neither a nodata tag nor a mask leaves out.

Only some places are looked at: opening a scene stays fast, however large it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from rasterio.windows import Window

from ...messages.log import warn
from ...messages.warnings import NodataWarning
from .layers import Layers, check_valid
from .raster_files import Band, opened, reading, spread_windows

MUCH = 0.05  # of the pixels
_SMALL = 8  # pixels along a side: too few to tell


def warn_of_fill(layers: Layers) -> None:
    """Warn if one value, in all bands, is at two or more corners and makes up much of a scene.

    Only valid pixels count. A nodata value that was given is taken for the right one.
    """
    grid = layers.grid
    if min(grid.width, grid.height) < _SMALL or layers.nodata is not None:
        return
    value = _corner_value(layers)
    share = 0.0 if value is None else _share_of(value, layers)
    if value is not None and share >= MUCH:
        tag = next((band.nodata for band in layers.bands if band.nodata is not None), None)
        warn(NodataWarning(layers.where, value, share, tag), stacklevel=3)


def _corner_value(layers: Layers) -> float | None:
    """The value of two or more valid corners in all bands; None if there is none."""
    right, bottom = layers.grid.width - 1, layers.grid.height - 1
    corners = [Window(x, y, 1, 1) for x in (0, right) for y in (0, bottom)]
    alike = _unmasked(layers, corners)
    value: float | None = None
    for band in layers.bands:
        found = _values(band, corners)
        check_valid(band, found, alike)
        if value is None:
            value = next((one for one, _ in Counter(found[alike].tolist()).most_common(1)), None)
        alike &= found == value
        if np.count_nonzero(alike) < 2:
            return None
    return value


def _share_of(value: float, layers: Layers) -> float:
    """The share of pixels that are valid and have this value in all bands; 0 if it is not much.

    Bands of larger pixels only tell which pixels are valid.
    """
    windows = spread_windows(layers.grid.width, layers.grid.height)
    alike = _unmasked(layers, windows)
    for band in (*layers.bands, *layers.used):
        is_compared = band.ratio == 1 and band in layers.bands
        if is_compared or band.nodata is not None or band.dtype.kind == "f":
            found = _values(band, windows)
            check_valid(band, found, alike)
            if is_compared:
                alike &= found == value
            if np.mean(alike) < MUCH:
                return 0.0
    return float(np.mean(alike))


def _unmasked(layers: Layers, windows: Sequence[Window]) -> npt.NDArray[np.bool_]:
    """Which pixels no mask leaves out: neither the given one nor those of files."""
    left = np.ones(sum(window.width * window.height for window in windows), dtype=bool)
    if layers.mask is not None:
        left &= ~layers.mask.rule.masked(_values(layers.mask.band, windows))
    for group in layers.groups:
        if group.is_mask:
            left &= _values(group.bands[0], windows, of_mask=True) != 0
    return left


def _values(band: Band, windows: Sequence[Window], of_mask: bool = False) -> npt.NDArray[Any]:
    """Values of a band, or of the mask of its file, at the pixels of a scene in these windows."""
    found = []
    with opened(band.file) as raster, reading(band.file, band.files):
        read = raster.read_masks if of_mask else raster.read
        for window in windows:
            lines = np.arange(window.row_off, window.row_off + window.height) // band.ratio
            pixels = np.arange(window.col_off, window.col_off + window.width) // band.ratio
            sizes = (pixels[-1] - pixels[0] + 1, lines[-1] - lines[0] + 1)
            values = read(band.index, window=Window(pixels[0], lines[0], *sizes))
            found.append(values[np.ix_(lines - lines[0], pixels - pixels[0])].ravel())
    return np.concatenate(found)
