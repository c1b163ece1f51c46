"""A forest remembers how its features are made, and another scene is opened in the same way."""

import warnings

import numpy as np
import pytest
import rasterio
from rasters import smooth_scene, write_raster

import oldgrowth
from oldgrowth import RandomForestClassifier, raster
from oldgrowth.errors import (
    BandError,
    CorruptedModelFileError,
    ParameterError,
    PatchError,
    RememberedSceneError,
)
from oldgrowth.messages.warnings import LeftOutWarning


def scene_files(folder, names, bands, **options):
    folder.mkdir(exist_ok=True)
    for name, band in zip(names, bands, strict=True):
        write_raster(folder / f"x_{name}.tif", band[None], **options)
    return folder


def trained(folder, **options):
    bands = smooth_scene(3, 24, 20)
    files = scene_files(folder / "train", ["B2", "B3", "B4"], bands)
    labels = (bands[0] > 128).astype(np.uint8) + 1
    scene = raster.open_scene(files, **options)
    data = scene.with_labels(write_raster(folder / "labels.tif", labels[None]))
    forest = RandomForestClassifier(4, random_state=0).fit(data)
    forest.save(folder / "forest.og")
    return oldgrowth.load(folder / "forest.og"), scene


def rows_of(scene):
    return np.concatenate([batch.x for batch in scene.batches(1000)])


def test_another_scene_is_opened_as_in_training(tmp_path):
    forest, _ = trained(tmp_path, patch=3, bands=["B4", "B2"], nodata=7, extra={"ratio": "B2 / (B3 + 1)"})
    bands = smooth_scene(4, 24, 20, seed=1)
    bands[0, 2, 3] = 7
    files = scene_files(tmp_path / "new", ["B4", "B9", "B2", "B3"], bands)  # more bands, in another order
    scene = raster.scene_like(forest, files)
    expected = raster.open_scene(
        files, patch=3, bands=["B4", "B2"], nodata=7, extra={"ratio": "B2 / (B3 + 1)"}
    )
    assert tuple(forest.feature_names_in_) == scene.feature_names == expected.feature_names
    np.testing.assert_array_equal(rows_of(scene), rows_of(expected))
    assert scene.recipe == forest.recipe_


def test_missing_bands_are_named(tmp_path):
    forest, _ = trained(tmp_path)
    files = scene_files(tmp_path / "new", ["B1", "B3"], smooth_scene(2, 24, 20))
    with pytest.raises(BandError, match=r"no bands 'B2' and 'B4', which the forest"):
        raster.scene_like(forest, files)
    with pytest.raises(BandError, match="no bands 'B2' and 'B4'"):
        raster.write_map(forest, raster.open_scene(files), tmp_path / "map.tif")
    assert not (tmp_path / "map.tif").exists()


def test_other_patches_are_named(tmp_path):
    forest, _ = trained(tmp_path, patch=3)
    smaller = raster.open_scene(tmp_path / "train", patch=1)
    with pytest.raises(PatchError, match="patches of 3 x 3 pixels: open it with patch=3"):
        raster.write_map(forest, smaller, tmp_path / "map.tif")


def test_masks_are_remembered_by_pattern_and_rule(tmp_path):
    (tmp_path / "train").mkdir()
    clouds = np.zeros((1, 24, 20), dtype=np.uint16)
    clouds[0, :5] = 8
    write_raster(tmp_path / "train" / "x_QA.tif", clouds)
    forest, _ = trained(tmp_path, mask=("*QA.tif", "bits 3"))
    files = scene_files(tmp_path / "new", ["B2", "B3", "B4"], smooth_scene(3, 24, 20))
    write_raster(files / "x_QA.tif", clouds[:, ::-1])
    write_raster(tmp_path / "other.tif", clouds[:, :, ::-1] * 0)
    assert len(rows_of(raster.scene_like(forest, files))) == 19 * 20
    other = raster.scene_like(forest, sorted(files.glob("*B*.tif")), mask=tmp_path / "other.tif")
    assert len(rows_of(other)) == 24 * 20
    ruled = raster.scene_like(forest, files, mask=("*QA.tif", "values 8"))
    assert len(rows_of(ruled)) == 19 * 20
    with pytest.raises(ParameterError, match="the file of the mask, or False"):
        raster.scene_like(forest, files, mask=3)


