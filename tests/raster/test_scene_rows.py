"""Scenes as datasets: their rows are those that plain numpy makes of the same pixels."""

import numpy as np
import pytest
from rasters import patches_by_numpy, smooth_scene, write_raster

from oldgrowth import raster
from oldgrowth.raster.scenes import scene as scene_module


def rows_of(scene, batch=1000):
    return np.concatenate([one.x.astype(np.float32) for one in scene.batches(batch, keep_bytes=True)])


@pytest.mark.parametrize("patch", [1, 3, 5])
@pytest.mark.parametrize("nodata", [None, 0])
@pytest.mark.parametrize("strip_pixels", [1 << 17, 200, 1])
def test_rows_are_the_patches_of_valid_pixels(tmp_path, monkeypatch, patch, nodata, strip_pixels):
    monkeypatch.setattr(scene_module, "STRIP_PIXELS", strip_pixels)
    bands = smooth_scene(3, 23, 31)
    valid = np.ones((23, 31), dtype=bool)
    if nodata is not None:
        valid = np.random.default_rng(0).random((23, 31)) < 0.9
        bands[:, ~valid] = nodata
    file = write_raster(tmp_path / "scene.tif", bands, nodata=nodata, names=["red", "green", "blue"])
    scene = raster.open_scene(file, patch=patch)
    np.testing.assert_array_equal(rows_of(scene), patches_by_numpy(bands, valid, patch))
    assert scene.feature_names[0] == ("red" if patch == 1 else f"red({-(patch // 2)},{-(patch // 2)})")
    assert len(scene.feature_names) == 3 * patch * patch
