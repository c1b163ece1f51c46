"""Files are written atomically, replace only regular files, and leave no temporary files for good."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldgrowth
from oldgrowth.errors import OutputError, ParameterError, UnwritableFileError
from oldgrowth.system import atomic_file
from oldgrowth.system.atomic_file import new_file


def device(path: Path) -> None:
    try:
        os.mknod(path, 0o020666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root can make devices")


def model() -> Any:
    return oldgrowth.RandomForestClassifier(2, random_state=0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])


SPECIAL: dict[str, Callable[[Path], object]] = {
    "device": device,
    "pipe": os.mkfifo,
    "directory": os.mkdir,
    "socket": lambda path: __import__("socket").socket(1).bind(str(path)),
}


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("kind", SPECIAL)
def test_only_regular_files_are_replaced(kind: str, linked: bool, tmp_path: Path) -> None:
    path = tmp_path / "there"
    SPECIAL[kind](path)
    before = os.lstat(path)
    name = path
    if linked:
        name = tmp_path / "link"
        name.symlink_to(path)
    with pytest.raises((OutputError, ParameterError), match=f"is a {kind}|not of a {kind}"):
        model().save(name)
    with pytest.raises(OutputError, match="Choose another output file"), new_file(name):
        pass
    after = os.lstat(path)
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert {p.name for p in tmp_path.iterdir()} <= {"there", "link"}


def test_where_nothing_can_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, why in (("no/such/f.og", "the directory .*no/such does not exist"), ("file/f.og", "Not a dir")):
        with pytest.raises(UnwritableFileError, match=f"{name} could not be written: {why}") as caught:
            model().save(tmp_path / name)
        assert caught.value.errno in (errno.ENOENT, errno.ENOTDIR)
    (tmp_path / "loop.og").symlink_to("loop.og")
    with pytest.raises(OutputError, match=r"loop\.og is a symbolic link that leads back to itself"):
        model().save(tmp_path / "loop.og")


def test_force_does_not_replace_a_device(tmp_path: Path) -> None:
    model().save(tmp_path / "forest.og")
    np.savetxt(tmp_path / "x.csv", np.arange(3.0), header="a", comments="")
    device(tmp_path / "device.csv")
    for force in ([], ["--force"]):
        call = ["predict", str(tmp_path / "forest.og"), str(tmp_path / "x.csv"), "-o"]
        command = [sys.executable, "-m", "oldgrowth", *call, str(tmp_path / "device.csv"), *force]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode != 0 and "is a device" in " ".join(done.stderr.split())
    assert (tmp_path / "device.csv").is_char_device()


def test_a_link_stays_a_link_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "link.og").symlink_to(tmp_path / "target.og")
    for _ in range(2):  # the target is not there at first
        model().save(tmp_path / "link.og")
    assert (tmp_path / "link.og").is_symlink() and not (tmp_path / "target.og").is_symlink()
    assert oldgrowth.load(tmp_path / "target.og").n_estimators == 2


KILLED = """
import os, signal, sys
from pathlib import Path
from oldgrowth.system.atomic_file import new_file
with new_file(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    print("writing", flush=True)
    sys.stdin.read()
"""


def writer(path: Path, fate: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path), fate],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_what_a_kill_leaves_is_reclaimed_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "forest.og"
    assert writer(path, "killed").wait() == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.endswith(".part")
    mine = [
        tmp_path / name
        for name in ("forest.og.part", "forest.og.3f2a9c1e.part", "forest.og.3f2a9c1e-00000000.part")
    ]
    for file in mine:
        file.write_bytes(b"a person's own")
    linked = tmp_path / left.name.replace("forest", "linked")
    linked.symlink_to(mine[0])
    alive = writer(tmp_path / "other.csv", "alive")
    assert alive.stdout is not None and alive.stdout.readline() == "writing\n"
    model().save(path)
    assert not left.exists() and oldgrowth.load(path).n_estimators == 2
    assert all(file.read_bytes() == b"a person's own" for file in mine) and linked.is_symlink()
    assert alive.communicate("")[0] == "" and alive.returncode == 0
    assert (tmp_path / "other.csv").read_bytes() == b"half"
    assert not [p for p in tmp_path.glob("*.part") if p not in (*mine, linked)]


@pytest.mark.parametrize("what", ["seek", "tell"])
def test_a_file_that_cannot_be_moved_in_is_named(what: str, tmp_path: Path) -> None:
    path = tmp_path / "forest.og"
    reading, writing = os.pipe()
    with pytest.raises(UnwritableFileError, match=r"forest\.og .*Illegal seek"), new_file(path) as file:
        file.write(b"x")
        os.dup2(writing, file.fileno())  # which cannot be moved in
        file.raw.seek(0) if what == "seek" else file.raw.tell()  # type: ignore[attr-defined]
    os.close(reading)
    os.close(writing)
    assert not list(tmp_path.iterdir())


def test_a_file_that_has_its_name_is_written_whatever_closing_it_meets(tmp_path: Path, monkeypatch) -> None:
    """It is synced then; an error would say that the old file is unchanged."""
    path = tmp_path / "out"
    path.write_text("old")
    replace, moved = os.replace, []
    monkeypatch.setattr(os, "replace", lambda *names: moved.append(replace(*names)))
    seek = atomic_file._NamedFile.seek

    def failing(file: Any, *args: int) -> int:
        if moved:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return seek(file, *args)

    monkeypatch.setattr(atomic_file._NamedFile, "seek", failing)
    with new_file(path) as file:
        file.write(b"new and long")
        file.seek(0)
        file.read(3)  # closing moves back to where the reader of the buffer is
    assert moved and path.read_text() == "new and long"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
