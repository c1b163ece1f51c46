"""Labels of random geometries in random grids, read in random strips, against rasterio on whole scenes.

    python tests/torture/labels.py SECONDS [SEED]

Edges often go through the centres of pixels. Rotated grids are left out: there, last bits may differ if a
scene is read in several parts.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from affine import Affine

sys.path.insert(0, str(Path(__file__).parents[1] / "raster"))
from rasters import UTM, write_raster
from vectors import in_crs, label_image, on_map, rasterized, write_vectors

from oldgrowth import raster
from oldgrowth.errors import NoLabelsError
from oldgrowth.raster.labels import label_windows, shapes
from oldgrowth.raster.scenes import scene as scene_module

OTHERS = {UTM: ("EPSG:4326", "EPSG:3857", "EPSG:32638"), "EPSG:4326": (UTM, "EPSG:3857")}


def grid(rng: Any) -> tuple[str, Affine]:
    """A coordinate reference system and a transform, of north up, south up, or in degrees."""
    if rng.random() < 0.25:
        return "EPSG:4326", Affine(1 / 3600, 0, 41 + rng.random(), 0, -1 / 3600, 7 + rng.random())
    size, up = float(rng.choice([30, 10, 0.3, 1 / 3, 7.7])), rng.choice([-1.0, -1.0, 1.0])
    x, y = float(rng.choice([820_000, 500_000.5, 123_456.789])), float(rng.choice([830_000, 5e6 + 0.25]))
    return UTM, Affine(size, 0, x, 0, float(up) * size, y)


def geometry(rng: Any, width: int, height: int) -> Any:
    """A geometry in pixels, with many vertices at halves of them."""
    points = rng.random(2) * (width, height) + rng.normal(
        0, rng.choice([0.4, 3, 30]), (rng.integers(3, 12), 2)
    )
    if rng.random() < 0.5:
        points = np.round(points * 2) / 2
    low, high = points.min(axis=0), points.max(axis=0)
    centre = shapely.Point(points[0])
    return [
        shapely.Polygon(points),
        shapely.MultiPoint(points),
        shapely.box(*low, *high),
        shapely.MultiPolygon([shapely.Polygon(points), shapely.Polygon(points + 5)]),
        centre.buffer(6).difference(centre.buffer(2)),
    ][rng.integers(5)]


def agrees(directory: Path, seed: int) -> bool:
    rng = np.random.default_rng(seed)
    height, width = rng.integers(5, 90, 2).tolist()
    crs, transform = grid(rng)
    label_windows.WINDOW_PIXELS, shapes.VERTICES = rng.integers(1, 5000), rng.integers(3, 400)
    scene_module.STRIP_PIXELS = int(rng.integers(1, 3000))
    geometries = [on_map(geometry(rng, width, height), transform) for _ in range(rng.integers(1, 30))]
    other = str(rng.choice(OTHERS[crs])) if rng.random() < 0.3 else crs
    if other != crs:
        geometries = [in_crs(one, other, crs) for one in geometries]
    file = write_raster(
        directory / f"{seed}.tif", np.ones((1, height, width), np.uint8), crs=crs, transform=transform
    )
    vectors = write_vectors(
        directory / f"{seed}.gpkg", geometries, other, number=range(1, len(geometries) + 1)
    )
    back = geometries if other == crs else [in_crs(one, crs, other) for one in geometries]
    try:
        found = label_image(raster.open_scene(file).with_labels(vectors), 0).astype(int)
    except NoLabelsError:
        found = np.zeros((height, width), dtype=int)
    return bool((found == rasterized(back, (height, width), transform)).all())


def main() -> int:
    end, seed = time.monotonic() + float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    warnings.simplefilter("ignore")
    wrong, first = [], seed
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory() as directory:
            if not agrees(Path(directory), seed):
                wrong.append(seed)
        seed += 1
    print(f"{seed - first:,} cases; wrong: {wrong or 'none'}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
