"""A scene in a file, a forest on it, and its map, for tests of predict_xarray."""

from pathlib import Path

import numpy as np
import rasterio
import rioxarray
from rasters import smooth_scene, write_raster

from oldgrowth import RandomForestClassifier, raster

HEIGHT, WIDTH = 41, 53
NAMES = ["red", "green", "near infrared"]
EXTRA = {"ndvi": "(near_infrared - red) / (near_infrared + red)", "odd": "1 / (red - green)"}


class World:
    """A scene in a file, a forest on it, and its map."""

    def __init__(self, folder: Path, patch: int = 3, estimators: int = 6, **options):
        self.bands = smooth_scene(3, HEIGHT, WIDTH)
        self.valid = np.random.default_rng(0).random((HEIGHT, WIDTH)) < 0.9
        self.bands[:, ~self.valid] = 0
        labels = (1 + self.bands[0] // 90 + self.bands[1, ::-1] // 140).astype(np.uint8)
        labels[::3] = 0
        self.file = write_raster(folder / "scene.tif", self.bands, nodata=0, names=NAMES, **options)
        self.scene = raster.open_scene(self.file, patch=patch, extra=EXTRA)
        train = self.scene.with_labels(write_raster(folder / "labels.tif", labels[None], nodata=0))
        self.forest = RandomForestClassifier(estimators, random_state=0, n_jobs=2).fit(train)
        raster.write_map(self.forest, self.scene, folder / "map.tif", confidence=folder / "margin.tif")
        with rasterio.open(folder / "map.tif") as file:
            self.map, self.nodata = file.read(1), file.nodata
        with rasterio.open(folder / "margin.tif") as file:
            self.margin = file.read(1)

    def opened(self, **options):
        return rioxarray.open_rasterio(self.file, **options)
