"""Labels of pixels from a raster, sampled at the centres of a scene's pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from rasterio.enums import Resampling
from rasterio.vrt import WarpedVRT
from rasterio.windows import Window

from ..datasets.files import find_files
from ..datasets.labels import Labels
from ..errors import MissingCRSError, ParameterError
from .layers import Layers
from .raster_files import EXTENSIONS, opened, reading
from .strips import Strip


@dataclass(frozen=True)
class ValuedPixels:
    """Values by line and pixel, and where there is one."""

    values: npt.NDArray[Any]
    present: npt.NDArray[np.bool_]

    def at(self, lines: npt.NDArray[np.intp], pixels: npt.NDArray[np.intp]) -> Labels:
        return self.values[lines, pixels]


class RasterLabels:
    """Labels in a band; nodata pixels have none. Other grids are sampled by nearest neighbour."""

    def __init__(self, path: Any, scenes: Sequence[Layers]) -> None:
        (self._file,) = find_files(path, EXTENSIONS)
        with opened(self._file) as raster:
            if raster.crs is None:
                raise MissingCRSError(self._file.path, "so that its labels cannot be placed")
            if raster.count != 1:
                wanted = f"a raster of one band; {self._file.path} has {raster.count}"
                raise ParameterError("labels", self._file.path, wanted)
            self.name = raster.descriptions[0] or "label"
        self._grids = [layers.grid for layers in scenes]

    def read(self, strip: Strip) -> ValuedPixels:
        grid = self._grids[strip.scene]
        window = Window(0, strip.first, grid.width, strip.stop - strip.first)
        with opened(self._file) as raster, reading(self._file):
            with WarpedVRT(
                raster,
                crs=grid.crs,
                transform=grid.transform,
                width=grid.width,
                height=grid.height,
                resampling=Resampling.nearest,
                add_alpha=raster.nodata is None,
            ) as vrt:
                values = vrt.read(1, window=window)
                present = vrt.dataset_mask(window=window) != 0
            nodata = raster.nodata
        if nodata is not None and not math.isnan(nodata):
            present &= values != nodata
        if values.dtype.kind == "f":
            present &= np.isfinite(values)
        return ValuedPixels(values, present)

    def fingerprint(self) -> dict[str, Any]:
        return {"file": self._file.described()}
