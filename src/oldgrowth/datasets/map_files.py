"""Names of rasters and vector files, by which scenes are told from tables without importing rasterio."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path

from .walking import MAGIC, is_hidden

RASTERS = (".tif", ".tiff", ".vrt", ".jp2", ".img")
VECTORS = (".gpkg", ".shp", ".geojson", ".json", ".fgb", ".gml", ".kml")


def is_raster(path: str | Path) -> bool:
    """Whether a file is a raster, by its name."""
    return str(path).lower().endswith(RASTERS)


def is_vector(path: str | Path) -> bool:
    """Whether a file has polygons or points, by its name; JSON may be anything."""
    return str(path).lower().endswith(VECTORS) and not str(path).lower().endswith(".json")


def has_rasters(source: str) -> bool:
    """Whether a path or pattern is that of rasters, or a directory contains one."""
    path = os.path.expanduser(source)
    if os.path.isdir(path):
        return any(is_raster(name) for name in _files_below(path))
    if is_pattern(path) and not is_raster(path):
        return any(has_rasters(found) for found in glob.iglob(path, recursive=True))
    return is_raster(path)


def names_below(directory: str, endings: tuple[str, ...]) -> list[str]:
    """The files in a directory, and in those below, that end so."""
    return sorted(name for name in _files_below(directory) if name.lower().endswith(endings))


def is_pattern(path: str) -> bool:
    return MAGIC.search(path) is not None and not os.path.lexists(path)


def _files_below(directory: str) -> Iterator[str]:
    for _, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if not is_hidden(name)]
        yield from (name for name in names if not is_hidden(name))
