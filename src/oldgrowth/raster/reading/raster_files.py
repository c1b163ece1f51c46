"""What a raster file has, and how it is read: errors name the file, and GDAL's cache is bounded."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import rasterio
from rasterio.enums import ColorInterp, Interleaving, MaskFlags
from rasterio.errors import NotGeoreferencedWarning, RasterioError
from rasterio.windows import Window

from ...datasets.files import SourceFile, find_files, is_url, seen_now
from ...datasets.map_files import RASTERS
from ...errors import DamagedFileError, NoDataError, RemoteRasterError
from .grid import Grid

EXTENSIONS = RASTERS
KIND = "a raster"
# Of GDAL's block cache, which would take 5 % of the machine's memory. Whole rows of blocks are read at once,
# so that no block is needed twice.
CACHE_BYTES = 8 << 20
_PLACES, _SIDE = 8, 64  # so many windows along each side, and pixels along each side of a window
_OPAQUE = (1, 255, 65535)  # values of alpha bands
_DEEPEST = 8  # virtual rasters within virtual rasters


@dataclass(frozen=True)
class Band:
    """A band of a file. Its pixels are `ratio` times as large as those of the scene along a side."""

    name: str
    file: SourceFile
    index: int
    dtype: np.dtype[Any]
    grid: Grid  # of its file
    nodata: float | None  # a value that the band can have
    scale: float = 1.0
    offset: float = 0.0
    block_lines: int = 1  # lines that are decoded together
    block_bytes: int = 0  # memory of a block while it is decoded
    masked: bool = False  # whether the file has a mask or an alpha band
    files: tuple[SourceFile, ...] = ()  # the file, and others that pixels are in
    ratio: int = 1

    @property
    def is_bytes(self) -> bool:
        """Whether its values are bytes, as they are."""
        return self.dtype == np.uint8 and (self.scale, self.offset) == (1.0, 0.0)

    @property
    def working_bytes(self) -> int:
        """Memory for each pixel while its values are taken from the file."""
        repeated = 2 * self.dtype.itemsize if self.ratio > 1 else 0
        scaled = 16 if (self.scale, self.offset) != (1.0, 0.0) else 0
        return repeated + scaled + 6

    def with_nodata(self, value: float) -> Band:
        return replace(self, nodata=possible(value, self.dtype))


def possible(value: float | None, dtype: np.dtype[Any]) -> float | None:
    """The value as one of this type; None if there is none, or if it is NaN, which is always missing."""
    if value is None or math.isnan(value):
        return None
    if dtype.kind not in "iu":
        return value
    limits = np.iinfo(dtype)
    return int(value) if limits.min <= value <= limits.max and value == int(value) else None


def find_rasters(source: Any) -> list[SourceFile]:
    """The files of a path, directory, glob or list. Directories of scenes have many other files."""
    for one in [source] if isinstance(source, str | os.PathLike) else source:
        text = str(one)
        if (is_url(text) and not text.startswith("file://")) or text.startswith("/vsi"):
            raise RemoteRasterError(text)
    return find_files(source, EXTENSIONS, tell=False)


@contextmanager
def opened(file: SourceFile) -> Iterator[Any]:
    """A raster for reading; errors name the file."""
    with file.watched(KIND):
        file.open().close()  # errors of the operating system
        with reading(file), warnings.catch_warnings():
            warnings.simplefilter("ignore", NotGeoreferencedWarning)
            raster = rasterio.open(file.path)
        with raster:
            yield raster


@contextmanager
def reading(file: SourceFile, others: Sequence[SourceFile] = ()) -> Iterator[None]:
    """Turn rasterio's errors into errors that name the file, unless it or others that belong to it changed.

    GDAL's cache is bounded meanwhile.
    """
    try:
        with rasterio.Env(GDAL_CACHEMAX=CACHE_BYTES):  # in bytes
            yield
    except RasterioError as error:
        for one in (file, *others):
            one.check_unchanged()
        raise DamagedFileError(file.path, KIND, error.__cause__ or error) from error


def look_at(file: SourceFile) -> tuple[Band, ...]:
    """The bands of a file. Alpha bands are masks, not bands."""
    with opened(file) as raster:
        with reading(file):
            alphas = [i for i in range(raster.count) if _is_alpha(raster, i)]
        grid = Grid(raster.width, raster.height, raster.transform, raster.crs)
        files, block_lines, block_bytes = _behind(raster, file, 0)
        bands = tuple(
            Band(
                _description(raster.descriptions[i]),
                file,
                i + 1,
                _dtype(raster.dtypes[i]),
                grid,
                possible(raster.nodatavals[i], _dtype(raster.dtypes[i])),
                float(raster.scales[i]),
                float(raster.offsets[i]),
                min(block_lines, grid.height),
                block_bytes,
                _is_masked(raster.mask_flag_enums[i], bool(alphas)),
                tuple(files.values()),
            )
            for i in range(raster.count)
            if i not in alphas
        )
    if not bands:
        raise NoDataError(file.path, "it has no band")
    return bands


def spread_windows(width: int, height: int) -> list[Window]:
    """Small windows, evenly spread over a raster."""

    def spans(size: int) -> list[tuple[int, int]]:
        edges = sorted({size * i // _PLACES for i in range(_PLACES + 1)})
        return [
            ((first + last - min(_SIDE, last - first)) // 2, min(_SIDE, last - first))
            for first, last in pairwise(edges)
        ]

    return [Window(x, y, wide, high) for y, high in spans(height) for x, wide in spans(width)]


def _is_alpha(raster: Any, i: int) -> bool:
    """Whether a band is an alpha band, also by what is in it.

    GDAL takes the last of four bands of bytes for one, even if it is infrared.
    """
    name = _description(raster.descriptions[i])
    if raster.colorinterp[i] != ColorInterp.alpha or name.lower() not in ("", "alpha"):
        return False
    found: set[float] = set()
    for window in spread_windows(raster.width, raster.height):
        found |= set(np.unique(raster.read(i + 1, window=window)).tolist())
        if len(found - {0}) > 1 or not found <= {0, *_OPAQUE}:
            return False
    return True


def _is_masked(flags: Sequence[MaskFlags], has_alpha: bool) -> bool:
    return MaskFlags.per_dataset in flags and (has_alpha or MaskFlags.alpha not in flags)


def _behind(raster: Any, file: SourceFile, depth: int) -> tuple[dict[str, SourceFile], int, int]:
    """All files of a raster, and the most lines and bytes of their blocks.

    A virtual raster has the blocks of the rasters that it refers to.
    """
    lines = max((shape[0] for shape in raster.block_shapes), default=1)
    sizes = [
        shape[0] * shape[1] * _dtype(kind).itemsize
        for shape, kind in zip(raster.block_shapes, raster.dtypes, strict=True)
    ]
    size = max(sizes) if raster.interleaving == Interleaving.band else sum(sizes)  # all bands in one, or not
    files = {os.path.abspath(file.path): file}
    for path in raster.files:
        place = os.path.abspath(path)
        if place in files:
            continue
        if not os.path.isfile(path):
            raise NoDataError(file.path, f"it refers to {path}, which is not a local file")
        files[place] = seen_now(path)
        if raster.driver == "VRT" and depth < _DEEPEST:
            with opened(files[place]) as inner:
                inside, inner_lines, inner_size = _behind(inner, files[place], depth + 1)
            files = inside | files
            lines, size = max(lines, inner_lines), max(size, inner_size)
    return files, lines, size


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(np.complex64) if name.startswith("complex") else np.dtype(name)


def _description(text: str | None) -> str:
    return identifier(text) if text and text.strip() else ""


def identifier(text: str) -> str:
    """A name that can be used in expressions."""
    name = re.sub(r"\W+", "_", text.strip()).strip("_") or "band"
    return f"B{name}" if name[0].isdigit() else name
