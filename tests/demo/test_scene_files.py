"""The scene on disk: the rows of the training pixels, and errors if it cannot be generated."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

import oldgrowth.demo.scene_files as scene_files
from oldgrowth import open_dataset
from oldgrowth.demo.scene import FEATURE_NAMES, make_scene, patches
from oldgrowth.demo.scene_files import TARGET, make_scene_files, strips, write_scene
from oldgrowth.errors import SceneError


def test_files_hold_the_scene(tmp_path: Path) -> None:
    made = make_scene_files(tmp_path, 110, seed=4)
    scene = make_scene(110, 110, seed=4)
    for name in ("bands", "labels", "truth"):
        np.testing.assert_array_equal(getattr(made.scene, name), getattr(scene, name))
    train = ~made.test.ravel()
    assert 0.6 < train.mean() < 0.75
    data = open_dataset(made.rows, target=TARGET)
    assert data.feature_names == FEATURE_NAMES
    (batch,) = data.batches(110 * 110)
    np.testing.assert_array_equal(batch.x, patches(scene)[train])
    np.testing.assert_array_equal(batch.y, scene.labels.ravel()[train])


def test_several_files_are_in_the_order_of_the_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene_files, "_ROWS_PER_FILE", 3000)
    write_scene(tmp_path, 100, 1)
    assert len(list(tmp_path.glob("*.parquet"))) == 4
    scene, test = make_scene(100, 100, seed=1), np.load(tmp_path / "test.npy").ravel()
    x = np.concatenate([batch.x for batch in open_dataset(tmp_path / "*.parquet", TARGET).batches(999)])
    np.testing.assert_array_equal(x, patches(scene)[~test])


def test_strips_cover_all_lines() -> None:
    assert list(strips((10, 100), 300)) == [(0, 3), (3, 6), (6, 9), (9, 10)]
    assert list(strips((2, 100), 5)) == [(0, 1), (1, 2)]


def test_a_scene_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        SceneError, match=r"^The scene could not be generated: FileNotFoundError: .*bands.npy"
    ):
        make_scene_files(tmp_path / "nowhere", 100, 0)


def test_a_killed_process_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, -signal.SIGKILL, stderr="")

    monkeypatch.setattr(subprocess, "run", killed)
    with pytest.raises(SceneError, match=r"ended by signal 9.* A smaller --size needs less memory\.$"):
        make_scene_files(tmp_path, 100, 0)
