"""At most so many pixels of each class: drawn uniformly, and independent of how the scene is read."""

import numpy as np
import pytest
import shapely
from rasters import smooth_scene, write_raster
from vectors import labels_of, on_map, write_vectors

from oldgrowth import raster
from oldgrowth.errors import ParameterError
from oldgrowth.raster.scenes import scene as scene_module

SHAPE = (60, 70)


def made(tmp_path, seed=0, per_class=None, dtype="uint8"):
    rng = np.random.default_rng(0)
    bands = smooth_scene(1, *SHAPE)
    bands[:, rng.random(SHAPE) < 0.3] = 0
    classes = rng.choice(np.array([1, 2, 3, 9], dtype=dtype), SHAPE, p=[0.5, 0.3, 0.195, 0.005])
    scene = raster.open_scene(write_raster(tmp_path / "scene.tif", bands, nodata=0))
    file = write_raster(tmp_path / "labels.tif", classes[None])
    return scene.with_labels(file, per_class=per_class, seed=seed)


def drawn(data):
    return np.concatenate([(some.strip.first + some.lines) * SHAPE[1] + some.pixels for some in data.rows()])


def counts(data):
    return dict(zip(*(one.tolist() for one in np.unique(labels_of(data), return_counts=True)), strict=True))


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32"])
def test_the_cap_is_reached_and_not_exceeded(tmp_path, dtype):
    every = counts(made(tmp_path, dtype=dtype))
    for n in (1, 50, 400, 10_000):
        expected = {label: min(n, count) for label, count in every.items()}
        assert counts(made(tmp_path, per_class=n, dtype=dtype)) == expected


def test_strips_do_not_show_and_seeds_do(tmp_path, monkeypatch):
    data = made(tmp_path, per_class=100)
    rows, marks = drawn(data), data.fingerprint()
    assert len(rows) < 400 and set(rows) < set(drawn(made(tmp_path)))
    monkeypatch.setattr(scene_module, "STRIP_PIXELS", 100)
    again = raster.open_scene(tmp_path / "scene.tif").with_labels(tmp_path / "labels.tif", per_class=100)
    np.testing.assert_array_equal(drawn(again), rows)
    other = raster.open_scene(tmp_path / "scene.tif").with_labels(
        tmp_path / "labels.tif", per_class=100, seed=1
    )
    assert set(drawn(other)) != set(rows) and other.fingerprint() != marks


def test_each_pixel_is_drawn_as_often(tmp_path):
    """The numbers of draws are spread as they should be: chi-squared within six standard deviations."""
    data = made(tmp_path)
    scene = raster.open_scene(tmp_path / "scene.tif")
    times, draws = np.zeros(SHAPE[0] * SHAPE[1]), 60
    for seed in range(draws):
        times[drawn(scene.with_labels(tmp_path / "labels.tif", per_class=100, seed=seed))] += 1
    places, labels = drawn(data), labels_of(data)
    for label in (1, 2, 3):
        found = times[places[labels == label]]
        share = 100 / len(found)
        spread = ((found - draws * share) ** 2 / (draws * share * (1 - share))).sum()
        assert abs(spread - len(found)) < 6 * np.sqrt(2 * len(found))


def test_text_of_polygons(tmp_path):
    scene = raster.open_scene(write_raster(tmp_path / "scene.tif", smooth_scene(1, *SHAPE)))
    geometries = on_map(shapely.box([0, 0, 40], [0, 30, 0], [30, 30, 70], [20, 60, 60]))
    file = write_vectors(tmp_path / "a.gpkg", geometries, kind=["wood", "field", "wood"])
    assert counts(scene.with_labels(file, per_class=70)) == {"wood": 70, "field": 70}
    train, test = scene.with_labels(file, per_class=70).split_blocks("300 m")
    assert sum(counts(train).values()) + sum(counts(test).values()) == 140


@pytest.mark.parametrize("per_class", [0, -1, 1.5, "all", True])
def test_caps_that_are_refused(tmp_path, per_class):
    with pytest.raises(ParameterError, match="per_class must be a whole number of at least 1"):
        made(tmp_path, per_class=per_class)


def test_numbers_that_are_not_classes_are_refused(tmp_path):
    scene = raster.open_scene(write_raster(tmp_path / "scene.tif", smooth_scene(1, *SHAPE)))
    file = write_raster(tmp_path / "labels.tif", np.random.default_rng(0).random((1, *SHAPE), dtype="f4"))
    with pytest.raises(
        ParameterError, match=r"per_class must be None: labels such as 0\.\d+ are not classes"
    ):
        scene.with_labels(file, per_class=3)
