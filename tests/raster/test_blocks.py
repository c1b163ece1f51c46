"""Splits by blocks: parts are far enough from each other, and rows are where they should be."""

import numpy as np
import pytest
import sklearn
from affine import Affine
from rasterio import warp
from rasters import TRANSFORM, smooth_scene, write_raster
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier as SklearnForest
from sklearn.model_selection import GridSearchCV, cross_val_score
from vectors import labels_of

from oldgrowth import RandomForestClassifier, raster
from oldgrowth.errors import DataError, MemoryLimitError, ParameterError
from oldgrowth.raster.scenes import scene as scene_module

SHAPE = (60, 70)


def made(tmp_path, patch=3, nodata=0, **options):
    """A scene with labels of two classes, of which some pixels are invalid and some have no label."""
    rng = np.random.default_rng(0)
    bands = smooth_scene(2, *SHAPE)
    bands[:, rng.random(SHAPE) < 0.1] = 0
    labels = np.where(bands[0] > 128, 1, 2).astype(np.uint8)
    labels[rng.random(SHAPE) < 0.3] = 0
    scene = raster.open_scene(
        write_raster(tmp_path / "scene.tif", bands, nodata=nodata, **options), patch=patch
    )
    return scene.with_labels(write_raster(tmp_path / "labels.tif", labels[None], nodata=0, **options))


def places(data):
    """The line and the pixel of each row."""
    return np.concatenate(
        [np.column_stack([some.strip.first + some.lines, some.pixels]) for some in data.rows()]
    )


def places_of(data, scene):
    """As `places`, of one scene."""
    found = [some for some in data.rows() if some.strip.scene == scene]
    return np.concatenate([np.column_stack([some.strip.first + some.lines, some.pixels]) for some in found])


def blocks_of(rows, size, transform=TRANSFORM):
    x, y = transform @ (rows[:, 1] + 0.5, rows[:, 0] + 0.5)
    return np.column_stack([np.floor(y / size), np.floor(x / size)])


def near(rows, test, size, gap, transform=TRANSFORM):
    """Whether a place so near to each row, at any distance up to `gap`, is in a block of the test."""
    tested = np.unique(blocks_of(test, size, transform) @ (1e6, 1))  # a number of each block
    found = np.zeros(len(rows), dtype=bool)
    for dy in range(-gap, gap + 1):
        for dx in range(-gap, gap + 1):
            found |= np.isin(blocks_of(rows + np.array([dy, dx]), size, transform) @ (1e6, 1), tested)
    return found


