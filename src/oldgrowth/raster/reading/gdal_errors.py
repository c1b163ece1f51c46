"""The errors that GDAL's failures are raised as."""

from __future__ import annotations

from rasterio._err import CPLE_BaseError  # rasterio has no public name for it, and raises it nevertheless
from rasterio.errors import RasterioError

GDAL_ERRORS = (RasterioError, CPLE_BaseError)
