"""Scenes are datasets: forests are those of a table of the same rows, however they are read or cut."""

import hashlib
import os
import pickle
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rasters import smooth_scene, write_raster

from oldgrowth import (
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    SubsetForestClassifier,
    load,
    open_dataset,
    raster,
)
from oldgrowth.errors import (
    BandError,
    ChangedSourceError,
    DamagedFileError,
    NoTargetError,
    PatchError,
    RecipeError,
)
from oldgrowth.raster.scenes import scene as scene_module

BANDS = smooth_scene(3, 60, 41)
VALID = np.random.default_rng(0).random((60, 41)) < 0.95
BANDS[:, ~VALID] = 0
LABELS = (1 + BANDS[0] // 86 + 3 * (BANDS[1] > 128)).astype(np.uint8)
LABELS[np.random.default_rng(1).random((60, 41)) < 0.2] = 0


@pytest.fixture
def labels(tmp_path):
    return write_raster(tmp_path / "labels.tif", LABELS[None], nodata=0, names=["label"])


@pytest.fixture
def path(tmp_path):
    return write_raster(tmp_path / "scene.tif", BANDS, nodata=0)


def table_of(scene, path):
    """The rows of a scene as a Parquet file."""
    batches = list(scene.batches(700, keep_bytes=True))
    x = np.concatenate([batch.x.astype(np.float32) for batch in batches])
    columns = {name: x[:, i] for i, name in enumerate(scene.feature_names)}
    pq.write_table(pa.table(columns | {"label": np.concatenate([batch.y for batch in batches])}), path)
    return open_dataset(path, target="label")


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (RandomForestClassifier, {"oob_score": True}),
        (RandomForestRegressor, {"oob_score": True}),
        (ExtraTreesRegressor, {}),
        (SubsetForestClassifier, {"subset_size": 300}),
    ],
)
def test_forests_are_those_of_a_table(tmp_path, monkeypatch, path, labels, kind, options):
    scene = raster.open_scene(path, patch=3, extra={"nd": "(B1 - B2) / (B1 + B2)"}).with_labels(labels)
    table = table_of(scene, tmp_path / "rows.parquet")
    forest = kind(6, random_state=3, **options).fit(table)
    for strip_pixels, chunk in ((1 << 17, 1 << 17), (50, 101), (1, 1000)):
        monkeypatch.setattr(scene_module, "STRIP_PIXELS", strip_pixels)
        same = kind(6, random_state=3, chunk_size=chunk, **options).fit(raster_again(scene))
        assert same.forest_.digest() == forest.forest_.digest()
        assert same.score(scene) == forest.score(table)
        assert getattr(same, "oob_score_", 0) == getattr(forest, "oob_score_", 0)
        np.testing.assert_array_equal(same.predict(scene), forest.predict(table))


def raster_again(scene):
    """The same scene, of which nothing was read."""
    return scene._changed()


def test_bytes_stay_bytes_where_nothing_is_missing(tmp_path):
    file = write_raster(tmp_path / "scene.tif", smooth_scene(3, 60, 41))
    assert {batch.x.dtype.name for batch in raster.open_scene(file).batches(500, keep_bytes=True)} == {
        "uint8"
    }
    inner = np.zeros((1, 60, 41), np.uint8)
    inner[0, 1:-1, 1:-1] = 1  # patches at the edge have missing values
    scene = raster.open_scene(file, patch=3)
    labelled = scene.with_labels(write_raster(tmp_path / "labels.tif", inner, nodata=0))
    assert {batch.x.dtype.name for batch in labelled.batches(500, keep_bytes=True)} == {"uint8"}
    assert {batch.x.dtype.name for batch in scene.batches(500, keep_bytes=True)} == {"float32"}


def test_selected_features(path):
    scene = raster.open_scene(path, patch=3)
    whole = np.concatenate([batch.x for batch in scene.batches(999)])
    names = ["B3(1,-1)", "B1(0,0)", "B2(-1,1)"]
    found = np.concatenate([batch.x for batch in scene.select(names).batches(999)])
    np.testing.assert_array_equal(found, whole[:, [scene.feature_names.index(name) for name in names]])
    with pytest.raises(BandError, match=r"scene.tif has no band 'B4'. Its bands are 'B1'"):
        scene.select(["B4(0,0)", "B4(0,1)"])


READ_ELSEWHERE = """
import pickle, sys, hashlib
for partition in pickle.load(sys.stdin.buffer):
    digest = hashlib.sha256()
    for batch in partition.open().batches(77):
        digest.update(batch.x.tobytes() + batch.y.tobytes())
    print(partition.first_row, partition.n_rows, digest.hexdigest())
"""


def test_partitions_have_all_rows_also_in_another_process(tmp_path, monkeypatch, path, labels):
    monkeypatch.setattr(scene_module, "STRIP_PIXELS", 600)
    other = write_raster(tmp_path / "other.tif", BANDS[:, :17], nodata=0, crs="EPSG:32638")
    scene = raster.open_scene([path, other], patch=3).with_labels(labels)
    x = np.concatenate([batch.x for batch in scene.batches(1000)])
    y = np.concatenate([batch.y for batch in scene.batches(1000)])
    for n in (2, 5, 1000):
        parts = raster_again(scene).partitions(n)
        assert len(parts) == min(n, len(scene.strips)) and sum(part.n_rows for part in parts) == len(x)
        for part in parts:
            rows = slice(part.first_row, part.first_row + part.n_rows)
            found = [batch.x for batch in part.open().batches(77)] or [x[:0]]
            np.testing.assert_array_equal(np.concatenate(found), x[rows])
        if n == 5:
            inner = [part.open().partitions(2) for part in parts]
            assert [(some[0].first_row, sum(one.n_rows for one in some)) for some in inner] == [
                (part.first_row, part.n_rows) for part in parts
            ]
            setting = "import oldgrowth.raster.scenes.scene as s; s.STRIP_PIXELS = 600"
            told = subprocess.run(
                [sys.executable, "-c", f"{setting}\n{READ_ELSEWHERE}"],
                input=pickle.dumps(parts),
                capture_output=True,
                check=True,
            )
            assert told.stdout.decode().splitlines() == [digest_of(part, x, y) for part in parts]


