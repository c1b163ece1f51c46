"""The scene on disk: bands and polygons of the training pixels, and errors if it cannot be generated."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import rasterio

from oldgrowth import raster
from oldgrowth.demo import demo
from oldgrowth.demo.scene import BAND_NAMES, CLASS_NAMES, make_scene
from oldgrowth.demo.scene_files import FIELD, make_scene_files
from oldgrowth.errors import SceneError


def test_files_hold_the_scene(tmp_path: Path) -> None:
    made = make_scene_files(tmp_path, 110, seed=4)
    scene = make_scene(110, 110, seed=4)
    for name in ("bands", "labels", "truth"):
        np.testing.assert_array_equal(getattr(made.scene, name), getattr(scene, name))
    for name, band in zip(BAND_NAMES, scene.bands, strict=True):
        with rasterio.open(made.bands / f"{name.replace(' ', '-')}.tif") as file:
            np.testing.assert_array_equal(file.read(1), band)
            assert file.crs == "EPSG:32633" and file.res == (30, 30) and file.nodata == 0
    train = ~made.test
    assert 0.6 < train.mean() < 0.75
    labels = _labels(made)
    assert not labels[~train].any(), "no label of a test pixel is known"
    drawn = labels > 0
    np.testing.assert_array_equal(drawn, made.train)
    np.testing.assert_array_equal(labels[drawn] - 1, scene.labels[drawn])
    left_out = train & ~drawn
    assert left_out[train].mean() < 0.06
    rare = scene.labels == len(CLASS_NAMES) - 1
    assert not left_out[rare].any()
    for y, x in np.argwhere(left_out):
        beside = [(y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)]
        same = [
            scene.labels[at] == scene.labels[y, x]
            for at in beside
            if min(at) >= 0 and max(at) < 110 and train[at]
        ]
        assert not any(same), "only single pixels are left out"


def _labels(made) -> np.ndarray:
    """The label of each pixel, counted from 1; 0 where no polygon has it."""
    data = raster.open_scene(made.bands).with_labels(made.polygons, field=FIELD)
    found = np.zeros(made.test.shape, dtype=np.int64)
    bands = np.moveaxis(made.scene.bands, 0, 2).reshape(-1, len(BAND_NAMES))
    order = np.argsort([name.replace(" ", "_") for name in BAND_NAMES])
    places = {tuple(row): i for i, row in enumerate(bands[:, order].astype(np.float32).tolist())}
    assert len(places) == len(bands), "pixels are told apart by their values"
    for batch in data.batches(5000):
        for row, label in zip(batch.x.tolist(), batch.y.labels[batch.y.codes], strict=True):
            found.ravel()[places[tuple(row)]] = 1 + CLASS_NAMES.index(label)
    return found


def test_a_scene_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        SceneError, match=r"^The scene could not be generated: FileNotFoundError: .*bands.npy"
    ):
        make_scene_files(tmp_path / "nowhere", 100, 0)


def test_a_killed_process_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed = tmp_path / "python"
    killed.write_text("#!/bin/sh\nkill -9 $$\n")
    killed.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(killed))
    with pytest.raises(SceneError, match=r"ended by signal 9.* A smaller --size needs less memory\.$"):
        make_scene_files(tmp_path, 100, 0)


def test_an_interrupted_map_of_the_demo_promises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its directory is temporary."""

    def stopped(*_: object, **__: object) -> None:
        stop = KeyboardInterrupt()
        stop.add_note("The map was interrupted: what is done is kept in /tmp/x. Write the same map again.")
        raise stop

    monkeypatch.setattr(demo, "write_map", stopped)
    with pytest.raises(KeyboardInterrupt) as found:
        demo._map(make_scene(110, 110, seed=4), None, None, Path("map.tif"))  # type: ignore[arg-type]
    assert not found.value.__notes__
