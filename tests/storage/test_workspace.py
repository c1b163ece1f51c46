"""The directories of a fit: private, locked, not shared; only files of the fit are removed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldgrowth.fitting.pipeline
import oldgrowth.planning.execution
from interrupted_fits import DATA, forest, interrupted
from oldgrowth import RandomForestClassifier, RandomForestRegressor
from oldgrowth.errors import CheckpointError, DirectoryInUseError, ParameterError, SpillDirectoryError
from oldgrowth.storage.checkpoint import Checkpoint
from oldgrowth.storage.checkpoint_dir import FILES, persistent_workspace
from oldgrowth.storage.workspace import reclaim, spill_workspace


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def contents(directory: Path) -> dict[str, tuple[bytes, int, int]]:
    """Every file, with when and how it was last changed."""
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
        for path in directory.iterdir()
        if path.is_file()
    }


def test_what_is_spilled_is_private(tmp_path) -> None:
    old = os.umask(0)
    try:
        with spill_workspace(tmp_path) as workspace:
            file = workspace.file("top-00000.rows")
            file.append(b"secret")
            workspace.replace("sample.npz", b"secret")
            assert mode(workspace.path) == 0o700
            files = [path for path in workspace.path.iterdir() if not path.is_symlink()]
            assert [mode(path) for path in files] == [0o600] * 3
        with persistent_workspace(tmp_path / "new" / "deep") as workspace:
            assert mode(workspace.path) == 0o700
    finally:
        os.umask(old)


def test_a_spill_directory_that_cannot_be_used(tmp_path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for params in ({"spill_dir": tmp_path / "file"}, {"checkpoint_dir": tmp_path / "file"}):
        with pytest.raises(SpillDirectoryError, match="cannot be used"):
            RandomForestClassifier(2, store="disk", **params).fit(*DATA)


def child(code: str, *args: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    )


HOLD = """
import sys, time
from pathlib import Path
from oldgrowth.storage.checkpoint_dir import persistent_workspace
from oldgrowth.storage.workspace import spill_workspace
with globals()[sys.argv[1]](Path(sys.argv[2])) as workspace:
    workspace.file("trees.log").append(b"x" * 100)
    print(workspace.path, flush=True)
    time.sleep(60)
