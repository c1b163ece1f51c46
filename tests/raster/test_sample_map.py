"""Samples of maps: which pixels are drawn, what is in the file, and the accuracy that comes of it."""

import numpy as np
import pyogrio
import pytest
import rasterio
import shapely
from affine import Affine
from rasters import TRANSFORM, UTM, write_raster
from sampled_maps import NAMES, classes, fill, read, write_map

from oldgrowth.errors import (
    DamagedFileError,
    DataError,
    MissingColumnError,
    MissingCRSError,
    NoDataError,
    NoReferenceError,
    NotAClassMapError,
    NotASampleError,
    OtherMapError,
    ParameterError,
    UnknownReferenceError,
)
from oldgrowth.messages.warnings import SampleWarning
from oldgrowth.raster import area_adjusted, assess_map, sample_map
from oldgrowth.raster.assessment.allocation import allocate
from oldgrowth.raster.maps import class_map


@pytest.mark.parametrize(("suffix", "crs"), [(".gpkg", UTM), (".shp", UTM), (".geojson", "EPSG:4326")])
def test_points_are_pixels_of_their_class(tmp_path, suffix, crs):
    values = classes()
    path = write_map(tmp_path / "map.tif", values)
    strata = sample_map(path, 120, tmp_path / f"points{suffix}", min_per_class=20, seed=3)
    meta, points, fields = read(tmp_path / f"points{suffix}")
    assert meta["crs"] == crs and len(points) == 120
    assert list(fields) == ["map_class", "map_value", "map_pixels", "reference"]
    x, y = rasterio.warp.transform(crs, UTM, shapely.get_x(points), shapely.get_y(points))
    columns, lines = ~TRANSFORM @ (np.array(x), np.array(y))
    np.testing.assert_allclose([columns % 1, lines % 1], 0.5, atol=0.01)
    columns, lines = columns.astype(int), lines.astype(int)
    np.testing.assert_array_equal(fields["map_value"], values[lines, columns])
    assert len(set(zip(columns, lines, strict=True))) == 120, "without replacement"
    assert fields["map_class"].tolist() == [NAMES[v] for v in fields["map_value"].tolist()]
    assert fields["map_pixels"].tolist() == [(values == v).sum() for v in fields["map_value"].tolist()]
    assert set(fields["reference"].tolist()) == {None}
    found = {s.value: (s.label, s.pixels, s.points) for s in strata}
    counts = np.bincount(fields["map_value"], minlength=8)
    assert found == {v: (name, (values == v).sum(), counts[v]) for v, name in NAMES.items()}
    assert (np.diff(fields["map_value"].astype(int)) != 0).sum() > 30, "in random order"


def test_strips_do_not_show_and_seeds_do(tmp_path, monkeypatch):
    path = write_map(tmp_path / "map.tif", classes())

    def drawn(name, seed=0):
        sample_map(path, 90, tmp_path / name, seed=seed)
        _, points, fields = read(tmp_path / name)
        return shapely.get_coordinates(points).tolist(), fields["map_value"].tolist()

    one = drawn("one.gpkg")
    assert drawn("other.gpkg", seed=1) != one
    for i, names in enumerate((("_STRIP_PIXELS",), ("_READ_PIXELS", "_MOST_PIXELS"), ("_READ_PIXELS",))):
        with monkeypatch.context() as patched:
            for name in names:
                patched.setattr(class_map, name, 1)
            assert drawn(f"same{i}.gpkg") == one, names


def test_all_pixels_of_a_class_are_equally_likely(tmp_path):
    """A map of 40 pixels of one class, 8 of which are drawn 200 times."""
    values = np.zeros((10, 12), dtype=np.uint8)
    values[2:7, 3:11] = 1
    path = write_map(tmp_path / "map.tif", values)
    source = class_map.open_class_map(path)
    from oldgrowth.raster.assessment import sample

    drawn = np.zeros(values.shape)
    for seed in range(200):
        points = sample._drawn(source, [sample.Stratum(1, "wood", 40, 8)], seed)
        columns, lines = ~TRANSFORM @ (points.x, points.y)
        drawn[lines.astype(int), columns.astype(int)] += 1
    assert not drawn[values == 0].any()
    expected, spread = 40, np.sqrt(200 * 0.2 * 0.8)
    assert abs(drawn[values == 1] - expected).max() < 4.5 * spread


