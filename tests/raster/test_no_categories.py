"""Scenes and categories: their features are numbers, and a forest with categories does not predict them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rasters import smooth_scene, write_raster

import oldgrowth
from oldgrowth import RandomForestClassifier, raster
from oldgrowth.errors import NotCategoricalError


def test_scenes_have_no_categories(tmp_path: Path) -> None:
    bands = smooth_scene(2, 20, 30)
    scene = raster.open_scene(write_raster(tmp_path / "scene.tif", bands, names=["red", "cover"]))
    labels = write_raster(tmp_path / "labels.tif", (bands[:1] > np.median(bands)).astype(np.uint8) + 1)
    data = scene.with_labels(labels)
    with pytest.raises(NotCategoricalError, match="Raster dataset are numbers"):
        RandomForestClassifier(2, categorical_features=["cover"]).fit(data)
    RandomForestClassifier(2).fit(data)
    frame = pd.DataFrame({"red": np.arange(40.0), "cover": np.arange(40) % 3})
    forest = RandomForestClassifier(2, categorical_features=["cover"]).fit(frame, np.arange(40) % 2)
    with pytest.raises(NotCategoricalError):
        forest.predict(scene)
    with pytest.raises(NotCategoricalError):
        oldgrowth.raster.write_map(forest, scene, tmp_path / "map.tif")
