"""Pixel values, names and colours of classes of all kinds."""

import numpy as np
import pytest
import rasterio
from rasters import smooth_scene, write_raster

from oldgrowth import RandomForestClassifier, raster
from oldgrowth.errors import TooManyClassesError
from oldgrowth.raster.maps.map_layers import class_layer, probability_layer


@pytest.mark.parametrize(
    ("classes", "values", "nodata", "dtype"),
    [
        ([1, 2, 9], [1, 2, 9], 0, "uint8"),
        ([0, 1], [0, 1], 255, "uint8"),
        ([0, 255], [0, 255], 256, "uint16"),
        ([1, 256], [1, 256], 0, "uint16"),
        ([0, 65_534], [0, 65_534], 65_535, "uint16"),
        ([1, 65_535], [1, 65_535], 0, "uint16"),
        ([0, 65_535], [0, 65_535], 65_534, "uint16"),
        (np.delete(np.arange(65_536), 7), np.delete(np.arange(65_536), 7), 7, "uint16"),
        ([1, 65_536], [1, 2], 0, "uint8"),
        ([-1, 3], [1, 2], 0, "uint8"),
        ([2**63], [1], 0, "uint8"),
        ([1.0, 4.0], [1, 4], 0, "uint8"),
        ([0.5, 4.0], [1, 2], 0, "uint8"),
        ([False, True], [1, 2], 0, "uint8"),
        (["a", "b"], [1, 2], 0, "uint8"),
        (np.arange(1, 65_536), np.arange(1, 65_536), 0, "uint16"),
        (np.arange(300).astype(str), np.arange(1, 301), 0, "uint16"),
    ],
)
def test_pixel_values_of_classes(classes, values, nodata, dtype):
    layer = class_layer(np.array(classes), None)
    assert (layer.nodata, layer.dtype) == (nodata, np.dtype(dtype))
    np.testing.assert_array_equal(layer.values, values)
    means = np.eye(len(classes))[:50] if len(classes) < 100 else np.eye(50, len(classes))
    np.testing.assert_array_equal(layer.pixels(means)[:, 0], values[: len(means)])
    assert len({color for _, color in layer.colors[:8]}) == min(8, len(classes))


def test_more_classes_than_pixel_values_are_refused():
    for classes in (np.arange(65_536), np.arange(65_536).astype(str)):
        with pytest.raises(TooManyClassesError, match=r"has 65,536 classes, .* at most 65,535") as found:
            class_layer(classes, None)
        assert "--" not in found.value.on_command_line


def test_the_lowest_and_the_highest_class_are_mapped(tmp_path):
    bands = smooth_scene(1, 30, 40)
    labels = np.where(bands > 128, 65_535, 0).astype(np.uint16)
    scene = raster.open_scene(write_raster(tmp_path / "scene.tif", bands))
    data = scene.with_labels(write_raster(tmp_path / "labels.tif", labels))
    forest = RandomForestClassifier(4, random_state=0).fit(data)
    written = raster.write_map(forest, scene, tmp_path / "map.tif")
    assert written.by_class == {0: (labels == 0).sum(), 65_535: (labels > 0).sum()}
    with rasterio.open(tmp_path / "map.tif") as file:
        assert file.nodata == 65_534
        np.testing.assert_array_equal(file.read(1), labels[0])


def test_shares_as_bytes_are_off_by_half_a_step_at_most():
    layer, shares = probability_layer(np.array(["a", "b"])), np.random.default_rng(0).random((500, 2))
    assert np.abs(layer.pixels(shares) * layer.scale - shares).max() <= 0.5 / 250
    assert layer.pixels(np.array([[0.0, 1.0]])).tolist() == [[0, 250]]


LABELS = ["a <b> & \"c\" 'd'", " blanks ", "new\nline", "\x1b[31m", "\ufffe", "x" * 3000, "木", "", "🌲"]


def test_names_of_any_text_come_back(tmp_path):
    bands = smooth_scene(1, 30, 40)
    labels = np.array(LABELS)[bands[0] % len(LABELS)]
    scene = raster.open_scene(write_raster(tmp_path / "scene.tif", bands))
    forest = RandomForestClassifier(4, bootstrap=False, random_state=0).fit(
        bands.reshape(-1, 1), labels.ravel()
    )
    forest.feature_names_in_ = np.array(scene.feature_names, dtype=object)
    raster.write_map(forest, scene, tmp_path / "map.tif", probabilities=tmp_path / "p.tif")
    spelled = {"new\nline": "new\\nline", "\x1b[31m": "\\x1b[31m", "\ufffe": "\ufffd", " blanks ": "blanks"}
    with rasterio.open(tmp_path / "map.tif") as file:
        found, tags = file.read(1), file.tags()
        numbers = np.searchsorted(forest.classes_, labels) + 1
        np.testing.assert_array_equal(found, numbers)
        for i, label in enumerate(forest.classes_.tolist(), start=1):
            assert tags.get(f"CLASS_{i}", "").strip() == spelled.get(label, label)
    with rasterio.open(tmp_path / "p.tif") as file:
        assert [(name or "").strip() for name in file.descriptions] == [
            spelled.get(label, label) for label in forest.classes_.tolist()
        ]
        assert file.scales == (1 / 250,) * len(LABELS) and file.nodata == 255


def test_thousands_of_classes(tmp_path):
    bands = (np.arange(70 * 80, dtype=np.uint16).reshape(1, 70, 80) // 2) + 1
    scene = raster.open_scene(write_raster(tmp_path / "scene.tif", bands))
    labels = bands.ravel().astype(np.int64) + 10_000
    forest = RandomForestClassifier(1, bootstrap=False, random_state=0).fit(bands.reshape(-1, 1), labels)
    forest.feature_names_in_ = np.array(scene.feature_names, dtype=object)
    raster.write_map(forest, scene, tmp_path / "map.tif", colors={10_002: "#010203"})
    with rasterio.open(tmp_path / "map.tif") as file:
        np.testing.assert_array_equal(file.read(1).ravel(), labels)
        assert file.colormap(1)[10_002] == (1, 2, 3, 255)
        assert file.tags()["CLASS_12000"] == "12000"