def test_masks_of_the_file_are_nodata_too(tmp_path):
    """A mask that hides a class and half of the others; a third of the pixels are drawn."""
    values = classes() + 1
    shown = (values != 8) & (np.random.default_rng(1).random(values.shape) < 0.5)
    path = write_map(tmp_path / "map.tif", values, nodata=None)
    with rasterio.open(path, "r+") as file:
        file.write_mask(shown)
    strata = sample_map(path, 800, tmp_path / "p.gpkg")
    assert [(s.value, s.pixels) for s in strata] == [(v, (shown & (values == v)).sum()) for v in (1, 2, 3)]
    _, points, _ = read(tmp_path / "p.gpkg")
    columns, lines = ~TRANSFORM @ tuple(shapely.get_coordinates(points).T)
    assert shown[lines.astype(int), columns.astype(int)].all()


def test_other_maps(tmp_path):
    """Signed values without names, lines from the south, degrees; all pixels of a small class."""
    values = np.where(classes(20, 30) == 7, -3, 300).astype(np.int16)
    values[0, 0] = 500
    north = Affine(0.001, 0, 8.0, 0, 0.001, 47.0)
    path = write_raster(tmp_path / "map.tif", values[None], crs="EPSG:4326", transform=north)
    strata = sample_map(path, 40, tmp_path / "p.gpkg", min_per_class=10)
    assert [(s.label, s.points) for s in strata][-1] == ("500", 1) and sum(s.points for s in strata) == 40
    _, points, fields = read(tmp_path / "p.gpkg")
    columns, lines = (
        (c - o) / 0.001 for c, o in zip(shapely.get_coordinates(points).T, (8, 47), strict=True)
    )
    np.testing.assert_array_equal(fields["map_value"], values[lines.astype(int), columns.astype(int)])
    found = assess_map(path, fill(tmp_path / "p.gpkg", fields["map_class"]))
    assert found.area_unit == "pixels" and found.overall.value == 1 and found.pixels == 600
    assert found.classes[0].label == "-3" and found.area(found.classes[2]).value == pytest.approx(1)


@pytest.mark.parametrize(
    ("n", "pixels", "least", "points"),
    [
        (500, [200_000, 150_000, 3_200_000, 6_450_000], 50, [50, 50, 133, 267]),
        (100, [500, 500], 50, [50, 50]),
        (100, [100_000, 300_000], 10, [25, 75]),
        (100, [100_000, 300_000], 90, [50, 50]),  # 90 each are too many
        (100, [3, 100_000], 50, [3, 97]),
        (10, [4, 6], 50, [4, 6]),
        (7, [1_000, 1_000, 1_000], 0, [3, 2, 2]),
        (3, [1, 1_000], 50, [1, 2]),
    ],
)
def test_allocation(n, pixels, least, points):
    assert allocate(n, pixels, least) == points