"""


def test_leftovers_are_reclaimed_but_not_what_is_in_use(tmp_path) -> None:
    dead, alive = child(HOLD, "spill_workspace", tmp_path), child(HOLD, "spill_workspace", tmp_path)
    dead_path, alive_path = (Path(process.stdout.readline().strip()) for process in (dead, alive))
    try:
        dead.kill()
        dead.wait()
        mine, new = tmp_path / "oldgrowth-spill-mine", tmp_path / "oldgrowth-spill-new"
        for path in (mine, new):
            path.mkdir(mode=0o700)
        for name in ("lock", "oldgrowth", "trees.log", "sample.npz"):  # a name does not make it a fit's
            (mine / name).write_bytes(b"locked")
        (tmp_path / "oldgrowth-spill-link").symlink_to(dead_path)
        before = contents(mine)
        assert reclaim(tmp_path) == 1
        assert not dead_path.exists() and alive_path.exists() and new.exists()
        assert contents(mine) == before
    finally:
        alive.kill()
        alive.wait()
    RandomForestClassifier(2, store="disk", spill_dir=tmp_path).fit(*DATA)
    assert not alive_path.exists()


def test_fits_at_the_same_time_do_not_meet(tmp_path) -> None:
    with spill_workspace(tmp_path) as one, spill_workspace(tmp_path) as two:
        assert one.path != two.path
        assert reclaim(tmp_path) == 0 and one.path.exists() and two.path.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_second_process_in_a_checkpoint_is_refused(tmp_path) -> None:
    first = child(HOLD, "persistent_workspace", tmp_path)
    first.stdout.readline()
    try:
        with pytest.raises(DirectoryInUseError, match="in use by another process"):
            forest(tmp_path).fit(*DATA)
    finally:
        first.kill()
        first.wait()
    with persistent_workspace(tmp_path), pytest.raises(DirectoryInUseError), persistent_workspace(tmp_path):
        pass


def test_a_directory_with_other_files_is_left_as_it_is(tmp_path) -> None:
    (tmp_path / "thesis.tex").write_text("all of it")
    with pytest.raises(CheckpointError, match=r"other files, such as 'thesis\.tex'"):
        forest(tmp_path).fit(*DATA)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_files_that_others_put_into_a_checkpoint_stay(tmp_path, monkeypatch) -> None:
    interrupted(monkeypatch, tmp_path, *DATA)
    (tmp_path / "train.log").write_text("what was printed")
    (tmp_path / "plots").mkdir()
    forest(tmp_path).fit(*DATA)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plots", "train.log"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"max_depth": 5}, "max_depth was None and is 5"),
        ({"random_state": 5}, "random_state was 4 and is 5"),
        ({"bucket_size": 90}, "bucket_size was 100 and is 90"),
        ({"n_estimators": 7}, "n_estimators was 6 and is 7"),
        ({"oob_score": True}, "oob_score was False and is True"),
    ],
)
def test_other_parameters_are_named(tmp_path, monkeypatch, change, said: str) -> None:
    interrupted(monkeypatch, tmp_path, *DATA)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(CheckpointError, match=re.escape(said)):
        forest(tmp_path).set_params(**change).fit(*DATA)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_other_data_is_refused(tmp_path, monkeypatch) -> None:
    x, y = DATA
    interrupted(monkeypatch, tmp_path, x, y)
    other = x.copy()
    other[3, 0] += 1
    for rows, labels, weights, said in (
        (other, y, None, "values was"),
        (x, 2 - y, None, "targets was"),
        (x[:-1], y[:-1], None, "rows was 600 and is 599"),
        (x[:, :4], y, None, "features was 5 and is 4"),
        (x, y, np.full(600, 2.0), "weights was None and is"),
    ):
        with pytest.raises(CheckpointError, match=said):
            forest(tmp_path).fit(rows, labels, rows if weights is rows else weights)
    with pytest.raises(CheckpointError, match="criterion was 'gini' and is 'squared_error'"):
        RandomForestRegressor(6, random_state=4, bucket_size=100, checkpoint_dir=tmp_path).fit(x, y)


def test_of_many_files_the_one_that_differs_is_named(tmp_path: Path) -> None:
    def identity(n: int, changed: int) -> dict[str, Any]:
        files = [{"path": f"{i}.csv", "size": 10 + (i == changed)} for i in range(n)]
        return {"parameters": {}, "data": {"files": files}}

    with persistent_workspace(tmp_path) as workspace:
        begun = Checkpoint(workspace)
        begun.begin(identity(900, -1))
        again = Checkpoint(workspace)
        again.begin(identity(900, -1))
        assert again.resumed and not begun.resumed
        with pytest.raises(
            CheckpointError, match=r"files\[707\] was .*'size': 10.* and is .*'size': 11"
        ) as one:
            Checkpoint(workspace).begin(identity(900, 707))
        assert len(str(one.value)) < 400
        with pytest.raises(CheckpointError, match="files were 900 and are 901"):
            Checkpoint(workspace).begin(identity(901, -1))


def test_a_resumed_fit_is_announced(tmp_path, monkeypatch, capsys) -> None:
    interrupted(monkeypatch, tmp_path, *DATA)
    forest(tmp_path, verbose=1).fit(*DATA)
    said = f"resuming the fit in {tmp_path}"
    assert said in " ".join(capsys.readouterr().err.split())
    forest(tmp_path, verbose=1).fit(*DATA)
    assert "resuming" not in capsys.readouterr().err


def test_limits_may_change_between_runs(tmp_path, monkeypatch) -> None:
    interrupted(monkeypatch, tmp_path, *DATA)
    model = forest(tmp_path, n_jobs=1, chunk_size=17, verbose=0, store="disk", spill_limit="1GB").fit(*DATA)
    assert model.forest_.digest() == forest(tmp_path).fit(*DATA).forest_.digest()


def test_a_random_seed_is_that_of_the_interrupted_fit(tmp_path, monkeypatch) -> None:
    interrupted(monkeypatch, tmp_path, *DATA, random_state=None)
    assert (tmp_path / FILES / "trees.log").exists()
    done = forest(tmp_path, random_state=None).fit(*DATA)
    assert done.fit_report_.stages[-1].name == "assemble"


def test_generators_and_metrics_are_resumed_by_another_process(tmp_path, monkeypatch) -> None:
    """They have a different address there."""
    params = [
        {"random_state": np.random.RandomState(3), "oob_score": lambda y, p: float((y == p).mean())}
        for _ in range(2)
    ]
    interrupted(monkeypatch, tmp_path, *DATA, **params[0])
    forest(tmp_path, **params[1]).fit(*DATA)
    interrupted(monkeypatch, tmp_path, *DATA, random_state=np.random.RandomState(3))
    with pytest.raises(CheckpointError, match="seed was"):
        forest(tmp_path, random_state=np.random.RandomState(4)).fit(*DATA)


def test_a_checkpoint_is_never_in_memory(tmp_path) -> None:
    with pytest.raises(ParameterError, match="checkpoint_dir"):
        forest(tmp_path / "new", store="memory").fit(*DATA)
    assert not (tmp_path / "new").exists()


def test_too_little_disk_is_refused_before_the_first_pass(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(
        oldgrowth.fitting.pipeline, "sample", lambda *args: pytest.fail("the first pass began")
    )
    with pytest.raises(SpillDirectoryError, match="spill_limit is"):
        forest(tmp_path, checkpoint_dir=None, store="disk", spill_dir=tmp_path, spill_limit=1000).fit(*DATA)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=5000))
    with pytest.raises(SpillDirectoryError, match=r"needs about .* of disk in"):
        forest(tmp_path, checkpoint_dir=None, store="disk", spill_dir=tmp_path).fit(*DATA)


def test_files_on_disk_count_when_a_fit_is_resumed(tmp_path, monkeypatch) -> None:
    interrupted(monkeypatch, tmp_path, *DATA)
    used = sum(path.lstat().st_size for path in (tmp_path / FILES).iterdir())
    needed = 600 * (4 * 4 + 9 + 16 * 6)
    free = needed - used // 2
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=free))
    forest(tmp_path, spill_limit="1GB").fit(*DATA)


INTERRUPTED = """
import sys, time
from helpers import make_data
from oldgrowth import RandomForestClassifier
x, y = make_data(150_000, 12, 5, seed=1)
print("ready", flush=True)
try:
    RandomForestClassifier(200, n_jobs=2, random_state=0, verbose=1, store="disk", bucket_size=60_000,
        **{sys.argv[1]: sys.argv[2]}).fit(x, y)
