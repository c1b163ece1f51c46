"""Maps of classes for tests of samples, and reference labels entered into files of points."""

import numpy as np
import pyogrio
import rasterio
import shapely
from rasters import write_raster

NAMES = {1: "wood", 2: "grass", 7: "water"}


def write_map(path, values, nodata=0, names=NAMES, **options):
    write_raster(path, values[None], nodata=nodata, **options)
    with rasterio.open(path, "r+") as file:
        file.update_tags(**{f"CLASS_{value}": name for value, name in names.items()})
    return path


def classes(height=60, width=83, seed=0):
    drawn = np.random.default_rng(seed).random((height, width))
    values = np.select([drawn < 0.05, drawn < 0.3, drawn < 0.9], [7, 2, 1], 0)
    return values.astype(np.uint8)


def read(path):
    meta, _, wkb, columns = pyogrio.raw.read(path)
    return meta, shapely.from_wkb(wkb), dict(zip(meta["fields"].tolist(), columns, strict=True))


def fill(path, labels, field="reference", copy=None):
    """Enter reference labels as another program would."""
    meta, points, fields = read(path)
    fields[field] = np.asarray(labels)
    out = copy or path
    driver = {".gpkg": "GPKG", ".shp": "ESRI Shapefile", ".geojson": "GeoJSON"}[out.suffix]
    pyogrio.raw.write(
        out, shapely.to_wkb(points), list(fields.values()), list(fields),
        driver=driver, geometry_type="Point", crs=meta["crs"],
    )  # fmt: skip
    return out
