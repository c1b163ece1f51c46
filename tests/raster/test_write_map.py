"""Maps: pixel for pixel what `predict` says of the same rows, however they are made."""

import json
import shutil
import subprocess

import numpy as np
import pytest
import rasterio
from rasters import TRANSFORM, UTM, patches_by_numpy, smooth_scene, write_raster
from rio_cogeo.cogeo import cog_validate

import oldgrowth
from oldgrowth import RandomForestClassifier, RandomForestRegressor, SubsetForestClassifier, raster
from oldgrowth.errors import MemoryLimitError, ParameterError
from oldgrowth.messages.warnings import EmptyMapWarning, FeatureNamesWarning
from oldgrowth.raster.scenes import scene as scene_module
from oldgrowth.system.memory import resident_memory

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


class Trained:
    """A scene of bytes with holes, its labels, and what numpy makes of it."""

    def __init__(self, folder, classes=(1, 2, 3), patch=3, shape=(90, 31)):
        self.folder = folder
        self.bands = smooth_scene(3, *shape)
        self.valid = np.random.default_rng(0).random(shape) < 0.9
        self.valid[40:44] = False  # lines without any row, longer than some strips
        self.bands[:, ~self.valid] = 0
        self.file = write_raster(folder / "scene.tif", self.bands, nodata=0)
        self.scene = raster.open_scene(self.file, patch=patch)
        self.rows = patches_by_numpy(self.bands, self.valid, patch)
        self.labels = np.asarray(classes)[np.digitize(self.bands[0][self.valid], [110, 150]) % len(classes)]

    def forest(self, kind=RandomForestClassifier, **params):
        forest = kind(6, random_state=0, **params).fit(self.rows[::2], self.labels[::2])
        forest.feature_names_in_ = np.array(self.scene.feature_names, dtype=object)
        return forest

    def expected(self, values, nodata):
        out = np.full((*self.valid.shape, *values.shape[1:]), nodata, dtype=values.dtype)
        out[self.valid] = values
        return out


def pixels_of(path):
    with rasterio.open(path) as file:
        return file.read()


@pytest.fixture
def trained(tmp_path):
    return Trained(tmp_path)


@pytest.mark.parametrize("strip_pixels", [1 << 17, 64 * 31, 1])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_map_is_what_predict_says_of_patches_by_numpy(trained, monkeypatch, strip_pixels, n_jobs):
    monkeypatch.setattr(scene_module, "STRIP_PIXELS", strip_pixels)
    folder, forest = trained.folder, trained.forest()
    files = {"probabilities": folder / "p.tif", "confidence": folder / "c.tif"}
    written = raster.write_map(forest, trained.scene, folder / "map.tif", n_jobs=n_jobs, **files)
    classes, shares = forest.predict(trained.rows), forest.predict_proba(trained.rows)
    np.testing.assert_array_equal(
        pixels_of(folder / "map.tif")[0], trained.expected(classes.astype(np.uint8), 0)
    )
    expected = trained.expected(np.rint(250 * shares).astype(np.uint8), 255)
    np.testing.assert_array_equal(pixels_of(folder / "p.tif"), expected.transpose(2, 0, 1))
    first, second = np.sort(shares, axis=1)[:, ::-1][:, :2].T
    margins = trained.expected((first - second).astype(np.float32), np.nan)
    np.testing.assert_array_equal(pixels_of(folder / "c.tif")[0], margins)
    assert (written.pixels, written.predicted) == (trained.valid.size, trained.valid.sum())
    assert written.by_class == dict(zip(*np.unique(classes, return_counts=True), strict=True))
    assert all(cog_validate(folder / name)[0] for name in ("map.tif", "p.tif", "c.tif"))
    assert not list(folder.glob(".*"))


def test_the_smallest_memory_limit_gives_the_same_map(trained):
    forest, path = trained.forest(), trained.folder / "map.tif"
    raster.write_map(forest, trained.scene, path)
    whole = path.read_bytes()
    with pytest.raises(MemoryLimitError) as refused:
        raster.write_map(forest, trained.scene, path, memory_limit=resident_memory() + 2**20)
    raster.write_map(forest, trained.scene, path, memory_limit=int(1.02 * refused.value.least))
    assert path.read_bytes() == whole


