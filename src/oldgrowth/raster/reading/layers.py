"""The layers of a scene, read in strips of lines: bands as they are, and expressions of bands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from rasterio.windows import Window

from ...datasets.files import SourceFile
from .expression import Expression
from .grid import Grid
from .line_buffer import LineBuffer
from .masks import MaskRule
from .raster_files import CACHE_BYTES, Band, opened, reading

Pixels = npt.NDArray[np.uint8] | npt.NDArray[np.float32]

# Of rows of blocks that are read at once, of all bands. Files with larger blocks are read in parts, and their
# blocks decoded more than once.
BLOCK_ROWS_BYTES = 64 << 20
_FILE_BYTES = 1 << 17  # of an open file


@dataclass(frozen=True)
class Mask:
    band: Band
    rule: MaskRule
    pattern: str  # of its file, or the name of its band


@dataclass(frozen=True)
class Together:
    """Bands of a file that are read together, or its mask."""

    file: SourceFile
    bands: tuple[Band, ...]
    is_mask: bool = False

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.uint8) if self.is_mask else self.bands[0].dtype

    @property
    def line_bytes(self) -> int:
        return len(self.bands) * self.bands[0].grid.width * self.dtype.itemsize

    @property
    def block_row_bytes(self) -> int:
        return self.bands[0].block_lines * self.line_bytes

    def step(self, share: float) -> int:
        """Lines to read at a time: those of a row of blocks, or a share of them."""
        return max(1, int(self.bands[0].block_lines * share))

    def kept_lines(self, share: float, lines: int) -> int:
        """Lines in memory, if so many of the scene are needed: those kept, and a copy of some of them."""
        height, needed = self.bands[0].grid.height, lines // self.bands[0].ratio + 2
        return min(height, self.step(share) + needed) + min(height, needed)

    def read_into(self, raster: Any, others: Sequence[SourceFile]) -> Callable[[int, Any], None]:
        indexes = [band.index for band in self.bands]

        def read(first: int, out: Any) -> None:
            window = Window(0, first, out.shape[2], out.shape[1])
            with reading(self.file, others):
                if self.is_mask:
                    out[0] = raster.read_masks(indexes[0], window=window)
                else:
                    raster.read(indexes, window=window, out=out)

        return read


@dataclass(frozen=True)
class Layers:
    """What is known of each pixel of a scene: first bands, then expressions of them."""

    where: str
    grid: Grid
    bands: tuple[Band, ...]
    used: tuple[Band, ...]  # bands that are read for expressions alone
    extra: tuple[Expression, ...]
    mask: Mask | None
    nodata: float | None = None  # as given, instead of tags

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(band.name for band in self.bands) + tuple(expression.name for expression in self.extra)

    @property
    def are_bytes(self) -> bool:
        """Whether all values are bytes, where none is missing."""
        return not self.extra and all(band.is_bytes for band in self.bands)

    @property
    def value_bytes(self) -> int:
        """Bytes of a pixel."""
        return len(self.names) * (1 if self.are_bytes else 4)

    @property
    def every(self) -> tuple[Band, ...]:
        """All bands that are read."""
        return (*self.bands, *self.used, *(() if self.mask is None else (self.mask.band,)))

    @property
    def files(self) -> list[SourceFile]:
        """All that pixels are in."""
        return list({file.path: file for band in self.every for file in band.files}.values())

    @property
    def groups(self) -> list[Together]:
        """What is read together, of all files."""
        by_file: dict[tuple[str, str], list[Band]] = {}
        for band in self.every:
            by_file.setdefault((band.file.path, band.dtype.name), []).append(band)
        found = [Together(bands[0].file, tuple(bands)) for bands in by_file.values()]
        masked = {band.file.path: band for band in (*self.bands, *self.used) if band.masked}
        return found + [Together(band.file, (band,), is_mask=True) for band in masked.values()]

    def reading_bytes(self, lines: int) -> int:
        """Memory for reading so many lines at a time, beside their values."""
        groups = self.groups
        share = _share(groups)
        kept = sum(group.kept_lines(share, lines) * group.line_bytes for group in groups)
        files = {group.file.path: 2 * group.bands[0].block_bytes + _FILE_BYTES for group in groups}
        raw = max(band.working_bytes for group in groups for band in group.bands)
        expressions = 4 * len({name for expression in self.extra for name in expression.names})
        return CACHE_BYTES + kept + sum(files.values()) + lines * self.grid.width * (raw + expressions)

    @contextmanager
    def reader(self) -> Iterator[LayerReader]:
        """Open all files; a reader belongs to one thread."""
        files, groups = self.files, self.groups
        for file in files:
            file.check_unchanged()
        share = _share(groups)
        with ExitStack() as stack:
            rasters = {
                file.path: stack.enter_context(opened(file))
                for file in {group.file.path: group.file for group in groups}.values()
            }
            buffers = []
            for group in groups:
                grid, raster = group.bands[0].grid, rasters[group.file.path]
                shape = (len(group.bands), grid.height, grid.width)
                read = group.read_into(raster, files)
                buffers.append(LineBuffer(read, shape, group.dtype, group.step(share)))
            yield LayerReader(self, groups, buffers)
        for file in files:
            file.check_unchanged()


def _share(groups: Sequence[Together]) -> float:
    """The share of rows of blocks that is read at a time."""
    return min(1.0, BLOCK_ROWS_BYTES / sum(group.block_row_bytes for group in groups))


@dataclass(frozen=True)
class LayerReader:
    layers: Layers
    groups: Sequence[Together]
    buffers: Sequence[LineBuffer]

    def read(self, first: int, stop: int, border: int) -> tuple[Pixels, npt.NDArray[np.bool_]]:
        """Values of some lines, by line, pixel and layer, and which pixels are valid.

        There is a border of so many lines and pixels on all sides, of which those outside the scene are not
        valid. Values of pixels that are not valid are undefined.
        """
        grid = self.layers.grid
        room = (stop - first + 2 * border, grid.width + 2 * border)
        valid = np.zeros(room, dtype=bool)
        out = self._empty(*room)
        top, bottom = max(0, first - border), min(grid.height, stop + border)
        inside = (slice(top - first + border, bottom - first + border), slice(border, border + grid.width))
        valid[inside] = True
        self._fill(out[inside], valid[inside], top, bottom)
        return out, valid

    def nothing(self) -> tuple[Pixels, npt.NDArray[np.bool_]]:
        """Values of no lines."""
        return self._empty(0, 0), np.empty((0, 0), dtype=bool)

    def _empty(self, lines: int, width: int) -> Pixels:
        shape = (lines, width, len(self.layers.names))
        return np.zeros(shape, np.uint8) if self.layers.are_bytes else np.zeros(shape, np.float32)

    def _fill(self, out: Pixels, valid: npt.NDArray[np.bool_], first: int, stop: int) -> None:
        layers = self.layers
        places = {band.name: i for i, band in enumerate(layers.bands)}
        needed = {name for expression in layers.extra for name in expression.names}
        values: dict[str, npt.NDArray[np.float32]] = {}
        for group, buffer in zip(self.groups, self.buffers, strict=True):
            ratio = group.bands[0].ratio
            lines = buffer.lines(first // ratio, -(-stop // ratio))
            for band, coarse in zip(group.bands, lines, strict=True):
                raw = _on_grid(coarse, ratio, first, valid.shape)
                if group.is_mask:
                    valid &= raw != 0
                    continue
                if layers.mask is not None and band is layers.mask.band:
                    valid &= ~layers.mask.rule.masked(raw)
                    continue
                check_valid(band, raw, valid)
                scaled = raw if layers.are_bytes else _scaled(band, raw)
                if band.name in places:
                    out[..., places[band.name]] = scaled
                if band.name in needed:
                    values[band.name] = scaled
        for i, expression in enumerate(layers.extra, start=len(layers.bands)):
            expression.fill(out[..., i], values)  # type: ignore[arg-type] # with expressions, all are floats


def _on_grid(values: npt.NDArray[Any], ratio: int, first: int, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Pixels of a band on the grid of the scene, from line `first` on."""
    if ratio == 1:
        return values
    fine = np.repeat(values, ratio, axis=0)[first % ratio :][: shape[0]]
    return np.repeat(fine, ratio, axis=1)[:, : shape[1]]


def check_valid(band: Band, raw: npt.NDArray[Any], valid: npt.NDArray[np.bool_]) -> None:
    """Mark pixels that a band has no value for."""
    if raw.dtype.kind == "f":
        valid &= np.isfinite(raw)
    if band.nodata is not None:
        valid &= raw != raw.dtype.type(band.nodata)


def _scaled(band: Band, raw: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):  # nodata values may be that large; others are found to be infinite
        if (band.scale, band.offset) == (1.0, 0.0):
            return raw.astype(np.float32)
        return (raw * band.scale + band.offset).astype(np.float32)