def digest_of(part, x, y):
    digest, stop = hashlib.sha256(), part.first_row + part.n_rows
    for first in range(part.first_row, stop, 77):
        last = min(first + 77, stop)
        digest.update(x[first:last].tobytes() + y[first:last].tobytes())
    return f"{part.first_row} {part.n_rows} {digest.hexdigest()}"


def test_an_interrupted_fit_is_resumed(tmp_path, monkeypatch, path, labels):
    monkeypatch.setattr(scene_module, "STRIP_PIXELS", 90)
    scene = raster.open_scene(path, patch=3).with_labels(labels)
    wanted = RandomForestClassifier(6, random_state=3).fit(scene).forest_.digest()
    for stage in ("sample", "distribute", "grow"):
        forest = RandomForestClassifier(6, random_state=3, checkpoint_dir=tmp_path / stage, chunk_size=200)

        def stop(progress, stage=stage):
            if progress.stage == stage and progress.rows:
                raise KeyError(stage)

        with pytest.raises(KeyError, match=stage):
            forest.fit(raster_again(scene), callback=stop)
        again = raster.open_scene(path, patch=3).with_labels(labels)
        assert forest.fit(again).forest_.digest() == wanted


def touch(file):
    status = os.stat(file)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))


@pytest.mark.parametrize("again", [False, True])
def test_a_scene_that_changes(tmp_path, monkeypatch, path, again):
    monkeypatch.setattr(scene_module, "STRIP_PIXELS", 90)
    scene = raster.open_scene(path)
    if again:
        scene.count_rows()
    batches = scene.batches(100)
    if not again:
        next(batches)
    write_raster(path, BANDS[:, :, ::-1], nodata=0)
    touch(path)
    with pytest.raises(ChangedSourceError, match=r"scene.tif"):
        list(batches)


@pytest.mark.parametrize("compress", ["deflate", "none"])
def test_a_truncated_file(tmp_path, monkeypatch, compress):
    monkeypatch.setattr(scene_module, "STRIP_PIXELS", 90)
    blocks = {"tiled": True, "blockxsize": 16, "blockysize": 16, "compress": compress}
    path = write_raster(tmp_path / "cut.tif", smooth_scene(3, 90, 70), **blocks)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    batches = raster.open_scene(path, patch=3, nodata=0).batches(100)  # nodata: corners are not looked at
    next(batches)
    with pytest.raises(DamagedFileError, match=r"cut.tif cannot be read as a raster: .*truncated, damaged"):
        list(batches)


def test_other_scenes_must_have_the_same_features(tmp_path, path, labels):
    extra = {"nd": "(B1 - B2) / (B1 + B2)"}
    scene = raster.open_scene(path, patch=3, extra=extra)
    forest = RandomForestClassifier(4, random_state=0).fit(scene.with_labels(labels))
    forest.save(tmp_path / "forest.og")
    forest = load(tmp_path / "forest.og")
    wanted = forest.predict(scene)
    moved = write_raster(tmp_path / "moved.tif", BANDS[[2, 0, 1]], nodata=0, names=["B3", "B1", "B2"])
    np.testing.assert_array_equal(forest.predict(raster.open_scene(moved, patch=3, extra=extra)), wanted)
    with pytest.raises(
        PatchError, match=r"moved.tif was opened with patch=1, but .* patches of 3 x 3 pixels"
    ):
        forest.predict(raster.open_scene(moved, extra=extra))
    with pytest.raises(RecipeError, match=r"expression of 'nd' is 'B1 - B2', and was '\(B1"):
        forest.predict(raster.open_scene(moved, patch=3, extra={"nd": "B1 - B2"}))
    plain = RandomForestClassifier(4, random_state=0).fit(raster.open_scene(path).with_labels(labels))
    other = write_raster(tmp_path / "other.tif", BANDS, nodata=0, names=["B1x", "B2", "B3"])
    with pytest.raises(BandError, match=r"other.tif has no band 'B1'. Did you mean 'B1x'"):
        plain.predict(raster.open_scene(other))


def test_a_scene_that_changes_between_the_passes(path, labels):
    scene = raster.open_scene(path, patch=3).with_labels(labels)
    changed = []

    def change(progress):
        if progress.stage == "top trees" and not changed:
            changed.append(write_raster(path, BANDS[:, ::-1], nodata=0))
            touch(path)

    forest = RandomForestClassifier(6, random_state=3)
    with pytest.raises(ChangedSourceError, match=r"scene.tif"):
        forest.fit(scene, callback=change)
    assert changed and not hasattr(forest, "forest_")


@pytest.mark.parametrize("use", ["fit", "score"])
def test_a_scene_without_labels_is_refused_with_advice(path, labels, use):
    scene = raster.open_scene(path)
    forest = RandomForestClassifier(2, random_state=0).fit(scene.with_labels(labels))
    with pytest.raises(NoTargetError, match=r"no target: give labels to the scene with scene\.with_labels"):
        getattr(forest, use)(scene)
