"""Maps: pixel for pixel what `predict` says of the same rows."""

import numpy as np
import pytest
import rasterio
from rasters import TRANSFORM, UTM, patches_by_numpy, smooth_scene, write_raster
from rio_cogeo.cogeo import cog_validate

from oldgrowth import RandomForestClassifier, raster
from oldgrowth.raster import scene as scene_module


@pytest.mark.parametrize("strip_pixels", [1 << 17, 64 * 31, 1])
def test_a_map_is_what_predict_says(tmp_path, monkeypatch, strip_pixels):
    monkeypatch.setattr(scene_module, "STRIP_PIXELS", strip_pixels)
    bands = smooth_scene(3, 90, 31)
    valid = np.random.default_rng(0).random((90, 31)) < 0.9
    bands[:, ~valid] = 0
    labels = np.where(bands[0] > 128, 1, 2).astype(np.uint8)
    labels[::2] = 0
    scene = raster.open_scene(write_raster(tmp_path / "scene.tif", bands, nodata=0), patch=3)
    train = scene.with_labels(write_raster(tmp_path / "labels.tif", labels[None], nodata=0))
    forest = RandomForestClassifier(8, random_state=0).fit(train)
    raster.write_map(forest, scene, tmp_path / "map.tif", probabilities=tmp_path / "p.tif")
    rows = patches_by_numpy(bands, valid, 3)
    expected = np.zeros(valid.shape, dtype=np.uint8)
    expected[valid] = forest.predict(rows)
    with rasterio.open(tmp_path / "map.tif") as file:
        np.testing.assert_array_equal(file.read(1), expected)
        assert (file.nodata, file.transform, file.crs.to_string()) == (0, TRANSFORM, UTM)
    with rasterio.open(tmp_path / "p.tif") as file:
        np.testing.assert_array_equal(file.read()[:, valid].T, np.rint(250 * forest.predict_proba(rows)))
    assert cog_validate(tmp_path / "map.tif")[0] and cog_validate(tmp_path / "p.tif")[0]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []
