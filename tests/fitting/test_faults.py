"""Faults of the disk: full at any write, and any flipped bit."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldgrowth.fitting.pipeline
import oldgrowth.fitting.sample
import oldgrowth.storage.task_log
from helpers import make_data, module_of_stage
from oldgrowth import RandomForestClassifier, RandomForestRegressor, open_dataset
from oldgrowth.errors import DamagedBlockError, DamagedCheckpointError, SpillFullError
from oldgrowth.storage import fit_directory
from oldgrowth.storage.checkpoint_dir import FILES
from on_disk import make_all_tiny

CALLS = ("pwrite", "fsync", "fdatasync", "replace")


class FullDisk:
    """Fails the k-th call that needs disk space, and all later ones; counts them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, k: int) -> None:
        self.calls = 0
        self._k = k
        for name in CALLS:
            monkeypatch.setattr(os, name, self._failing(getattr(os, name)))

    def _failing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self.calls += 1
            if self.calls > self._k:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*args, **options)

        return call


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    make_all_tiny(monkeypatch)
    monkeypatch.setattr(oldgrowth.fitting.sample, "_SAVE_EVERY_SECONDS", 0.0)
    monkeypatch.setattr(oldgrowth.storage.task_log, "_SYNC_EVERY_SECONDS", 0.0)


def small_fit(rows: int = 150, **params: Any) -> RandomForestClassifier:
    x, y = make_data(rows, 3, 3, seed=2)
    data = open_dataset(x, target=y)
    sizes = {"bucket_size": 40, "top_sample": 20, "chunk_size": 50, "n_estimators": 6}
    sizes |= {"random_state": 1, "n_jobs": 2, "oob_score": True}
    model = RandomForestClassifier(**(sizes | params))
    return model.fit(data)


pytestmark = [
    pytest.mark.filterwarnings("ignore:.*seen by every tree"),
    pytest.mark.filterwarnings("ignore:.*is done again"),
]


@pytest.mark.slow
def test_a_disk_that_is_full_at_any_write(tiny, monkeypatch, tmp_path) -> None:
    expected = small_fit().forest_.digest()
    k = failed = 0
    while True:
        with monkeypatch.context() as patch:
            disk = FullDisk(patch, k)
            try:
                assert small_fit(store="disk", spill_dir=tmp_path).forest_.digest() == expected
                break
            except SpillFullError as error:
                failed += 1
                assert "more were needed" in str(error)
        assert list(tmp_path.iterdir()) == []
        k += 1 if k < 30 else 3
    assert disk.calls <= k and failed > 30


@pytest.mark.parametrize("apart", [pytest.param(1, marks=pytest.mark.slow), 53])
def test_a_checkpoint_survives_a_disk_that_is_full_at_any_write(tiny, monkeypatch, tmp_path, apart) -> None:
    whole = small_fit()
    k = 0
    while True:
        directory = tmp_path / str(k)
        with monkeypatch.context() as patch:
            disk = FullDisk(patch, k)
            try:
                found = small_fit(checkpoint_dir=directory)
            except SpillFullError:
                found = None
        if found is None:
            assert all("nameless" not in path.name for path in directory.rglob("*"))
            found = small_fit(checkpoint_dir=directory)
        assert found.forest_.digest() == whole.forest_.digest()
        assert found.oob_score_ == whole.oob_score_
        assert list(directory.iterdir()) == []
        if disk.calls <= k:
            break
        k += apart if k < 20 else max(apart, 9)
    assert k > 60