@pytest.mark.parametrize("patch", [1, 3, 5])
@pytest.mark.parametrize("size", [300, "0.5 km"])
@pytest.mark.parametrize("strip_pixels", [1, 1 << 17])
def test_no_patch_has_pixels_of_both_parts(tmp_path, monkeypatch, patch, size, strip_pixels):
    monkeypatch.setattr(scene_module, "STRIP_PIXELS", strip_pixels)
    data = made(tmp_path, patch)
    train, test = data.split_blocks(size, share=0.3, seed=1)
    metres, gap = 300 if size == 300 else 500, 2 * (patch // 2)
    every, tested = places(data), places(test)
    in_test = near(every, tested, metres, 0)
    np.testing.assert_array_equal(tested, every[in_test])
    np.testing.assert_array_equal(places(train), every[~near(every, tested, metres, gap)])
    assert abs(len(tested) / len(every) - 0.3) < 0.05
    again = data.split_blocks(size, share=0.3, seed=1)[1]
    assert again.fingerprint() == test.fingerprint()
    assert data.split_blocks(size, share=0.3, seed=2)[1].fingerprint() != test.fingerprint()


@pytest.mark.parametrize(
    "transform", [Affine(20, 9, 820_000, 9, -20, 830_000), Affine(30, 0, 820_000, 0, 30, 830_000)]
)
def test_rotated_and_south_up(tmp_path, transform):
    data = made(tmp_path, transform=transform)
    train, test = data.split_blocks(300)
    every, tested = places(data), places(test)
    np.testing.assert_array_equal(tested, every[near(every, tested, 300, 0, transform)])
    np.testing.assert_array_equal(places(train), every[~near(every, tested, 300, 2, transform)])


def test_distances_in_degrees_and_feet(tmp_path):
    degrees = Affine(0.0005, 0, 10.0, 0, -0.0005, 60.0)
    _, test = made(tmp_path, crs="EPSG:4326", transform=degrees).split_blocks("500 m")
    filters = test._filters[0].blocks.areas[0]
    assert filters.height == pytest.approx(500 / 111_319.49, rel=1e-6)
    assert filters.width == pytest.approx(2 * filters.height, rel=1e-2)  # at 60 degrees
    feet = Affine(100, 0, 600_000, 0, -100, 200_000)
    _, test = made(tmp_path, crs="EPSG:2263", transform=feet).split_blocks("0.3048 km")
    assert test._filters[0].blocks.areas[0].width == pytest.approx(1000, rel=1e-5)


def test_scenes_that_overlap_have_the_same_blocks(tmp_path):
    bands = smooth_scene(1, *SHAPE)
    moved = Affine.translation(330, -210) @ TRANSFORM
    files = [
        write_raster(tmp_path / name, bands, names=["red"], transform=transform)
        for name, transform in (("a.tif", TRANSFORM), ("b.tif", moved))
    ]
    train, test = raster.open_scene(files).split_blocks(300)
    parts = []
    for data in (train, test):
        blocks = [set(), set()]
        for some in data.rows():
            rows = np.column_stack([some.strip.first + some.lines, some.pixels])
            found = blocks_of(rows, 300, (TRANSFORM, moved)[some.strip.scene])
            blocks[some.strip.scene] |= {tuple(block) for block in found}
        parts.append(blocks)
    assert not (parts[0][0] | parts[0][1]) & (parts[1][0] | parts[1][1])
    assert parts[1][0] & parts[1][1]


def test_scenes_that_overlap_in_another_crs(tmp_path):
    bands, crs = smooth_scene(1, *SHAPE), ("EPSG:32637", "EPSG:32638")
    x, y = (one[0] for one in warp.transform(*crs, [TRANSFORM.c], [TRANSFORM.f]))
    transforms = (TRANSFORM, Affine(30, 0, x + 100, 0, -30, y - 100))
    files = [
        write_raster(tmp_path / name, bands, names=["red"], crs=one, transform=transform)
        for name, one, transform in zip(("a.tif", "b.tif"), crs, transforms, strict=True)
    ]
    train, test = raster.open_scene(files, patch=3).split_blocks(300)
    rows = [[places_of(data, scene) for scene in (0, 1)] for data in (train, test)]
    assert all(len(part) > 100 for parts in rows for part in parts)
    for own, other in ((0, 1), (1, 0)):
        tested = {tuple(block) for block in blocks_of(rows[1][other], 300, transforms[other])}
        for shift in ((0, 0), (2, 2), (-2, 2), (2, -2), (-2, -2), (0, 2), (2, 0)):
            lines, pixels = (rows[0][own] + np.array(shift) + 0.5).T
            on_map = transforms[own] @ (pixels, lines)
            x, y = np.array(warp.transform(crs[own], crs[other], *on_map))
            assert not tested & set(zip(np.floor(y / 300), np.floor(x / 300), strict=True))


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ("-1", "size must be a distance"),
        ("0", "size must be a distance"),
        ("abc", "size must be a distance"),
        ("2 miles", "size must be a distance"),
        (-1, "size must be a distance"),
        (float("nan"), "size must be a distance"),
        (float("inf"), "size must be a distance"),
        (True, "size must be a distance"),
        (None, "size must be a distance"),
        ("5 km", r"size must be smaller: all rows are in 1 block, and at least 2 are needed; got '5 km'"),
        ("60 m", r"size must be larger: a patch of 3 x 3 pixels is 90 x 90 map units large; got '60 m'"),
    ],
)
def test_sizes_that_are_refused(tmp_path, size, message):
    shifted = Affine.translation(180_000, 170_000) @ TRANSFORM  # one block has all
    with pytest.raises(ParameterError, match=message):
        made(tmp_path, transform=shifted).split_blocks(size)