def test_allocations_add_up():
    rng = np.random.default_rng(0)
    for _ in range(300):
        pixels = (10 ** rng.uniform(0, 8, rng.integers(1, 40))).astype(int).tolist()
        n, least = int(rng.integers(2 * len(pixels), 5000)), int(rng.integers(0, 200))
        if n > sum(pixels):
            continue
        points = allocate(n, pixels, least)
        assert sum(points) == n
        fewest = max(2, min(least, n // len(pixels)))
        assert all(min(fewest, size) <= count <= size for count, size in zip(points, pixels, strict=True))


@pytest.mark.parametrize(
    ("n", "options", "words"),
    [
        (5, {}, "at least 6: the map has 3 classes, and each needs 2 points"),
        (10_000, {}, "at most 4,4"),
        (0, {}, "n must be a whole number of at least 1"),
        (9.5, {}, "n must be a whole number"),
        (True, {}, "n must be a whole number"),
        (50, {"min_per_class": -1}, "min_per_class must be"),
        (50, {"seed": "one"}, "seed must be"),
        (50, {"output": "p.csv"}, "ends in .gpkg, .shp, .geojson"),
        (50, {"output": "old.gpkg"}, "a new file: this one may have reference labels"),
    ],
)
def test_bad_parameters(tmp_path, n, options, words):
    path = write_map(tmp_path / "map.tif", classes())
    (tmp_path / "old.gpkg").write_bytes(b"old")
    output = tmp_path / options.pop("output", "p.gpkg")
    with pytest.raises(ParameterError, match=words):
        sample_map(path, n, output, **options)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["map.tif", "old.gpkg"]
    assert (tmp_path / "old.gpkg").read_bytes() == b"old"


def test_what_is_not_a_map_of_classes(tmp_path):
    bands = np.ones((2, 5, 6), dtype=np.uint8)
    for name, values, options, error, words in [
        ("two", bands, {}, NotAClassMapError, "it has 2 bands"),
        ("floats", bands[:1].astype(np.float32), {}, NotAClassMapError, "its values are of type float32"),
        ("nowhere", bands[:1], {"crs": None}, MissingCRSError, "no coordinate reference system"),
        ("empty", bands[:1], {"nodata": 1}, NoDataError, "all of its pixels are nodata"),
    ]:
        path = write_raster(tmp_path / f"{name}.tif", values, **options)
        with pytest.raises(error, match=words):
            sample_map(path, 5, tmp_path / "p.gpkg")
    for wrong in (None, 3, "", b"p.gpkg"):
        with pytest.raises(ParameterError, match="output must be a path"):
            sample_map(path, 5, wrong)
        with pytest.raises(ParameterError, match="path must be a path"):
            sample_map(wrong, 5, tmp_path / "p.gpkg")
        with pytest.raises(ParameterError, match="points must be a path"):
            assess_map(write_map(tmp_path / "map.tif", classes()), wrong)
    (tmp_path / "broken.tif").write_bytes(path.read_bytes()[:200])
    with pytest.raises(DamagedFileError, match=r"broken\.tif cannot be read"):
        sample_map(tmp_path / "broken.tif", 5, tmp_path / "p.gpkg")
    many = np.arange(70_000, dtype=np.int32).reshape(1, 200, 350)
    with pytest.raises(NotAClassMapError, match="more than 65,535 different values"):
        sample_map(write_raster(tmp_path / "many.tif", many), 5, tmp_path / "p.gpkg")
    assert not (tmp_path / "p.gpkg").exists()


@pytest.fixture
def drawn(tmp_path):
    """A map, and points drawn from it whose reference labels are not entered yet."""
    path = write_map(tmp_path / "map.tif", classes())
    sample_map(path, 120, tmp_path / "points.gpkg", min_per_class=20)
    return path, tmp_path / "points.gpkg"


@pytest.mark.parametrize("suffix", [".gpkg", ".shp", ".geojson"])
def test_an_assessment_is_that_of_the_counts(tmp_path, drawn, suffix):
    path, _ = drawn
    sample_map(path, 120, tmp_path / f"again{suffix}", min_per_class=20)
    _, _, fields = read(tmp_path / f"again{suffix}")
    rng = np.random.default_rng(0)
    true = np.where(rng.random(120) < 0.8, fields["map_value"], rng.choice([1, 2, 7], 120))
    labels = np.array([NAMES[v] for v in true.tolist()], dtype=object)
    found = assess_map(path, fill(tmp_path / f"again{suffix}", labels))
    values = [1, 2, 7]
    counts = [[((fields["map_value"] == i) & (true == j)).sum() for j in values] for i in values]
    pixels = [int((classes() == v).sum()) for v in values]
    expected = area_adjusted(counts, pixels, ["wood", "grass", "water"], 0.09)
    assert str(found) == str(expected) and 0.5 < found.overall.value < 1
    np.testing.assert_array_equal(found.counts, counts)


def test_labels_can_be_pixel_values_in_a_field_of_numbers(drawn):
    path, points = drawn
    _, _, fields = read(points)
    assert assess_map(path, fill(points, fields["map_value"].astype(float))).overall.value == 1
    assert assess_map(path, fill(points, fields["map_value"], "own"), field="own").overall.value == 1
    texts = np.array([f" {label} " for label in fields["map_class"]], dtype=object)
    assert assess_map(path, fill(points, texts)).overall.value == 1


def test_points_without_labels_and_unknown_labels_are_warned_of(drawn):
    path, points = drawn
    _, _, fields = read(points)
    labels = fields["map_class"].copy()
    labels[:5], labels[5:7], labels[10:12] = None, "", "woood"
    with pytest.warns(SampleWarning) as warned:
        found = assess_map(path, fill(points, labels))
    said = [str(w.message) for w in warned]
    assert "are left out: 7 of 120." in said[0] and "'woood' (2, similar to 'wood')" in said[1]
    assert {w.filename for w in warned} == {__file__}
    assert found.counts.sum() == 113 and found.classes[3].label == "woood" and found.overall.value < 1


def test_a_single_labelled_point_of_a_class_is_warned_of(drawn):
    path, points = drawn
    _, _, fields = read(points)
    labels = fields["map_class"].copy()
    labels[np.flatnonzero(fields["map_value"] == 7)[1:]] = None
    with pytest.warns(SampleWarning, match="Only one point has a reference label in the class 'water'"):
        found = assess_map(path, fill(points, labels))
    assert np.isnan(found.overall.error) and found.overall.value == 1


def test_no_labels_or_no_known_ones(drawn):
    path, points = drawn
    with pytest.raises(NoReferenceError, match=r"None of the 120 points .* field 'reference'"):
        assess_map(path, points)
    with pytest.raises(UnknownReferenceError, match="has 'forest', the classes are 'wood'"):
        assess_map(path, fill(points, np.full(120, "forest", dtype=object)))
    with pytest.raises(MissingColumnError, match=r"has no field 'referense'. Did you mean 'reference'\?"):
        assess_map(path, points, field="referense")


def test_points_of_another_map_are_refused(tmp_path, drawn):
    _, points = drawn
    _, _, fields = read(points)
    points = fill(points, fields["map_class"])
    other = write_map(tmp_path / "other.tif", classes(seed=1))
    with pytest.raises(OtherMapError, match="of its 120 points have another class there"):
        assess_map(other, points)
    far = write_map(tmp_path / "far.tif", classes(), transform=TRANSFORM @ Affine.translation(500, 0))
    with pytest.raises(OtherMapError, match=r"120 of its 120 points are outside the map; point 1 is at \("):
        assess_map(far, points)
    larger = np.vstack([classes(), np.full((10, 83), 2, dtype=np.uint8)])
    with pytest.raises(OtherMapError, match=r"'grass' has [\d,]+ pixels, but 'map_pixels' is \d+"):
        assess_map(write_map(tmp_path / "larger.tif", larger), points)
    holes = classes()
    holes[holes == 7] = 0
    with pytest.raises(OtherMapError, match="has none, not 'water'"):
        assess_map(write_map(tmp_path / "holes.tif", holes), points)


def test_points_that_were_not_drawn_are_refused(tmp_path, drawn):
    path, points = drawn
    _, geometries, fields = read(points)

    def written(name, points, columns, kind="Point"):
        made = list(columns.values())
        options = {"driver": "GPKG", "geometry_type": kind, "crs": UTM}
        pyogrio.raw.write(tmp_path / name, shapely.to_wkb(points), made, list(columns), **options)
        return tmp_path / name

    own = written("own.gpkg", geometries, {"reference": fields["map_class"]})
    with pytest.raises(NotASampleError, match=r"has no field 'map_value'.*oldgrowth sample"):
        assess_map(path, own)
    more = {name: np.append(values, values[:1]) for name, values in fields.items()}
    twice = written("twice.gpkg", np.append(geometries, geometries[:1]), more)
    with pytest.raises(NotASampleError, match="several points in one pixel: 1 and 121"):
        assess_map(path, twice)
    squares = written("squares.gpkg", shapely.buffer(geometries, 10), fields, "Polygon")
    with pytest.raises(DataError, match="must have points only; its geometry 1 is a Polygon"):
        assess_map(path, squares)
