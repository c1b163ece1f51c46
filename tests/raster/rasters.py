"""Rasters for tests, written as real GeoTIFFs, and what is expected of their pixels, by plain numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from affine import Affine

UTM = "EPSG:32637"
TRANSFORM = Affine(30.0, 0.0, 820_000.0, 0.0, -30.0, 830_000.0)


def write_raster(path: Path, bands: np.ndarray, **options: Any) -> Path:
    """Write (bands, lines, pixels) as a tiled GeoTIFF; `names` are descriptions of the bands."""
    names = options.pop("names", ())
    profile = {"driver": "GTiff", "crs": UTM, "transform": TRANSFORM, "compress": "deflate", **options}
    count, height, width = bands.shape
    shape = {"count": count, "height": height, "width": width, "dtype": bands.dtype}
    with rasterio.open(path, "w", **shape, **profile) as file:
        file.write(bands)
        for i, name in enumerate(names, start=1):
            file.set_band_description(i, name)
    return path


def smooth_scene(bands: int, height: int, width: int, seed: int = 0) -> np.ndarray:
    """Bytes from 1 to 255 that vary over some pixels, with noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(y / (5 + b) + b) + np.cos(x / (7 + b)) for b in range(bands)]
    values = 128 + 50 * np.array(waves) + rng.normal(0, 8, (bands, height, width))
    return np.clip(values, 1, 255).astype(np.uint8)


def patches_by_numpy(bands: np.ndarray, valid: np.ndarray, patch: int) -> np.ndarray:
    """For each valid pixel in the order of the scan: its patch by column, line and band; NaN is missing."""
    half = patch // 2
    values = np.where(valid, bands.astype(np.float32), np.nan)
    padded = np.pad(values, ((0, 0), (half, half), (half, half)), constant_values=np.nan)
    height, width = valid.shape
    shifted = [padded[:, dy : dy + height, dx : dx + width] for dx in range(patch) for dy in range(patch)]
    rows = np.stack(shifted)  # by place, band, line and pixel
    return rows.transpose(2, 3, 0, 1).reshape(height * width, -1)[valid.ravel()]
