"""Cloud-optimized GeoTIFFs made of raw files by GDAL, which needs neither of them in memory."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import numpy.typing as npt
import rasterio
from rasterio.shutil import copy as gdal_copy
from rasterio.windows import Window

from ...system.signals import Terminated
from ..reading.gdal_errors import GDAL_ERRORS
from ..reading.grid import Grid
from .map_layers import MapLayer

_KINDS = {"uint8": "Byte", "uint16": "UInt16", "float32": "Float32"}
_OPTIONS = {"driver": "COG", "COMPRESS": "DEFLATE", "PREDICTOR": "YES", "BIGTIFF": "IF_SAFER"}
# Sides of tiles, and the most bytes of one, with all bands: GDAL has some of them in memory.
_SIDES, _TILE_BYTES = (512, 256, 128), 1 << 24
_TILES_AT_ONCE = 12
MOST_CACHE, LEAST_CACHE = 32 << 20, 16 << 20
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class CopyFailed(Exception):
    """GDAL did not write a file, or not all of it."""


@dataclass(frozen=True)
class MapFile:
    """A layer with the grid of its scene and the tags of its file."""

    layer: MapLayer
    grid: Grid
    tags: Mapping[str, str]

    @property
    def side(self) -> int:
        """Of tiles."""
        sides = (side for side in _SIDES if side * side * self.layer.pixel_bytes <= _TILE_BYTES)
        return next(sides, _SIDES[-1])

    @property
    def copying_bytes(self) -> int:
        """Memory of a copy beside GDAL's cache."""
        return _TILES_AT_ONCE * self.side * self.side * self.layer.pixel_bytes

    def copied(self, raw: Path, finished: Path, cache: int) -> Any:
        """Copy a raw file, and check what is in the copy. Returns pixels by value, if they are classes."""
        virtual = raw.with_suffix(".vrt")
        virtual.write_text(self._virtual(raw.name), encoding="utf-8")
        resampling = "NEAREST" if self.layer.names else "AVERAGE"
        options = {**_OPTIONS, "BLOCKSIZE": self.side, "OVERVIEW_RESAMPLING": resampling}

        def copy() -> Any:
            with rasterio.Env(GDAL_CACHEMAX=cache, GDAL_NUM_THREADS="2", GDAL_PAM_ENABLED=True):
                gdal_copy(virtual, finished, **options)
                return self._compared(raw, finished)

        try:
            found = _in_a_thread(copy)
        except GDAL_ERRORS as error:
            raise CopyFailed(str(error.__cause__ or error)) from error
        handle = os.open(finished, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        return found

    def _compared(self, raw: Path, finished: Path) -> npt.NDArray[np.int64]:
        """Compare all pixels with the raw file: GDAL does not report each failure to write.

        Returns how many pixels each value has, or how many have no value and how many have one.
        """
        counts = np.zeros(1 << 16 if self.layer.names else 2, dtype=np.int64)
        handle = os.open(raw, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with rasterio.open(finished) as file:
                for _, window in file.block_windows(1):
                    pixels = np.ascontiguousarray(file.read(window=window).transpose(1, 2, 0))
                    wanted = self._raw_pixels(handle, window)
                    if not np.array_equal(pixels.view(np.uint8), wanted.view(np.uint8)):
                        raise CopyFailed("the file does not have the pixels that were written to it")
                    values = pixels[..., 0].reshape(-1)
                    known = values if self.layer.names else values == values
                    counts += np.bincount(known, minlength=len(counts))
        finally:
            os.close(handle)
        return counts

    def _raw_pixels(self, handle: int, window: Window) -> npt.NDArray[Any]:
        """Pixels of the raw file by line, pixel and band."""
        layer = self.layer
        out = np.zeros((window.height, window.width, len(layer.bands)), dtype=layer.dtype)
        for i, line in enumerate(out.view(np.uint8).reshape(window.height, -1)):
            place = (window.row_off + i) * self.grid.width + window.col_off
            os.preadv(handle, [line.data], place * layer.pixel_bytes)
        return out

    def _virtual(self, raw: str) -> str:
        """The raw file as a virtual raster (VRT)."""
        grid = self.grid
        tags = "".join(f"<MDI key={quoteattr(key)}>{_text(value)}</MDI>" for key, value in self.tags.items())
        place = ", ".join(repr(float(v)) for v in grid.transform.to_gdal())
        bands = "".join(self._band(i, raw) for i in range(len(self.layer.bands)))
        return (
            f'<VRTDataset rasterXSize="{grid.width}" rasterYSize="{grid.height}">'
            f"<SRS>{escape(grid.crs.to_wkt())}</SRS><GeoTransform>{place}</GeoTransform>"
            f"<Metadata>{tags}</Metadata>{bands}</VRTDataset>"
        )

    def _band(self, band: int, raw: str) -> str:
        """A band, whose values are beside those of the others in each pixel of the raw file."""
        layer, size = self.layer, self.layer.dtype.itemsize
        kind = _KINDS[layer.dtype.name]
        parts = [
            f'<VRTRasterBand dataType="{kind}" band="{band + 1}" subClass="VRTRawRasterBand">',
            f"<Description>{_text(layer.bands[band])}</Description><NoDataValue>{layer.nodata}</NoDataValue>",
        ]
        if layer.scale != 1.0:
            parts.append(f"<Scale>{layer.scale!r}</Scale><Offset>0</Offset>")
        if layer.names:
            by_value = dict(layer.names)
            names = (f"<Category>{_text(by_value.get(v, ''))}</Category>" for v in range(max(by_value) + 1))
            parts.append(f"<CategoryNames>{''.join(names)}</CategoryNames>")
        if layer.colors:
            colors = dict(layer.colors)
            entries = (colors.get(v, (0, 0, 0)) for v in range(max(colors) + 1))
            table = "".join(f'<Entry c1="{r}" c2="{g}" c3="{b}" c4="255"/>' for r, g, b in entries)
            parts.append(f"<ColorInterp>Palette</ColorInterp><ColorTable>{table}</ColorTable>")
        parts += [
            f'<SourceFilename relativeToVRT="1">{escape(raw)}</SourceFilename>',
            f"<ImageOffset>{band * size}</ImageOffset><PixelOffset>{layer.pixel_bytes}</PixelOffset>",
            f"<LineOffset>{layer.pixel_bytes * self.grid.width}</LineOffset>"
            "<ByteOrder>LSB</ByteOrder></VRTRasterBand>",
        ]
        return "".join(parts)


def _text(text: str) -> str:
    """Text in XML, in which some characters cannot be."""
    return escape(_NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def _in_a_thread(work: Any) -> Any:
    """Run what Python cannot interrupt: a signal to end is obeyed at once, Ctrl-C when the work is done."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="oldgrowth-copy")
    wait = True
    try:
        return pool.submit(work).result()
    except Terminated:
        wait = False  # the process ends
        raise
    finally:
        pool.shutdown(wait=wait)
