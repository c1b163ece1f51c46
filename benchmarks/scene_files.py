"""Generated imagery as GeoTIFFs: a file for each band, and one with labels."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import rasterio
from affine import Affine

from imagery import N_BANDS, WIDTH, pixels

LINES_AT_A_TIME = 512
_PIXEL = 30.0  # metres
_LABELS = "labels.tif"


def write_scene(directory: Path, lines: int, seed: int = 0, width: int = WIDTH) -> tuple[list[str], str]:
    """The files of the bands and of the labels; files that are there are taken as they are."""
    directory.mkdir(parents=True, exist_ok=True)
    bands = [directory / f"scene_B{band + 1}.tif" for band in range(N_BANDS)]
    done = directory / "complete"
    if not done.exists():
        profile = {
            "driver": "GTiff",
            "width": width,
            "height": lines,
            "count": 1,
            "dtype": "uint8",
            "nodata": 0,
            "crs": "EPSG:32637",
            "transform": Affine(_PIXEL, 0, 500_000, 0, -_PIXEL, 4_000_000),
            "tiled": True,
            "blockxsize": 512,
            "blockysize": 512,
            "compress": "deflate",
            "bigtiff": "if_safer",
        }
        with ExitStack() as stack:
            names = [*bands, directory / _LABELS]
            files = [stack.enter_context(rasterio.open(name, "w", **profile)) for name in names]
            for first in range(0, lines, LINES_AT_A_TIME):
                n = min(LINES_AT_A_TIME, lines - first)
                values, labels = pixels(first, n, seed, width)
                window = rasterio.windows.Window(0, first, width, n)
                for band, file in enumerate(files[:-1]):
                    file.write(values[:, band].reshape(n, width), 1, window=window)
                files[-1].write(labels.reshape(n, width) + 1, 1, window=window)
        done.touch()
    return [str(band) for band in bands], str(directory / _LABELS)


def first_labels(labels: str, lines: int) -> str:
    """A file with the labels of the first lines, and none beyond them."""
    path = Path(labels).with_name(f"first-{lines}-labels.tif")
    with rasterio.open(labels) as source, rasterio.open(path, "w", **source.profile) as file:
        values = source.read(1)
        values[lines:] = 0
        file.write(values, 1)
    return str(path)
