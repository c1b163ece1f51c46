"""Scenes are datasets of files that all workers can read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from clusters import cluster_of

import oldgrowth
import oldgrowth.dask
from oldgrowth import raster


@pytest.mark.slow
def test_a_scene_gives_the_same_forest_and_can_be_mapped(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    bands = np.cumsum(rng.integers(-3, 4, (2, 90, 70)), axis=2).astype(np.int16)
    profile: dict[str, Any] = {"driver": "GTiff", "width": 70, "height": 90, "crs": "EPSG:32637"}
    profile["transform"] = rasterio.transform.from_origin(500_000, 4_000_000, 30, 30)
    with rasterio.open(tmp_path / "scene.tif", "w", count=2, dtype="int16", **profile) as file:
        file.write(bands)
    with rasterio.open(tmp_path / "labels.tif", "w", count=1, dtype="uint8", **profile) as file:
        file.write((bands[:1] > 0).astype(np.uint8) + 1)
    sizes = {"n_estimators": 4, "bucket_size": 500, "top_sample": 600, "random_state": 0}

    def data() -> Any:
        return raster.open_scene(tmp_path / "scene.tif", patch=3).with_labels(tmp_path / "labels.tif")

    one = oldgrowth.RandomForestClassifier(**sizes).fit(data())
    with cluster_of(2) as client:
        path = tmp_path / "forest.og"
        found = oldgrowth.dask.RandomForestClassifier(**sizes, client=client, model_path=path).fit(data())
    assert found.forest_.digest() == one.forest_.digest()
    loaded = oldgrowth.load(path)
    assert type(loaded) is oldgrowth.RandomForestClassifier and loaded.recipe_ == one.recipe_
    raster.write_map(found, data(), tmp_path / "map.tif")
    with rasterio.open(tmp_path / "map.tif") as file:
        assert set(np.unique(file.read(1))) <= {1, 2}