def test_a_full_disk_keeps_no_file_open(tiny, monkeypatch, tmp_path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for k in range(0, 60, 4):
        with monkeypatch.context() as patch:
            FullDisk(patch, k)
            with pytest.raises(SpillFullError):
                small_fit(store="disk", spill_dir=tmp_path)
    assert len(os.listdir("/proc/self/fd")) <= before


def flips(path: Path, every: int = 1) -> Any:
    """Flip one bit after the other; yield its position, and restore it."""
    whole = path.read_bytes()
    for bit in range(0, 8 * len(whole), every):
        with path.open("r+b", buffering=0) as file:
            for flipped in (1 << bit % 8, 0):
                file.seek(bit // 8)
                file.write(bytes([whole[bit // 8] ^ flipped]))
                if flipped:
                    yield bit


class Stopped(Exception):
    """Raised in place of a stage."""


def stop_at(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def stop(*args: Any, **options: Any) -> None:
        raise Stopped

    monkeypatch.setattr(module_of_stage(name), name, stop)


def stopped_fit(monkeypatch: pytest.MonkeyPatch, directory: Path, stage: str, **params: Any) -> None:
    with monkeypatch.context() as patch:
        stop_at(patch, stage)
        with pytest.raises(Stopped):
            small_fit(checkpoint_dir=directory, **params)


def outcomes_of_flips(file: Path, every: int, allowed: tuple[type[Exception], ...]) -> int:
    """Resume a stopped fit with each bit flipped: refused, or the same model. Returns the refusals."""
    expected = small_fit()
    saved = contents(file.parent)
    refused = 0
    for bit in flips(file, every):
        try:
            model = small_fit(checkpoint_dir=file.parent.parent)
        except allowed:
            refused += 1
        else:
            assert model.forest_.digest() == expected.forest_.digest(), bit
            assert model.oob_score_ == expected.oob_score_, bit
        put_back(file.parent, saved)
    return refused


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if not path.is_symlink()}


def put_back(directory: Path, saved: dict[str, bytes]) -> None:
    """A checkpoint with these files and no others."""
    if directory.exists():
        shutil.rmtree(directory)
    os.close(fit_directory.take(make(directory)))
    for name, data in saved.items():
        (directory / name).write_bytes(data)


def make(directory: Path) -> Path:
    directory.mkdir(mode=0o700)
    return directory


def test_any_flipped_bit_of_a_bucket_is_found_while_it_is_grown(tiny, monkeypatch, tmp_path) -> None:
    """Between distribution and growth, in one process: every bit of a file."""
    grow = oldgrowth.fitting.pipeline.grow
    found = []

    def damaged(store, *args: Any, **options: Any) -> None:
        for file in sorted(tmp_path.glob("*/top-00000.rows")):
            for bit in flips(file):
                with pytest.raises(DamagedBlockError):
                    for bucket in range(len(store.sizes(0))):
                        store.load(0, bucket)
                found.append(bit)
        grow(store, *args, **options)

    monkeypatch.setattr(oldgrowth.fitting.pipeline, "grow", damaged)
    small_fit(50, bucket_size=15, n_estimators=4, store="disk", spill_dir=tmp_path)
    assert len(found) > 8000


def test_any_flipped_bit_of_a_kept_row_is_found_when_a_top_sample_is_drawn(
    tiny, monkeypatch, tmp_path
) -> None:
    """Row numbers are read without the rows: they must be checked alone, too."""
    grow = oldgrowth.fitting.pipeline.grow_top_trees
    found = []

    def damaged(sampled: Any, plan: Any, *args: Any) -> Any:
        (file,) = tmp_path.glob("*/sample.rows")
        expected = sampled.top_sample(plan, 0)
        for bit in flips(file, every=5):
            try:
                np.testing.assert_array_equal(sampled.top_sample(plan, 0), expected)
            except DamagedCheckpointError:
                found.append(bit)
        return grow(sampled, plan, *args)

    monkeypatch.setattr(oldgrowth.fitting.pipeline, "grow_top_trees", damaged)
    small_fit(100, checkpoint_dir=tmp_path)
    assert len(found) > 100


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["grow", "assemble"])
@pytest.mark.parametrize(
    "name",
    ["top-00000.rows", "trees.log", "oob.log", "sample.rows", "sample.npz", "round-00000.npz",
     "round-00000-split.npz", "top-00001.npz", "checkpoint.json", "rounds.npz"],
)  # fmt: skip
def test_a_flipped_bit_in_a_checkpoint_never_makes_another_model(
    tiny, monkeypatch, tmp_path, stage: str, name: str
) -> None:
    stopped_fit(monkeypatch, tmp_path, stage)
    file = tmp_path / FILES / name
    if not file.exists() or file.stat().st_size == 0:
        pytest.skip("not there at this stage")
    every = max(1, 8 * file.stat().st_size // 30) | 1
    outcomes_of_flips(file, every, (DamagedCheckpointError,) if name == "checkpoint.json" else ())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["top-00000.rows", "trees.log", "oob.log"])
def test_a_header_with_a_flipped_bit(tiny, monkeypatch, tmp_path, name: str) -> None:
    """Each bit of the first header."""
    stopped_fit(monkeypatch, tmp_path, "grow" if name.endswith("rows") else "assemble")
    file = tmp_path / FILES / name
    whole = file.read_bytes()
    expected = small_fit()
    saved = contents(file.parent)
    for bit in range(8 * 40):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        model = small_fit(checkpoint_dir=tmp_path)  # what is lost is done again
        assert model.forest_.digest() == expected.forest_.digest()
        assert model.oob_score_ == expected.oob_score_
        put_back(file.parent, saved)


def test_a_regression_with_damaged_votes(tiny, monkeypatch, tmp_path) -> None:
    """In one process: votes are checked before they are added up."""
    x, y = make_data(150, 3, 0, seed=2)
    assemble = oldgrowth.fitting.pipeline.assemble

    def damaged(*args: Any, **options: Any) -> Any:
        (file,) = tmp_path.glob("*/oob.log")
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 16
        file.write_bytes(data)
        return assemble(*args, **options)

    monkeypatch.setattr(oldgrowth.fitting.pipeline, "assemble", damaged)
    model = RandomForestRegressor(6, bucket_size=40, oob_score=True, store="disk", spill_dir=tmp_path)
    with pytest.raises(DamagedBlockError, match=r"oob\.log"):
        model.fit(x, np.asarray(y))
