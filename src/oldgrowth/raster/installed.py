"""Whether the packages of the extra `raster` are installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from ..errors import MissingExtraError


def check_installed() -> None:
    packages = ("rasterio>=1.4", "pyogrio>=0.10", "shapely>=2.0")
    for package in packages:
        if find_spec(package.partition(">=")[0]) is None:
            raise MissingExtraError(package, "oldgrowth.raster", packages)


def ogr() -> Any:
    """The package for vector files, imported when there are some: it takes 50 MB of memory."""
    import pyogrio

    return pyogrio
