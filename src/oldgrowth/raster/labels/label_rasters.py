"""Labels of pixels from a raster, sampled at the centres of a scene's pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from affine import Affine
from rasterio.windows import Window

from ...checks import is_real
from ...datasets.files import SourceFile
from ...datasets.labels import Labels
from ...errors import ColumnTypeError, MissingCRSError, ParameterError
from ..reading.boxes import Box
from ..reading.coordinates import transformed
from ..reading.grid import Grid
from ..reading.layers import Layers
from ..reading.raster_files import find_rasters, look_at, opened, reading
from ..reading.strips import Strip, StripLabels
from .label_windows import WindowedLabels
from .shapes import to_pixels

_TILE_PIXELS = 1 << 16  # of a scene, whose labels are looked up at a time
_READ_PIXELS = 1 << 22  # of the raster of labels, read at a time
_ON_EDGE = 1e-10  # of a pixel: centres on an edge are in the pixel after it, as in GDAL
_TILE_BYTES = 256  # of a pixel while it is looked up


@dataclass(frozen=True)
class ValuedPixels:
    """Values by line and pixel, and where there is one."""

    values: npt.NDArray[Any]
    present: npt.NDArray[np.bool_]

    def at(self, lines: npt.NDArray[np.intp], pixels: npt.NDArray[np.intp]) -> Labels:
        return self.values[lines, pixels]


@dataclass(frozen=True)
class Tile:
    """Some pixels of a scene."""

    first: int  # line
    stop: int
    left: int
    right: int

    @property
    def pixels(self) -> int:
        return (self.stop - self.first) * (self.right - self.left)

    def halves(self) -> tuple[Tile, Tile]:
        if self.right - self.left > self.stop - self.first:
            middle = (self.left + self.right) // 2
            return Tile(self.first, self.stop, self.left, middle), Tile(
                self.first, self.stop, middle, self.right
            )
        middle = (self.first + self.stop) // 2
        return Tile(self.first, middle, self.left, self.right), Tile(middle, self.stop, self.left, self.right)


class RasterLabels(WindowedLabels):
    """Labels in a band; nodata pixels have none.

    A pixel of a scene has the label of the pixel that its centre is in, in any grid and coordinate reference
    system.
    """

    def __init__(self, path: Any, nodata: Any, scenes: Sequence[Layers]) -> None:
        super().__init__(scenes)
        if nodata is not None and not is_real(nodata):
            raise ParameterError("nodata", nodata, "a number, or None for that of the file")
        found = find_rasters(path)
        if len(found) > 1:
            raise ParameterError("labels", str(path), f"one file; {found[0].path} and {found[1].path} match")
        self._file, self._nodata = found[0], nodata
        band, *more = look_at(self._file)
        if band.grid.crs is None:
            raise MissingCRSError(self._file.path, "so that its labels cannot be placed")
        if more:
            raise ParameterError("labels", self._file.path, f"a raster of one band; it has {1 + len(more)}")
        self.name, self.files = band.name or "label", band.files
        self._dtype, self._grid = band.dtype, band.grid
        self.colors = _palette(self._file)
        if self._dtype.kind not in "iuf":
            raise ColumnTypeError(self.name, self._file.path, self._dtype, "target")

    def _found(self, lines: Strip) -> tuple[npt.NDArray[Any], ...]:
        grid = self.scenes[lines.scene].grid
        values = np.zeros((lines.stop - lines.first, grid.width), dtype=self._dtype)
        present = np.zeros(values.shape, dtype=bool)
        with opened(self._file) as raster:
            if grid == self._grid:
                tile = Tile(lines.first, lines.stop, 0, grid.width)
                values, present = self._read(raster, tile)
            elif (shift := self._grid.shift_of(grid)) is not None:
                self._cut(raster, lines, shift, values, present)
            else:
                self._sample(raster, grid, lines, values, present)
        return values, present

    def _cut(
        self,
        raster: Any,
        lines: Strip,
        shift: tuple[int, int],
        values: npt.NDArray[Any],
        present: npt.NDArray[np.bool_],
    ) -> None:
        """Fill in values of pixels that are those of the scene, `shift` lines and pixels from there."""
        down, right = lines.first + shift[0], shift[1]
        left, end = max(0, right), min(self._grid.width, values.shape[1] + right)
        first, stop = max(0, down), min(self._grid.height, len(values) + down)
        if left >= end:
            return
        step = max(1, _READ_PIXELS // (end - left))
        for line in range(first, stop, step):
            tile = Tile(line, min(stop, line + step), left, end)
            part = slice(tile.first - down, tile.stop - down), slice(left - right, end - right)
            values[part], present[part] = self._read(raster, tile)

    def _sample(
        self,
        raster: Any,
        grid: Grid,
        lines: Strip,
        values: npt.NDArray[Any],
        present: npt.NDArray[np.bool_],
    ) -> None:
        """Fill in values at the centres of pixels, and where there is one."""
        pending = [Tile(lines.first, lines.stop, 0, grid.width)]
        while pending:
            tile = pending.pop()
            if tile.pixels > _TILE_PIXELS:
                pending += tile.halves()
                continue
            x, y, inside = self._places(grid, tile)
            if not inside.any():
                continue
            x, y = x[inside], y[inside]
            source = Tile(int(y.min()), int(y.max()) + 1, int(x.min()), int(x.max()) + 1)
            if source.pixels > _READ_PIXELS and tile.pixels > 1:
                pending += tile.halves()
                continue
            part = slice(tile.first - lines.first, tile.stop - lines.first), slice(tile.left, tile.right)
            read, valid = self._read(raster, source)
            values[part][inside] = read[y - source.first, x - source.left]
            present[part][inside] = valid[y - source.first, x - source.left]

    def _places(
        self, grid: Grid, tile: Tile
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """The pixels of the raster of labels in which the centres of a tile are, and which are in it."""
        x, y = np.meshgrid(np.arange(tile.left, tile.right) + 0.5, np.arange(tile.first, tile.stop) + 0.5)
        points = np.column_stack(grid.transform @ (x.ravel(), y.ravel()))
        if grid.crs != self._grid.crs:
            points = transformed(points, grid.crs, self._grid.crs)
        places = np.floor(_in_pixels(points, self._grid.transform) + _ON_EDGE)
        inside = np.all((places >= 0) & (places < (self._grid.width, self._grid.height)), axis=1)
        assert isinstance(inside, np.ndarray)
        whole = np.where(inside[:, None], places, 0).astype(np.int64)
        return whole[:, 0].reshape(x.shape), whole[:, 1].reshape(x.shape), inside.reshape(x.shape)

    def _read(self, raster: Any, tile: Tile) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        window = Window(tile.left, tile.first, tile.right - tile.left, tile.stop - tile.first)
        with reading(self._file, self.files):
            values = raster.read(1, window=window)
            present = raster.read_masks(1, window=window) != 0
        if self._nodata is not None:
            present &= values != self._nodata
        if values.dtype.kind == "f":
            present &= np.isfinite(values)
        return values, present

    def _labels(self, *arrays: npt.NDArray[Any]) -> StripLabels:
        return ValuedPixels(*arrays)

    @property
    def reading_bytes(self) -> int:
        """A window and its mask, and tiles of it as they are looked up, if they are."""
        pixel, every = self._dtype.itemsize + 3, self._grid.width * self._grid.height
        looked_up = min(_READ_PIXELS, every) * pixel + _TILE_PIXELS * _TILE_BYTES
        same = all(scene.grid == self._grid for scene in self.scenes)
        return self._window_pixels * pixel + (0 if same else looked_up)

    def fingerprint(self) -> dict[str, Any]:
        return {"files": [file.described() for file in self.files], "nodata": self._nodata}

    def _none(self) -> str:
        scenes = "; ".join(
            f"{scene.where} ({Box.of(scene.grid)}, {scene.grid.crs})" for scene in self.scenes[:3]
        )
        return (
            f"it is in {Box.of(self._grid)}, {self._grid.crs}, and all of its pixels within {scenes} are "
            "nodata, if there are any"
        )


def _in_pixels(points: npt.NDArray[np.float64], transform: Affine) -> npt.NDArray[np.float64]:
    """Points of the map in pixels and lines, so that those on an edge are exactly there."""
    if transform.b != 0 or transform.d != 0:
        return to_pixels(transform)(points)
    return np.asarray((points - (transform.c, transform.f)) / (transform.a, transform.e))


def _palette(file: SourceFile) -> dict[int, str]:
    """The colours of labels, if the file has a table of them; black is what tables are filled up with."""
    with opened(file) as raster, reading(file):
        try:
            table = raster.colormap(1)
        except ValueError:  # it has none
            return {}
    return {value: f"#{r:02x}{g:02x}{b:02x}" for value, (r, g, b, _) in table.items() if r or g or b}
