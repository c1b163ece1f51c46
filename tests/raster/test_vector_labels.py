"""Labels of polygons and points: pixel for pixel those of rasterio, in any format, type and CRS."""

import numpy as np
import pytest
import shapely
from affine import Affine
from rasters import TRANSFORM, UTM, smooth_scene, write_raster
from vectors import in_crs, label_image, labels_of, on_map, rasterized, write_vectors

from oldgrowth import raster
from oldgrowth.errors import ChangedSourceError
from oldgrowth.raster.labels import label_windows, shapes
from oldgrowth.raster.scenes import scene as scene_module

SHAPE = (40, 50)


@pytest.fixture
def scene(tmp_path):
    return raster.open_scene(write_raster(tmp_path / "scene.tif", smooth_scene(2, *SHAPE)))


def blobs(n, seed=0, size=8):
    """Polygons of any form that overlap each other and the edges of the scene."""
    rng = np.random.default_rng(seed)
    centres = rng.random((n, 1, 2)) * (SHAPE[1], SHAPE[0])
    angles = np.sort(rng.random((n, 7)) * 2 * np.pi, axis=1)
    points = centres + size * rng.random((n, 7, 1)) * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    return shapely.polygons(points)


def assert_labelled(data, geometries, values, shape=SHAPE, transform=TRANSFORM):
    numbers = rasterized(geometries, shape, transform)
    expected = np.array([None, *values], dtype=object)[numbers]
    np.testing.assert_array_equal(label_image(data), expected)
    assert (numbers > 0).any() and (numbers == 0).any()


@pytest.mark.parametrize("name", ["a.gpkg", "a.shp", "a.geojson", "a.fgb"])
def test_formats(tmp_path, scene, name):
    geometries = on_map(blobs(30))
    values = [f"class {i % 4} é" for i in range(30)]
    if name == "a.geojson":
        geometries = in_crs(geometries, "EPSG:4326")
    file = write_vectors(
        tmp_path / name, geometries, "EPSG:4326" if name == "a.geojson" else UTM, kind=values
    )
    data = scene.with_labels(file)
    assert data.target == "kind"
    if name == "a.geojson":  # written with fewer digits
        assert len(labels_of(data)) > 300
    elif name == "a.fgb":  # in another order
        assert set(labels_of(data)) == set(values)
    else:
        assert_labelled(data, geometries, values)


@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:3857", "EPSG:32636", "EPSG:3035"])
def test_any_crs(tmp_path, scene, crs):
    moved = in_crs(on_map(blobs(40)), crs)
    data = scene.with_labels(write_vectors(tmp_path / "a.gpkg", moved, crs, kind=range(40)))
    assert_labelled(data, in_crs(moved, UTM, crs), range(40))


@pytest.mark.parametrize("pixels", [1, 130, 700])
@pytest.mark.parametrize("strip_pixels", [1, 330])
def test_strips_and_windows_do_not_show(tmp_path, monkeypatch, scene, pixels, strip_pixels):
    # Edges through the centres of pixels, where the last bit of a coordinate counts.
    rng = np.random.default_rng(1)
    corners = rng.integers(0, 80, (25, 3, 2)) / 2
    corners[::2, 1] = corners[::2, 0] + rng.integers(1, 20, (13, 1))  # at an angle of 45 degrees
    geometries = on_map(np.concatenate([shapely.polygons(corners), blobs(10)]))
    file = write_vectors(tmp_path / "a.gpkg", geometries, kind=range(35))
    monkeypatch.setattr(label_windows, "WINDOW_PIXELS", pixels)
    monkeypatch.setattr(shapes, "VERTICES", 20)
    monkeypatch.setattr(scene_module, "STRIP_PIXELS", strip_pixels)
    assert_labelled(scene.with_labels(file), geometries, range(35))


@pytest.mark.parametrize(
    "transform",
    [
        Affine(1 / 3600, 0, 7.1, 0, -1 / 3600, 50.3),
        Affine(0.3, 0, 1000.1, 0, -0.3, 2000.7),
        Affine(30, 0, 820_000, 0, 30, 830_000),  # south up
        Affine(20, 9, 820_000, 9, -20, 830_000),  # rotated
    ],
)
def test_any_grid(tmp_path, transform):
    crs = "EPSG:4326" if transform.c < 10 else UTM
    file = write_raster(tmp_path / "scene.tif", smooth_scene(1, *SHAPE), transform=transform, crs=crs)
    corners = np.random.default_rng(1).integers(0, 80, (20, 3, 2)) / 2
    geometries = on_map(np.concatenate([shapely.polygons(corners), blobs(10)]), transform)
    labels = write_vectors(tmp_path / "a.gpkg", geometries, crs, kind=range(30))
    assert_labelled(raster.open_scene(file).with_labels(labels), geometries, range(30), transform=transform)