@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_a_loaded_forest_writes_the_same_files(trained, voting):
    folder, forest = trained.folder, trained.forest(SubsetForestClassifier, voting=voting)
    forest.save(folder / "forest.og")
    made = []
    for one in (forest, oldgrowth.load(folder / "forest.og")):
        raster.write_map(one, trained.scene, folder / "map.tif", probabilities=folder / "p.tif")
        made.append((folder / "map.tif").read_bytes() + (folder / "p.tif").read_bytes())
    assert made[0] == made[1]
    expected = np.rint(250 * forest.predict_proba(trained.rows)).astype(np.uint8)
    found = pixels_of(folder / "p.tif")[:, trained.valid].T
    np.testing.assert_array_equal(found, expected)


def test_values_of_a_regression(trained):
    forest, path = trained.forest(RandomForestRegressor), trained.folder / "map.tif"
    written = raster.write_map(forest, trained.scene, path)
    expected = trained.expected(forest.predict(trained.rows).astype(np.float32), np.nan)
    np.testing.assert_array_equal(pixels_of(path)[0], expected)
    assert (written.predicted, written.by_class) == (trained.valid.sum(), None)
    with pytest.raises(ParameterError, match="a regression has no classes"):
        raster.write_map(forest, trained.scene, path, confidence=trained.folder / "c.tif")


@pytest.mark.parametrize("kind", ["margin", "entropy", "share"])
def test_kinds_of_confidence_and_shares_as_floats(trained, kind):
    folder, forest = trained.folder, trained.forest()
    files = {"probabilities": folder / "p.tif", "confidence": folder / "c.tif"}
    kinds = {"probability_type": "float32", "confidence_kind": kind}
    raster.write_map(forest, trained.scene, folder / "map.tif", **files, **kinds)
    shares = forest.predict_proba(trained.rows)
    np.testing.assert_array_equal(pixels_of(folder / "p.tif")[:, trained.valid].T, shares.astype(np.float32))
    ordered = np.sort(shares, axis=1)[:, ::-1]
    logs = np.log(np.where(shares > 0, shares, 1))
    expected = {
        "margin": ordered[:, 0] - ordered[:, 1],
        "entropy": 1 + (shares * logs).sum(axis=1) / np.log(3),
        "share": ordered[:, 0],
    }
    np.testing.assert_allclose(pixels_of(folder / "c.tif")[0][trained.valid], expected[kind], atol=1e-6)


@pytest.mark.skipif(shutil.which("gdalinfo") is None, reason="gdalinfo is not installed")
def test_gdalinfo_finds_the_grid_of_the_scene_and_the_names_of_classes(trained):
    def info(path):
        return json.loads(subprocess.check_output(["gdalinfo", "-json", str(path)]))

    trained = Trained(trained.folder, classes=("forest & <wood>", "water", "Äcker"))
    forest = trained.forest()
    raster.write_map(forest, trained.scene, trained.folder / "map.tif", colors={"water": "#0000ff"})
    scene, made = info(trained.file), info(trained.folder / "map.tif")
    for key in ("size", "geoTransform", "coordinateSystem", "cornerCoordinates"):
        assert made[key] == scene[key]
    (band,) = made["bands"]
    assert band["colorTable"]["entries"][2][:3] == [0, 0, 255]
    assert made["metadata"][""]["OLDGROWTH_MODEL"] == forest.forest_.digest()
    assert band["noDataValue"] == 0
    with rasterio.open(trained.folder / "map.tif") as file:
        assert file.tags()["CLASS_1"] == "forest & <wood>"
        assert file.colormap(1)[2] == (0, 0, 255, 255)
    names = (trained.folder / "map.tif.aux.xml").read_text()
    assert "<Category>Äcker</Category>" in names.replace("&#xC4;", "Ä")


