"""The layers of a scene, read in strips of lines: bands as they are, and expressions of bands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from rasterio.windows import Window

from .bands import Band, opened, reading
from .expression import Expression
from .grid import Grid
from .masks import MaskRule

Pixels = npt.NDArray[np.uint8] | npt.NDArray[np.float32]


@dataclass(frozen=True)
class Mask:
    band: Band
    rule: MaskRule


@dataclass(frozen=True)
class Layers:
    """What is known of each pixel of a scene: first bands, then expressions of them."""

    where: str
    grid: Grid
    bands: tuple[Band, ...]
    used: tuple[Band, ...]  # bands that are read for expressions alone
    extra: tuple[Expression, ...]
    mask: Mask | None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(band.name for band in self.bands) + tuple(expression.name for expression in self.extra)

    @property
    def are_bytes(self) -> bool:
        """Whether all values are bytes, where none is missing."""
        return not self.extra and all(band.is_bytes for band in self.bands)

    @property
    def line_bytes(self) -> int:
        """Memory of a line while it is read."""
        read = sum(band.dtype.itemsize + 4 for band in (*self.bands, *self.used))
        return self.grid.width * (read + 4 * len(self.names) + 2)

    @contextmanager
    def reader(self) -> Iterator[LayerReader]:
        """Open all files; a reader belongs to one thread."""
        files = {band.file.path: band.file for band in (*self.bands, *self.used)}
        if self.mask is not None:
            files[self.mask.band.file.path] = self.mask.band.file
        with ExitStack() as stack:
            yield LayerReader(self, {path: stack.enter_context(opened(file)) for path, file in files.items()})


@dataclass(frozen=True)
class LayerReader:
    layers: Layers
    rasters: dict[str, Any]

    def read(self, first: int, stop: int) -> tuple[Pixels, npt.NDArray[np.bool_]]:
        """Values of some lines, by line, pixel and layer, and which pixels are valid.

        Values of pixels that are not valid are undefined.
        """
        layers = self.layers
        shape = (stop - first, layers.grid.width)
        valid = np.ones(shape, dtype=bool)
        room = (*shape, len(layers.names))
        out: Pixels = np.empty(room, np.uint8) if layers.are_bytes else np.empty(room, np.float32)
        values: dict[str, npt.NDArray[np.float32]] = {}
        needed = {name for expression in layers.extra for name in expression.names}
        for i, band in enumerate((*layers.bands, *layers.used)):
            raw = self._raw(band, first, stop)
            valid &= _valid(band, raw)
            if band.is_bytes and layers.are_bytes:
                out[..., i] = raw
                continue
            scaled = _scaled(band, raw)
            if i < len(layers.bands):
                out[..., i] = scaled
            if band.name in needed:
                values[band.name] = scaled
        for i, expression in enumerate(layers.extra, start=len(layers.bands)):
            out[..., i] = expression(values)
        if layers.mask is not None:
            valid &= ~layers.mask.rule.masked(self._raw(layers.mask.band, first, stop))
        return out, valid

    def _raw(self, band: Band, first: int, stop: int) -> npt.NDArray[Any]:
        """Pixels of a band as they are in the file, on the grid of the scene."""
        raster, ratio, width = self.rasters[band.file.path], band.ratio, self.layers.grid.width
        top, bottom = first // ratio, -(-stop // ratio)
        with reading(band.file):
            values = raster.read(band.index, window=Window(0, top, -(-width // ratio), bottom - top))
        if ratio == 1:
            return values
        fine = np.repeat(np.repeat(values, ratio, axis=0), ratio, axis=1)
        return fine[first - top * ratio :][: stop - first, :width]


def _valid(band: Band, raw: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    if raw.dtype.kind == "f":
        valid = np.isfinite(raw)
        return valid if band.nodata is None else valid & (raw != raw.dtype.type(band.nodata))
    if band.nodata is None:
        return np.ones(raw.shape, dtype=bool)
    return raw != band.nodata


def _scaled(band: Band, raw: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    if (band.scale, band.offset) == (1.0, 0.0):
        return raw.astype(np.float32)
    return (raw * band.scale + band.offset).astype(np.float32)