def test_types_of_geometries(tmp_path, scene):
    box = shapely.box
    hole = box(2, 2, 12, 12).difference(box(4, 4, 8, 8))
    several = shapely.union_all([box(20, 1, 25, 6), box(30, 1, 35, 6)])
    bow_tie = shapely.Polygon([(20, 20), (30, 30), (30, 20), (20, 30), (20, 20)])
    points = shapely.MultiPoint([(5.5, 30.5), (6.2, 31.7)])
    mixed = shapely.GeometryCollection([box(40, 30, 44, 34), shapely.Point(45.5, 36.5), points])
    height = shapely.Point(10.5, 5.5, 7.0)
    geometries = [hole, several, bow_tie, points, mixed, height, shapely.Point(6, 6), box(0, 38, 60, 90)]
    placed = [on_map(geometry) for geometry in geometries]
    data = scene.with_labels(write_vectors(tmp_path / "a.gpkg", placed, kind=range(8)))
    assert_labelled(data, placed, range(8))


def test_types_of_labels(tmp_path, scene):
    geometries = on_map(blobs(6, size=15))
    large = [2**60 + i for i in range(6)]
    fields = {
        "text": ["b", "a", "", "a", "c", "b"],
        "large": large,
        "real": [0.5, np.nan, 1.5, -2.25, 0.5, 3.0],
        "yes": [True, False, True, True, False, False],
    }
    file = write_vectors(tmp_path / "a.gpkg", geometries, **fields)
    for name, values in fields.items():
        left = [i for i, value in enumerate(values) if value != "" and value == value]
        data = scene.with_labels(file, field=name)
        assert_labelled(data, [geometries[i] for i in left], [values[i] for i in left])
    assert labels_of(scene.with_labels(file, field="large")).dtype == np.int64
    assert labels_of(scene.with_labels(file, "yes")).dtype == bool


def test_missing_labels_of_whole_numbers_stay_whole(tmp_path, scene):
    file = tmp_path / "a.geojson"
    write_vectors(file, in_crs(on_map(blobs(2, size=15)), "EPSG:4326"), "EPSG:4326", kind=[2**60, 7])
    file.write_text(file.read_text().replace('"kind": 7', '"kind": null'))
    assert set(labels_of(scene.with_labels(file))) == {2**60}


def test_the_last_of_a_file_counts_whatever_its_index_of_places_says(tmp_path, scene):
    rng = np.random.default_rng(0)
    far = [shapely.Point(x, y) for x, y in rng.random((500, 2)) * 2000 + 5000]
    near = list(shapely.box(*(rng.random((2, 200)) * 30), *(rng.random((2, 200)) * 10 + 30)))
    geometries = [on_map(geometry) for geometry in [*far, *near]]
    order = rng.permutation(len(geometries))
    geometries = [geometries[i] for i in order]
    data = scene.with_labels(write_vectors(tmp_path / "a.gpkg", geometries, kind=range(len(order))))
    assert_labelled(data, geometries, range(len(order)))


def test_several_scenes_in_their_own_crs(tmp_path):
    geometries = on_map(blobs(40))
    (x0, y0, x1, y1) = shapely.total_bounds(in_crs(geometries, "EPSG:4326"))
    degrees = Affine((x1 - x0) / 50, 0, x0, 0, (y0 - y1) / 40, y1)
    first = write_raster(tmp_path / "first.tif", smooth_scene(1, *SHAPE), names=["red"])
    second = write_raster(
        tmp_path / "second.tif", smooth_scene(1, *SHAPE), names=["red"], crs="EPSG:4326", transform=degrees
    )
    values = [f"k{i % 5}" for i in range(40)]
    data = raster.open_scene([first, second]).with_labels(
        write_vectors(tmp_path / "a.gpkg", geometries, kind=values)
    )
    here = rasterized(geometries, SHAPE)
    there = rasterized(in_crs(geometries, "EPSG:4326"), SHAPE, degrees)
    expected = np.array(["", *values])[np.concatenate([here[here > 0], there[there > 0]])]
    np.testing.assert_array_equal(labels_of(data), expected)


def test_a_layer_is_chosen(tmp_path, scene):
    file = write_vectors(tmp_path / "a.gpkg", on_map(blobs(3)), kind=[1, 2, 3])
    import pyogrio

    pyogrio.raw.write(
        file, shapely.to_wkb(on_map(blobs(9, 5))), [np.arange(9)], ["kind"], geometry_type="Polygon", crs=UTM,
        layer="other", append=True,
    )  # fmt: skip
    assert_labelled(scene.with_labels(file, layer="other"), on_map(blobs(9, 5)), range(9))


def test_labels_of_a_file_that_changed_are_refused(tmp_path, scene):
    file = write_vectors(tmp_path / "a.shp", on_map(blobs(9)), kind=[f"k{i}" for i in range(9)])
    data = scene.with_labels(file)
    marks = data.fingerprint()["labels"]
    assert {one["path"][-4:] for one in marks["files"]} >= {".shp", ".dbf", ".shx", ".prj"}
    dbf = file.with_suffix(".dbf")
    dbf.write_bytes(dbf.read_bytes().replace(b"k1", b"k2"))
    with pytest.raises(ChangedSourceError, match=r"a\.dbf changed"):
        labels_of(data)
    assert scene.with_labels(file).fingerprint()["labels"] != marks
