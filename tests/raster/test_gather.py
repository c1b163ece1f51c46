"""Rows gathered from an image in memory: the same forest as with records in memory or on disk."""

import numpy as np
import pytest
from rasters import smooth_scene, write_raster

from oldgrowth import (
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    raster,
)
from oldgrowth.errors import ParameterError
from oldgrowth.raster.scenes import scene as scene_module

SMALL = {"n_estimators": 6, "trees_per_top": 2, "bucket_size": 300, "random_state": 3}


def labelled_scene(tmp_path, bands=3, patch=3, dtype=np.uint8, share=0.9):
    """Two scenes of different sizes, with pixels that are not valid, labels, and lines without any."""
    scenes = []
    for i, (height, width) in enumerate([(70, 81), (50, 130)]):
        values = smooth_scene(bands, height, width, seed=i)
        valid = np.random.default_rng(i).random((height, width)) < share
        values[:, ~valid] = 0
        folder = tmp_path / f"scene{i}"
        folder.mkdir(exist_ok=True)
        write_raster(folder / "bands.tif", values.astype(dtype), nodata=0)
        scenes.append(folder / "bands.tif")
    values = smooth_scene(1, 90, 140, seed=9)
    labels = (1 + (values > 120).astype(np.uint8) + (values > 150)).astype(np.uint8)
    labels[:, 20:40] = 0
    write_raster(tmp_path / "labels.tif", labels, nodata=0)
    return raster.open_scene([str(path) for path in scenes], patch=patch).with_labels(tmp_path / "labels.tif")


@pytest.mark.parametrize("patch", [1, 3, 5])
@pytest.mark.parametrize("strip_pixels", [1 << 17, 700])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_gathered_rows_give_the_same_forest(tmp_path, monkeypatch, patch, strip_pixels, dtype):
    monkeypatch.setattr(scene_module, "STRIP_PIXELS", strip_pixels)
    data = labelled_scene(tmp_path, patch=patch, dtype=dtype)
    forests = [
        RandomForestClassifier(**SMALL, store=store).fit(data) for store in ("gather", "disk", "memory")
    ]
    assert [forest.fit_report_.store for forest in forests] == ["gather", "disk", "memory"]
    assert len({forest.forest_.digest() for forest in forests}) == 1
    np.testing.assert_array_equal(forests[0].feature_importances_, forests[1].feature_importances_)


@pytest.mark.parametrize(
    "forest",
    [
        RandomForestRegressor(**SMALL),
        ExtraTreesClassifier(**SMALL),
        RandomForestClassifier(**SMALL, oob_score=True),
        RandomForestClassifier(**SMALL, max_depth=3),  # buckets that are one leaf
        RandomForestClassifier(**SMALL, class_weight="balanced_subsample"),
    ],
    ids=["regression", "extra trees", "out of bag", "shallow", "weights"],
)
def test_all_kinds_of_forests_can_be_gathered(tmp_path, forest):
    data = labelled_scene(tmp_path)
    digests, scores = [], []
    for store in ("gather", "disk"):
        forest.set_params(store=store).fit(data)
        digests.append(forest.forest_.digest())
        scores.append(getattr(forest, "oob_score_", None))
    assert digests[0] == digests[1] and scores[0] == scores[1]


def test_selected_features_are_gathered(tmp_path):
    data = labelled_scene(tmp_path)
    chosen = data.select([data.feature_names[i] for i in (20, 3, 4, 13)])
    forests = [RandomForestClassifier(**SMALL, store=store).fit(chosen) for store in ("gather", "disk")]
    assert forests[0].forest_.digest() == forests[1].forest_.digest()


def test_buckets_of_rows_on_disk_have_five_bytes_a_row(tmp_path):
    data = labelled_scene(tmp_path)
    forest = RandomForestClassifier(**SMALL, store="gather").fit(data)
    written = {stage.name: stage.bytes_written for stage in forest.fit_report_.stages}
    tops = 3
    headers = tops * 60 * 32  # a block or few for each bucket
    assert written["distribute"] <= tops * 5 * data.n_rows + headers


def test_only_scenes_can_be_gathered():
    x = np.arange(20.0).reshape(10, 2)
    with pytest.raises(ParameterError, match="only scenes can be gathered"):
        RandomForestClassifier(2, store="gather").fit(x, np.arange(10) % 2)