except KeyboardInterrupt as stop:
    print(time.time(), *stop.__notes__, flush=True)
"""


@pytest.mark.parametrize("name", ["spill_dir", "checkpoint_dir"])
def test_ctrl_c_stops_within_a_second_cleans_up_and_says_how_to_resume(tmp_path, name: str) -> None:
    process = child(INTERRUPTED, name, tmp_path)
    process.stdout.readline()
    time.sleep(2.5)
    sent = time.time()
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=30)
    stopped, _, note = said.partition(" ")
    left = [path.name for path in tmp_path.iterdir()]
    if name == "spill_dir":
        assert left == [] and "nothing was kept" in note
    else:
        assert (tmp_path / FILES / "checkpoint.json").exists()
        assert f"checkpoint_dir={str(tmp_path)!r} to go on" in note
    assert float(stopped) - sent < 3  # a second, on a machine that does nothing else


def test_a_disk_that_does_not_tell_its_space(tmp_path, monkeypatch) -> None:
    def fails(path: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(shutil, "disk_usage", fails)
    with pytest.raises(SpillDirectoryError, match=r"space of its disk is not known \(Input/output error\)"):
        forest(tmp_path, checkpoint_dir=None, store="disk", spill_dir=tmp_path).fit(*DATA)


def test_an_unnamed_file_that_fails_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with spill_workspace(tmp_path) as workspace:
        before = os.listdir("/dev/fd")

        def fail(_: int) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(os, "fstat", fail)
        with pytest.raises(SpillDirectoryError, match="Input/output error"):
            workspace.unnamed()
        monkeypatch.undo()
        assert os.listdir("/dev/fd") == before