def test_labels_and_blocks_do_not_restrict_a_map(trained):
    labels = np.zeros(trained.valid.shape, dtype=np.uint8)
    labels[trained.valid] = trained.labels
    labels[::3] = 0
    file = write_raster(trained.folder / "labels.tif", labels[None], nodata=0)
    with rasterio.open(file, "r+") as opened:
        opened.write_colormap(1, {1: (1, 2, 3, 255), 2: (4, 5, 6, 255), 3: (7, 8, 9, 255)})
    train, test = trained.scene.with_labels(file).split_blocks(300.0, share=0.3)
    forest = RandomForestClassifier(4, random_state=0).fit(train)
    for scene in (trained.scene, train, test):
        raster.write_map(forest, scene, trained.folder / "map.tif", colors={2: (9, 9, 9)})
        found = pixels_of(trained.folder / "map.tif")[0]
        np.testing.assert_array_equal(found[trained.valid], forest.predict(trained.rows))
        np.testing.assert_array_equal(found != 0, trained.valid)
    with rasterio.open(trained.folder / "map.tif") as map_file:  # colours of the labels, or given ones
        assert [map_file.colormap(1)[i][:3] for i in (1, 2, 3)] == [(1, 2, 3), (9, 9, 9), (7, 8, 9)]


def test_a_scene_without_valid_pixels_gives_an_empty_map(trained):
    forest = trained.forest()
    file = write_raster(trained.folder / "empty.tif", np.zeros_like(trained.bands), nodata=0)
    with pytest.warns(EmptyMapWarning):
        written = raster.write_map(
            forest, raster.open_scene(file, patch=3, nodata=0), trained.folder / "map.tif"
        )
    assert written.predicted == 0
    assert not pixels_of(trained.folder / "map.tif").any()


def test_forests_without_names_take_bands_in_order(trained):
    forest = RandomForestClassifier(4, random_state=0).fit(trained.rows, trained.labels)
    with pytest.warns(FeatureNamesWarning):
        raster.write_map(forest, trained.scene, trained.folder / "map.tif")
    found = pixels_of(trained.folder / "map.tif")[0][trained.valid]
    np.testing.assert_array_equal(found, forest.predict(trained.rows))


def test_other_orders_and_more_bands_are_matched_by_name(trained):
    forest = trained.forest()
    order = [2, 0, 1, 0]
    file = write_raster(
        trained.folder / "o.tif", trained.bands[order], nodata=0, names=["B3", "B1", "B2", "more"]
    )
    raster.write_map(forest, raster.open_scene(file, patch=3), trained.folder / "map.tif")
    found = pixels_of(trained.folder / "map.tif")[0][trained.valid]
    np.testing.assert_array_equal(found, forest.predict(trained.rows))


def test_what_is_not_a_forest_or_a_scene_is_refused(trained):
    forest, path = trained.forest(), trained.folder / "map.tif"
    both = raster.open_scene([trained.file, trained.file], patch=3)
    for one, scene, what in (
        ("forest.og", trained.scene, "a fitted forest of oldgrowth"),
        (forest, str(trained.file), "a scene, as opened by open_scene"),
        (forest, both, "one scene: write a map for each"),
    ):
        with pytest.raises(ParameterError, match=what):
            raster.write_map(one, scene, path)
    for options, what in (
        ({"confidence": path.with_name("c.tif"), "confidence_kind": "sure"}, "'entropy'"),
        ({"probabilities": path.with_name("p.tif"), "probability_type": "int8"}, "'float32'"),
        ({"colors": {1: "blue"}}, "#1f77b4"),
        ({"colors": {9: "#000000"}}, "classes of the forest, which are 1, 2 and 3"),
    ):
        with pytest.raises(ParameterError, match=what):
            raster.write_map(forest, trained.scene, path, **options)
    assert sorted(p.name for p in trained.folder.iterdir()) == ["scene.tif"]


def test_georeference_of_the_map(trained):
    raster.write_map(trained.forest(), trained.scene, trained.folder / "map.tif")
    with rasterio.open(trained.folder / "map.tif") as file:
        assert (file.nodata, file.transform, file.crs.to_string()) == (0, TRANSFORM, UTM)
        assert file.count == 1 and file.dtypes == ("uint8",)
