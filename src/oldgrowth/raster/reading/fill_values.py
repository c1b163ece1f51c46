"""Warns of a scene without a nodata tag that has much of one value around it.

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
from .layers import Layers
from .raster_files import Band, opened, reading, spread_windows

MUCH = 0.05  # of the pixels
_SMALL = 8  # pixels along a side: too few to tell


def warn_of_fill(layers: Layers) -> None:
    """Warn if one value, in all bands, is at two or more corners and makes up much of a scene."""
    bands, grid = layers.bands, layers.grid
    if min(grid.width, grid.height) < _SMALL or layers.mask is not None:
        return
    if any(band.nodata is not None or band.masked for band in bands):
        return
    value: float | None = None
    alike: npt.NDArray[np.bool_] | None = None
    for band in bands:
        value = _corner_value(band, value)
        if value is None:
            return
        if band.ratio == 1:
            here = _values(band, spread_windows(band.grid.width, band.grid.height)) == value
            alike = here if alike is None else alike & here
            if np.mean(alike) < MUCH:
                return
    if value is not None and alike is not None:
        warn(NodataWarning(layers.where, value, float(np.mean(alike))), stacklevel=3)


def _corner_value(band: Band, wanted: float | None) -> float | None:
    """The value, which may be given, of two or more corners of a band; None if there is none."""
    right, bottom = band.grid.width - 1, band.grid.height - 1
    corners = _values(band, [Window(x, y, 1, 1) for x in (0, right) for y in (0, bottom)]).tolist()
    value, times = Counter(corners).most_common(1)[0] if wanted is None else (wanted, corners.count(wanted))
    return value if times > 1 else None


def _values(band: Band, windows: Sequence[Window]) -> npt.NDArray[Any]:
    with opened(band.file) as raster, reading(band.file, band.files):
        return np.concatenate([raster.read(band.index, window=window).ravel() for window in windows])
