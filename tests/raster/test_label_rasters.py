"""Labels of a raster: those of the pixel in which the centre of a scene's pixel is, in any grid."""

import numpy as np
import pytest
import rasterio
from affine import Affine
from rasterio import warp
from rasterio.enums import Resampling
from rasters import TRANSFORM, UTM, smooth_scene, write_raster
from vectors import label_image, labels_of

from oldgrowth import raster
from oldgrowth.errors import ChangedSourceError, NoLabelsError
from oldgrowth.raster.labels import label_rasters, label_windows

SHAPE = (40, 50)


@pytest.fixture
def scene(tmp_path):
    return raster.open_scene(write_raster(tmp_path / "scene.tif", smooth_scene(2, *SHAPE)))


def classes(*shape, dtype="uint8", seed=0):
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


def sampled(values, transform, crs):
    """The values at the centres of the scene's pixels, as GDAL finds them if it is exact; -1 outside."""
    out = np.full(SHAPE, -1, dtype=np.float64)
    warp.reproject(
        values.astype(np.float64), out, src_transform=transform, src_crs=crs, dst_transform=TRANSFORM,
        dst_crs=UTM, resampling=Resampling.nearest, init_dest_nodata=True, dst_nodata=-1, tolerance=1e-9,
    )  # fmt: skip
    return out


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint32", "int64", "float64"])
@pytest.mark.parametrize("shift", [0, 90])
def test_types(tmp_path, scene, dtype, shift):
    values = classes(*SHAPE, dtype=dtype)
    transform = Affine.translation(shift, -shift) @ TRANSFORM
    expected = sampled(values, transform, UTM)
    expected[expected == 42] = -1
    if dtype == "int64":
        values[values != 42] += 2**60
    file = write_raster(tmp_path / "a.tif", values[None], transform=transform, nodata=42)
    found = labels_of(scene.with_labels(file))
    assert found.dtype == dtype
    image = label_image(scene.with_labels(file), missing=-1)
    np.testing.assert_array_equal(
        image, np.where((expected >= 0) & (dtype == "int64"), 2**60, 0) + expected.astype(int)
    )


@pytest.mark.parametrize("size", [(100, 120), (7, 120), (100, 9), (2, 3)])
@pytest.mark.parametrize("shift", [(0, 0), (-30, 12), (3.1, -7), (20, 20.2), (-60, -50), (-500, 0), (0, 300)])
def test_the_same_pixels_of_another_part_of_the_ground(tmp_path, monkeypatch, scene, size, shift):
    """Labels of the pixels of a larger, smaller or neighbouring raster are read without looking up each."""
    monkeypatch.setattr(label_rasters, "_READ_PIXELS", 200)
    monkeypatch.setattr(label_windows, "WINDOW_PIXELS", 700)
    monkeypatch.setattr(label_rasters.RasterLabels, "_places", None)
    transform = TRANSFORM @ Affine.translation(*shift)
    values = classes(*size)
    file = write_raster(tmp_path / "a.tif", values[None], transform=transform)
    expected = sampled(values, transform, UTM)
    if (expected < 0).all():
        with pytest.raises(NoLabelsError):
            scene.with_labels(file)
    else:
        image = label_image(scene.with_labels(file), missing=-1)
        np.testing.assert_array_equal(image.astype(int), expected)


@pytest.mark.parametrize(
    ("transform", "crs"),
    [
        (Affine(70, 0, 820_100, 0, -70, 829_900), UTM),  # coarser
        (Affine(7, 0, 819_990, 0, -7, 830_010), UTM),  # finer
        (Affine(20, 9, 820_300, 9, -20, 829_700), UTM),  # rotated
        (Affine(0.0003, 0, 41.90, 0, -0.0003, 7.50), "EPSG:4326"),
        (Affine(1000, 0, 4_600_000, 0, -1000, 840_000), "EPSG:3857"),
    ],
)
def test_grids(tmp_path, monkeypatch, scene, transform, crs):
    monkeypatch.setattr(label_rasters, "_TILE_PIXELS", 300)
    monkeypatch.setattr(label_rasters, "_READ_PIXELS", 200)
    monkeypatch.setattr(label_windows, "WINDOW_PIXELS", 700)
    ([x], [y]) = warp.transform(UTM, crs, [820_700], [829_400])
    middle = transform @ (60, 50)
    transform = Affine.translation(x - middle[0], y - middle[1]) @ transform
    values = classes(100, 120)
    file = write_raster(tmp_path / "a.tif", values[None], transform=transform, crs=crs)
    with rasterio.open(file, "r+") as written:  # which must not be used
        written.build_overviews([2, 4], Resampling.average)
    expected = sampled(values, transform, crs)
    np.testing.assert_array_equal(label_image(scene.with_labels(file), missing=-1), expected)


def test_nodata_masks_and_values_that_are_not_finite(tmp_path, scene):
    values = classes(*SHAPE, dtype="float32")
    values[:5], values[5:9, 0] = np.nan, np.inf
    file = write_raster(tmp_path / "a.tif", values[None])
    with rasterio.open(file, "r+") as written:
        written.write_mask(np.broadcast_to(np.arange(50) % 7 != 0, SHAPE))
    data = scene.with_labels(file, nodata=42)
    left = np.isfinite(values) & (values != 42) & (np.arange(50) % 7 != 0)
    np.testing.assert_array_equal(labels_of(data), values[left])


def test_a_description_is_the_name_of_the_target(tmp_path, scene):
    file = write_raster(tmp_path / "a.tif", classes(1, *SHAPE), names=["cover"])
    assert scene.with_labels(file).target == "cover"


def test_labels_of_a_raster_that_changed_are_refused(tmp_path, scene):
    file = write_raster(tmp_path / "a.tif", classes(1, *SHAPE))
    data = scene.with_labels(file)
    marks = data.fingerprint()
    write_raster(file, classes(1, *SHAPE, seed=1))
    with pytest.raises(ChangedSourceError, match=r"a\.tif changed"):
        labels_of(data)
    assert scene.with_labels(file).fingerprint() != marks
