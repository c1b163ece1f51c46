"""Limits on disk use: bytes, file descriptors, and a directory that is removed during a fit."""

from __future__ import annotations

import errno
import re
import resource
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldgrowth.fitting.pipeline
from helpers import make_data, module_of_stage
from oldgrowth import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from oldgrowth.errors import DiskTooSmallError, SpillDirectoryError, SpillLimitError
from oldgrowth.storage.workspace import Workspace, spill_workspace
from oldgrowth.system import limits

X, Y = make_data(6000, 5, 3, seed=1)
NOISE = np.random.default_rng(0).normal(size=len(Y))


@pytest.fixture
def peak(monkeypatch) -> list[int]:
    """The maximum number of bytes of all files, according to the file system."""
    most, take = [0], Workspace.take

    def measured(workspace: Workspace, n_bytes: int) -> None:
        take(workspace, n_bytes)
        most[0] = max(most[0], workspace.used() + n_bytes)

    monkeypatch.setattr(Workspace, "take", measured)
    return most


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "y"),
    [(RandomForestClassifier, Y), (RandomForestRegressor, NOISE), (ExtraTreesRegressor, NOISE)],
)
def test_the_spill_limit_bounds_all_files_and_the_one_named_will_do(
    tmp_path, peak, kind: Any, y: Any
) -> None:
    params = {"trees_per_top": 2, "bucket_size": 500, "store": "disk", "spill_dir": tmp_path}
    params |= {"random_state": 0, "n_jobs": 1}
    with pytest.raises(DiskTooSmallError) as refused:
        kind(60, spill_limit="100kB", **params).fit(X, y)
    named = re.search(r"spill_limit of at least (\d+)MB", str(refused.value))
    assert named is not None
    least = int(named[1]) * 10**6
    model = kind(60, spill_limit=least, **params).fit(X, y)
    assert peak[0] <= least
    assert (
        model.forest_.digest()
        == kind(60, random_state=0, trees_per_top=2, bucket_size=500).fit(X, y).forest_.digest()
    )


@pytest.mark.parametrize(
    "params", [{"oob_score": True}, {"max_depth": 8}, {}], ids=["votes", "mixed leaves", "noise"]
)
def test_the_spill_limit_named_for_a_stream_counts_its_classes(
    tmp_path, peak, params: dict[str, Any]
) -> None:
    """The number of classes is unknown before the first pass."""
    classes = np.random.default_rng(0).integers(0, 9, len(Y))
    data = oldgrowth.open_dataset(lambda: iter([(X, classes)]))
    data.n_rows = len(X)
    params |= {"store": "disk", "spill_dir": tmp_path, "random_state": 0, "bucket_size": 500, "n_jobs": 1}
    with pytest.raises(DiskTooSmallError) as refused:
        RandomForestClassifier(40, spill_limit="100kB", **params).fit(data)
    named = re.search(r"spill_limit of at least (\d+)MB", str(refused.value))
    assert named is not None
    RandomForestClassifier(40, spill_limit=f"{named[1]}MB", **params).fit(data)
    assert peak[0] <= int(named[1]) * 10**6


def test_votes_of_many_classes_are_named_as_what_takes_the_disk(tmp_path) -> None:
    params = {"store": "disk", "spill_dir": tmp_path, "spill_limit": "100MB"}
    with pytest.raises(DiskTooSmallError, match=r"Out-of-bag votes, .* of it: without oob_score"):
        RandomForestClassifier(4, oob_score=True, **params).fit(X, np.arange(len(X)))
    with pytest.raises(DiskTooSmallError) as refused:
        RandomForestClassifier(4, **params | {"spill_limit": "10kB"}).fit(X, Y)
    assert "out-of-bag" not in str(refused.value)


def test_nothing_is_written_beyond_the_limit(tmp_path) -> None:
    with spill_workspace(tmp_path) as workspace:
        workspace.limit = 1000
        file = workspace.file("trees.log")
        file.append(bytes(600))
        with pytest.raises(SpillLimitError, match="401 B more"):
            file.append(bytes(401))
        with pytest.raises(SpillLimitError):
            workspace.replace("sample.npz", bytes(500))
        file.truncate(100)
        workspace.replace("sample.npz", bytes(300))
        workspace.replace("sample.npz", bytes(200))
        file.append(bytes(500))
        workspace.remove("trees.log")
        workspace.file("oob.log").append(bytes(600))


def test_many_top_trees_need_few_descriptors(tmp_path) -> None:
    whole = RandomForestClassifier(150, trees_per_top=1, bucket_size=100, random_state=0).fit(
        X[:300], Y[:300]
    )
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    here = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (here + 70, before[1]))
    try:
        for where in (
            {"store": "disk", "spill_dir": tmp_path / "spill"},
            {"checkpoint_dir": tmp_path / "new"},
        ):
            model = RandomForestClassifier(150, trees_per_top=1, bucket_size=100, random_state=0, **where)
            assert model.fit(X[:300], Y[:300]).forest_.digest() == whole.forest_.digest()
            assert model.fit_report_.top_trees == 150 and model.fit_report_.rounds == 1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("where", ["spill_dir", "checkpoint_dir"])
@pytest.mark.parametrize("stage", ["grow", "assemble", "distribute_round"])
def test_a_directory_that_is_removed_during_a_fit(tmp_path, monkeypatch, where: str, stage: str) -> None:
    """The fit succeeds if its trees are grown; otherwise the error says what happened."""
    module = module_of_stage(stage)
    real = getattr(module, stage)

    def removed(*args: Any, **options: Any) -> Any:
        shutil.rmtree(tmp_path / "here")
        return real(*args, **options)

    monkeypatch.setattr(module, stage, removed)
    params = {"bucket_size": 500, "random_state": 0, "store": "disk", where: tmp_path / "here"}
    if stage == "distribute_round":
        with pytest.raises(SpillDirectoryError, match=r"here.*was removed while the fit used it"):
            RandomForestClassifier(8, **params).fit(X, Y)
        return
    found = RandomForestClassifier(8, **params).fit(X, Y)
    monkeypatch.undo()
    whole = RandomForestClassifier(8, bucket_size=500, random_state=0).fit(X, Y)
    assert found.forest_.digest() == whole.forest_.digest()
    assert list(tmp_path.iterdir()) == []


def test_a_share_as_limit_is_of_the_disk_that_is_used(tmp_path, monkeypatch):
    totals = {tmp_path / "spill": 1000, tmp_path / "checkpoint": 4000}
    for path in totals:
        path.mkdir()
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(limits, "disk_space", lambda path: usage._replace(total=totals[path]))
    given = {"memory_limit": "2GB", "spill_limit": 0.5, "spill_dir": tmp_path / "spill"}
    assert limits.limits_of(given | {"checkpoint_dir": None}).spill_limit == 500
    assert limits.limits_of(given | {"checkpoint_dir": tmp_path / "checkpoint"}).spill_limit == 2000


def test_a_full_disk_names_the_directory_to_choose(tmp_path):
    full = OSError(errno.ENOSPC, "No space left on device")
    for persistent, name in ((True, "checkpoint_dir"), (False, "spill_dir")):
        workspace = Workspace(tmp_path, -1, persistent)
        error = workspace.write_failed(full, tmp_path / "rows", 100)
        assert f"choose another {name}" in str(error)
        assert f"choose another {name}" in error.on_command_line
