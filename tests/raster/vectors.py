"""Vector files for tests, written by GDAL, and the pixels that are expected of them, by rasterio alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyogrio
import shapely
from affine import Affine
from rasterio import features, warp
from rasters import TRANSFORM, UTM


def write_vectors(path: Path, geometries: Any, crs: str | None = UTM, **fields: Any) -> Path:
    """Write geometries with fields: values of each, a sequence of strings, numbers or None."""
    values = [np.asarray(one, dtype=object if any(isinstance(v, str) for v in one) else None) for one in
              map(list, fields.values())]  # fmt: skip
    wkb = shapely.to_wkb(np.asarray(list(geometries), dtype=object))
    pyogrio.raw.write(path, wkb, values, list(fields), geometry_type="Unknown", crs=crs)
    return path


def on_map(geometry: Any, transform: Affine = TRANSFORM) -> Any:
    """A geometry of pixels and lines, in coordinates of the map."""
    return shapely.transform(geometry, lambda p: np.column_stack(transform @ (p[:, 0], p[:, 1])))


def in_crs(geometry: Any, crs: str, source: str = UTM) -> Any:
    return shapely.transform(
        geometry, lambda p: np.column_stack(warp.transform(source, crs, p[:, 0], p[:, 1]))
    )


def rasterized(geometries: Any, shape: tuple[int, int], transform: Affine = TRANSFORM) -> np.ndarray:
    """The number of the last geometry at each pixel, counted from 1; 0 where there is none."""
    numbered = [(geometry, i) for i, geometry in enumerate(geometries, start=1)]
    return features.rasterize(numbered, out_shape=shape, transform=transform, dtype="int32")


def labels_of(data: Any) -> np.ndarray:
    """The labels of all rows."""
    parts = [batch.y for batch in data.batches(1000)]
    return np.concatenate([part.decoded() if hasattr(part, "decoded") else part for part in parts])


def label_image(data: Any, missing: Any = None) -> np.ndarray:
    """The labels of a scene's pixels, by line and pixel."""
    grid = data.scenes[0].grid
    image = np.full((grid.height, grid.width), missing, dtype=object)
    values = []
    for some in data.rows():
        lines, pixels = some.strip.first + some.lines, some.pixels
        values += list(zip(lines.tolist(), pixels.tolist(), strict=True))
    for (line, pixel), label in zip(values, labels_of(data).tolist(), strict=True):
        image[line, pixel] = label
    return image