@pytest.mark.parametrize("size", ["0.3km", "300 m", "300", 300, 300.0, np.float32(300), " .3 km "])
def test_sizes_that_are_the_same(tmp_path, size):
    data = made(tmp_path)
    assert data.split_blocks(size)[0].fingerprint() == data.split_blocks(300)[0].fingerprint()


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, float("nan"), "half", None])
def test_shares_that_are_refused(tmp_path, share):
    with pytest.raises(ParameterError, match="share must be between 0 and 1"):
        made(tmp_path).split_blocks(300, share=share)


def test_blocks_without_valid_pixels_are_not_drawn(tmp_path):
    bands = smooth_scene(1, *SHAPE)
    bands[:, :, 20:] = 0
    scene = raster.open_scene(write_raster(tmp_path / "scene.tif", bands, nodata=0))
    for seed in range(5):
        train, test = scene.split_blocks(300, seed=seed)
        assert train.count_rows() and test.count_rows()


def test_too_many_blocks_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("oldgrowth.raster.labels.blocks.MOST_BLOCKS", 50)
    with pytest.raises(ParameterError, match=r"size must be larger: there would be \d+ blocks"):
        made(tmp_path).split_blocks(100)


@pytest.mark.parametrize("patch", [1, 3])
def test_folds(tmp_path, patch):
    data = made(tmp_path, patch)
    x, y = data.arrays()
    folds = raster.BlockKFold(data, 300, n_splits=4, seed=3)
    assert folds.get_n_splits(x, y) == 4
    every, times = places(data), np.zeros(len(y), dtype=int)
    for train, test in folds.split(x, y):
        times[test] += 1
        far = ~near(every, every[test], 300, 2 * (patch // 2))
        np.testing.assert_array_equal(train, np.flatnonzero(far))
        assert len(test) == pytest.approx(len(y) / 4, rel=0.15)
    assert (times == 1).all()


def test_arrays_are_the_rows_of_the_scene(tmp_path):
    for nodata in (0, None):
        data = made(tmp_path, nodata=nodata)
        x, y = data.arrays()
        rows = np.concatenate([batch.x for batch in data.batches(100)])
        np.testing.assert_array_equal(x, rows)
        np.testing.assert_array_equal(y, labels_of(data))
        assert x.dtype == (np.float32 if np.isnan(rows).any() else np.uint8)


def test_folds_in_scikit_learn(tmp_path):
    data = made(tmp_path)
    x, y = data.arrays()
    folds = raster.BlockKFold(data, 300, n_splits=3)
    scores = cross_val_score(RandomForestClassifier(4, random_state=0), x, y, cv=folds)
    expected = []
    for train, test in folds.split():
        forest = RandomForestClassifier(4, random_state=0).fit(x[train], y[train])
        expected.append(forest.score(x[test], y[test]))
    assert scores.tolist() == expected
    search = clone(GridSearchCV(SklearnForest(2, random_state=0), {"max_depth": [2]}, cv=folds))
    search.fit(np.nan_to_num(x), y)
    with sklearn.config_context(enable_metadata_routing=True):
        again = cross_val_score(RandomForestClassifier(4, random_state=0), x, y, cv=folds)
    assert again.tolist() == expected
    assert repr(folds).endswith("scene.tif>, 300, n_splits=3, seed=0)")


def test_folds_that_are_refused(tmp_path):
    data = made(tmp_path)
    x, y = data.arrays()
    with pytest.raises(DataError, match=r"X has \d+ rows, but the scene has [\d,]+: use X and y of data"):
        next(raster.BlockKFold(data, 300).split(x[1:200], y))
    with pytest.raises(ParameterError, match=r"size must be smaller: all rows are in \d+ blocks"):
        next(raster.BlockKFold(data, 1000, n_splits=50).split(x, y))
    with pytest.raises(ParameterError, match="n_splits must be a whole number of at least 2"):
        raster.BlockKFold(data, 300, n_splits=1)
    with pytest.raises(ParameterError, match="data must be a scene"):
        raster.BlockKFold(x, 300)
    with pytest.raises(DataError, match=r"use X, y = data\.arrays\(\) if they fit memory"):
        cross_val_score(RandomForestClassifier(4), data, cv=3)
    with pytest.raises(MemoryLimitError, match="Or fit the forest on the scene itself"):
        data.arrays(memory_limit=1000)
    with pytest.raises(ParameterError, match="data must be a scene with labels"):
        raster.open_scene(tmp_path / "scene.tif").arrays()
