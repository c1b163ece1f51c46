"""A generated scene on disk: a GeoTIFF for each band, polygons with the labels of the training pixels.

What only the picture and the scores need, pixels and true classes, is in .npy files. Generating a scene takes
far more memory than training on it may, so it runs in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyogrio
import rasterio
import shapely
from rasterio.errors import RasterioError
from rasterio.features import rasterize, shapes

from ..errors import SceneError
from ..system.signals import uninterrupted
from .scene import BAND_NAMES, Bools, Scene, make_scene, split_blocks

FIELD = "class"  # of the polygons
_BLOCKS_ACROSS = 12
_BLOCK_SIDES = (5, 50)
_CRS = "EPSG:32633"
_PLACE = rasterio.Affine(30.0, 0.0, 400_000.0, 0.0, -30.0, 5_400_000.0)


@dataclass(frozen=True)
class SceneFiles:
    """The scene, mapped from its files, its test pixels, and those in polygons, to train on."""

    scene: Scene
    test: Bools
    train: Bools
    bands: Path  # a directory
    polygons: Path


def make_scene_files(directory: Path, size: int, seed: int) -> SceneFiles:
    """Generate a scene of `size` x `size` pixels in the directory, in another process."""
    # -P: do not import from the working directory.
    command = [sys.executable, "-P", "-m", __name__, str(directory), str(size), str(seed)]
    code, errors = _run(command)
    if code:
        raise SceneError(code, errors)
    bands, labels, truth, test, train = (
        np.load(directory / f"{name}.npy", mmap_mode="r")
        for name in ("bands", "labels", "truth", "test", "train")
    )
    files = directory / "bands", directory / "labels.gpkg"
    return SceneFiles(Scene(bands, labels, truth), test, train, *files)


def _run(command: list[str]) -> tuple[int, str]:
    """Run a process that never outlives the call: its exit code and what it wrote to standard error."""
    process = None
    try:
        # Interrupted while it starts, `Popen` would leave the process running. In its own session it does
        # not get the Ctrl-C of the terminal.
        with uninterrupted():
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
            )
        errors = process.communicate()[1]
        return process.returncode, errors
    finally:
        if process is not None:
            with uninterrupted(), process:  # which waits for its end
                process.kill()


def write_scene(directory: Path, size: int, seed: int) -> None:
    scene = make_scene(size, size, seed)
    smallest, largest = _BLOCK_SIDES
    block = min(largest, max(smallest, size // _BLOCKS_ACROSS))
    test = split_blocks(scene, block=block, seed=seed)
    layers: dict[str, npt.NDArray[Any]] = {
        "bands": scene.bands, "labels": scene.labels, "truth": scene.truth, "test": test
    }  # fmt: skip
    for name, pixels in layers.items():
        np.save(directory / f"{name}.npy", pixels)
    np.save(directory / "train.npy", _write_polygons(directory / "labels.gpkg", scene, ~test))
    (directory / "bands").mkdir()
    for name, band in zip(BAND_NAMES, scene.bands, strict=True):
        _write_band(directory / "bands" / f"{name.replace(' ', '-')}.tif", band)


def _write_band(path: Path, band: npt.NDArray[np.uint16]) -> None:
    height, width = band.shape
    shape = {"count": 1, "height": height, "width": width, "dtype": band.dtype, "tiled": True}
    with rasterio.open(path, "w", driver="GTiff", crs=_CRS, transform=_PLACE, nodata=0, **shape) as file:
        file.write(band, 1)


def _write_polygons(path: Path, scene: Scene, among: Bools) -> Bools:
    """Write the outlines of all regions of these pixels with the same label, and return the pixels in them.

    Regions of one pixel are left out, but for the rare class: nobody would draw them.
    """
    rare = len(scene.class_names) - 1
    outlines, labels = zip(*shapes(scene.labels, mask=among, transform=_PLACE), strict=True)
    polygons = np.array([shapely.geometry.shape(outline) for outline in outlines])
    numbers = np.array(labels, dtype=np.intp)
    drawn = (shapely.area(polygons) > 1.5 * abs(_PLACE.determinant)) | (numbers == rare)
    names = np.array(scene.class_names, dtype=object)[numbers[drawn]]
    pyogrio.raw.write(
        path,
        geometry=shapely.to_wkb(polygons[drawn]),
        geometry_type="Polygon",
        field_data=[names],
        fields=[FIELD],
        crs=_CRS,
    )
    return rasterize(polygons[drawn], scene.shape, transform=_PLACE).astype(bool)


def main(directory: str, size: str, seed: str) -> int:
    """The main function of the other process; the last line of its errors is shown to the user."""
    try:
        write_scene(Path(directory), int(size), int(seed))
    except (OSError, MemoryError, RasterioError, pyogrio.errors.DataSourceError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