def test_a_warning_of_pixels_that_training_left_out(tmp_path):
    (tmp_path / "train").mkdir()
    clouds = np.zeros((1, 24, 20), dtype=np.uint16)
    clouds[0, :5] = 8
    write_raster(tmp_path / "train" / "x_QA.tif", clouds)
    forest, scene = trained(tmp_path, mask=("*QA.tif", "bits 3,4"), nodata=7)
    files, bands, out = tmp_path / "train", ["B2", "B3", "B4"], tmp_path / "map.tif"
    mask = ("*QA.tif", "bits 4,3")
    for options, told in (
        ({"nodata": 7, "bands": bands}, r"no mask, .*mask=\('\*QA.tif', 'bits 3,4'\): .*scene_like"),
        ({"nodata": 7, "mask": ("*QA.tif", "bits 3")}, "a mask by the rule 'bits 3', .*bits 3,4"),
        ({"mask": mask}, "no nodata value in band 'B2', .*trained with nodata=7: .*scene_like"),
        ({"mask": mask, "nodata": 0}, "the nodata value 0 in band 'B2', .*nodata=7"),
    ):
        with pytest.warns(LeftOutWarning, match=told) as found:
            raster.write_map(forest, raster.open_scene(files, **options), out)
        assert len(found) == 1 and found[0].filename == __file__
        for ask in (forest.predict, forest.apply, forest.predict_proba):
            with pytest.warns(LeftOutWarning, match=told) as found:
                ask(raster.open_scene(files, **options))
            assert len(found) == 1 and found[0].filename == __file__
        with pytest.warns(LeftOutWarning, match=told) as found:
            forest.score(raster.open_scene([files, files], **options).with_labels(tmp_path / "labels.tif"))
        assert len(found) == 1 and found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeftOutWarning)
        raster.write_map(forest, scene, out)
        forest.predict(scene)
        forest.predict(raster.scene_like(forest, files, mask=False, nodata=0))
        forest.score(raster.scene_like(forest, files).with_labels(tmp_path / "labels.tif"))
        raster.write_map(forest, raster.open_scene(files, mask=mask, nodata=7), out)
        raster.write_map(forest, raster.scene_like(forest, files), out)
        raster.write_map(forest, raster.scene_like(forest, files, mask=False, nodata=0), out)
        other = scene_files(tmp_path / "wide", bands, smooth_scene(3, 24, 20).astype(np.int16), nodata=7)
        write_raster(other / "x_QA.tif", clouds)
        raster.write_map(forest, raster.open_scene(other, mask=mask), out)  # the tag is the same


@pytest.mark.parametrize(
    ("train", "new", "used"),
    [
        ((0.5, 1.0), (0.25, 2.0), (0.25, 2.0)),  # the new file knows best
        ((0.5, 1.0), (1.0, 0.0), (0.5, 1.0)),
        ((1.0, 0.0), (0.25, 2.0), (1.0, 0.0)),  # the forest knows plain numbers
    ],
)
def test_scales_of_training_count_where_files_have_none(tmp_path, train, new, used):
    def scaled(name, scale):
        path = write_raster(tmp_path / name, smooth_scene(1, 8, 9), names=["red"])
        with rasterio.open(path, "r+") as file:
            file.scales, file.offsets = [scale[0]], [scale[1]]
        return path

    labels = write_raster(tmp_path / "labels.tif", (smooth_scene(1, 8, 9) > 128).astype(np.uint8))
    first = raster.open_scene(scaled("train.tif", train)).with_labels(labels)
    forest = RandomForestClassifier(2).fit(first)
    opened = raster.scene_like(forest, scaled("new.tif", new))
    values = smooth_scene(1, 8, 9).reshape(-1, 1) * used[0] + used[1]
    np.testing.assert_array_equal(rows_of(opened), values.astype(np.float32))


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("bands", []),
        ("bands", "B2"),
        ("bands", ["B2", "B2"]),
        ("bands", [3]),
        ("extra", {"ratio": 5}),
        ("extra", None),
        ("patch", 2),
        ("patch", 10**9 + 1),
        ("patch", "3"),
        ("scale", {"B2": [1.0]}),
        ("scale", {"B2": [float("nan"), 0.0]}),
        ("mask", ["*.tif"]),
        ("nodata", "0"),
        ("colors", {"1": 5}),
    ],
)
def test_damaged_recipes_are_errors(tmp_path, entry, value):
    forest, _ = trained(tmp_path)
    forest.recipe_[entry] = value
    with pytest.raises(RememberedSceneError, match=f"its entry '{entry}' is damaged"):
        raster.scene_like(forest, tmp_path / "train")
    forest.save(tmp_path / "forged.og")
    with pytest.raises(CorruptedModelFileError, match=f"the entry '{entry}' of the recipe"):
        oldgrowth.load(tmp_path / "forged.og")


def test_a_forest_of_a_table_knows_no_scene(tmp_path):
    forest = RandomForestClassifier(2).fit(np.eye(4), [0, 0, 1, 1])
    with pytest.raises(RememberedSceneError, match="trained on a scene, but on a table"):
        raster.scene_like(forest, tmp_path)


def test_scenes_smaller_than_patches_are_mapped(tmp_path):
    forest, _ = trained(tmp_path, patch=3)
    files = scene_files(tmp_path / "line", ["B2", "B3", "B4"], smooth_scene(3, 1, 20))
    written = raster.write_map(forest, raster.scene_like(forest, files), tmp_path / "map.tif")
    assert written.predicted == 20
    taller = smooth_scene(3, 1, 20).repeat(3, axis=1)
    taller[:, [0, 2]] = 0  # outside of the line there is nothing
    scene = raster.open_scene(scene_files(tmp_path / "taller", ["B2", "B3", "B4"], taller), patch=3, nodata=0)
    raster.write_map(forest, scene, tmp_path / "taller.tif")
    with rasterio.open(tmp_path / "map.tif") as line, rasterio.open(tmp_path / "taller.tif") as three:
        np.testing.assert_array_equal(line.read(1)[0], three.read(1)[1])
    with pytest.raises(ParameterError, match=r"patch must be at most 1: .* \(scene_like opens it .*; got 3"):
        raster.open_scene(files, patch=3)
