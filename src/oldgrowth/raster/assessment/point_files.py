"""Points of a sample as a vector file: a GeoPackage, a shapefile or GeoJSON."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely
from rasterio import warp
from rasterio.errors import RasterioError

from ...checks import path_of
from ...datasets.files import SourceFile
from ...errors import DamagedFileError, DataError, MissingCRSError, NoDataError, ParameterError
from ...system.atomic_file import new_file
from ..installed import ogr
from ..labels.vector_files import KIND, files_of, layer_of, watched

DRIVERS = {".gpkg": "GPKG", ".shp": "ESRI Shapefile", ".geojson": "GeoJSON", ".json": "GeoJSON"}
_DEGREES = "EPSG:4326"  # which GeoJSON is in
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Points:
    """Coordinates of points, and values of their fields by name."""

    x: Floats
    y: Floats
    crs: Any
    fields: Mapping[str, npt.NDArray[Any]]

    def __len__(self) -> int:
        return len(self.x)

    def moved_to(self, crs: Any) -> tuple[Floats, Floats]:
        """The coordinates in another coordinate reference system."""
        x, y = warp.transform(self.crs, crs, self.x, self.y)
        return np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)


def driver_of(path: Path) -> str:
    """The format of a file of points, by its suffix."""
    driver = DRIVERS.get(path.suffix.lower())
    if driver is None:
        raise ParameterError("output", str(path), f"a file that ends in {', '.join(DRIVERS)}")
    return driver


def write_points(points: Points, path: Path) -> None:
    """Write points to files that appear whole; those beside a shapefile come before it."""
    driver = driver_of(path)
    x, y, crs = points.x, points.y, points.crs
    if driver == "GeoJSON":
        try:
            x, y = points.moved_to(_DEGREES)
        except RasterioError as error:
            raise DataError(
                f"{path} cannot be written: GeoJSON has longitudes and latitudes, to which the coordinate "
                f"reference system of the map cannot be transformed ({error}). Choose a .gpkg file."
            ) from error
        crs = _DEGREES
    with tempfile.TemporaryDirectory(prefix="oldgrowth-points-") as directory:
        _write(Path(directory) / path.name, points.fields, shapely.points(x, y), crs, driver)
        for file in sorted(os.listdir(directory), key=lambda name: name == path.name):
            with new_file(path.with_name(file)) as out:
                out.write((Path(directory) / file).read_bytes())


def _write(
    path: Path, fields: Mapping[str, npt.NDArray[Any]], points: npt.NDArray[Any], crs: Any, driver: str
) -> None:
    try:
        ogr().raw.write(
            path,
            shapely.to_wkb(points),
            list(fields.values()),
            list(fields),
            driver=driver,
            geometry_type="Point",
            crs=crs if isinstance(crs, str) else crs.to_wkt(),
            encoding="UTF-8",
            layer=path.stem,
        )
    except (RuntimeError, ValueError) as error:  # of GDAL
        raise DataError(f"{path.name} could not be written: {' '.join(str(error).split())}") from error


def read_points(path: str | Path, layer: str | None) -> tuple[SourceFile, Points]:
    """Read points with all of their fields."""
    path_of("points", path)
    files = files_of(path)
    file = files[0]
    try:
        with watched(files):
            layer = layer_of(file.path, layer)
            types = ogr().read_info(file.path, layer=layer)["dtypes"]
            meta, _, wkb, columns = ogr().raw.read(file.path, layer=layer)
    except ogr().errors.DataSourceError as error:
        raise DamagedFileError(file.path, KIND, error) from error
    if meta["crs"] is None:
        raise MissingCRSError(file.path, "so that its points cannot be placed", "ogr2ogr -a_srs")
    if wkb is None or not len(wkb):
        raise NoDataError(file.path, "it has no points")
    geometries = shapely.from_wkb(wkb)
    other = np.flatnonzero(shapely.get_type_id(geometries) != shapely.GeometryType.POINT)
    if len(other):
        kind = "nothing" if geometries[other[0]] is None else f"a {geometries[other[0]].geom_type}"
        raise DataError(f"{file.path} must have points only; its geometry {other[0] + 1:,} is {kind}.")
    columns = [
        _bools(values) if kind == "bool" else values for values, kind in zip(columns, types, strict=True)
    ]
    by_name = dict(zip(meta["fields"].tolist(), columns, strict=True))
    x, y = shapely.get_x(geometries), shapely.get_y(geometries)
    return file, Points(x, y, meta["crs"], by_name)


def _bools(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values of a field of bools, which are floats if some are missing; None is missing."""
    if values.dtype == bool:
        return values
    return np.array([None if value != value else bool(value) for value in values.tolist()], dtype=object)
