"""A checkpoint directory: it is changed only if it is empty or contains a fit, and then only files of
fits are written or removed."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interrupted_fits import DATA, forest, interrupted
from oldgrowth import _core
from oldgrowth.errors import (
    CheckpointError,
    DamagedCheckpointError,
    SharedCheckpointError,
    SpillDirectoryError,
)
from oldgrowth.storage import fit_directory, grown_trees, task_log
from oldgrowth.storage.checkpoint_dir import FILES, clear_checkpoint, persistent_workspace

# Names that fits of any version have used, and some that none has.
NAMES = ["finished", "sample.npz", "sample.rows", "trees.log", "oob.log", "top-1.npz", "top-00000.rows",
         "lock", "nameless-1", "rounds.npz", "round-00000.npz", "checkpoint.json", "checkpoint.json.new",
         "oldgrowth", "oldgrowth.new", "thesis.txt", ".hidden"]  # fmt: skip


def everything(directory: Path) -> dict[str, Any]:
    """Everything below a directory: contents, times, inodes, links."""
    found = {}
    for path in sorted(directory.rglob("*")):
        status = path.lstat()
        held = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(directory))] = (held, status.st_mtime_ns, status.st_ino, status.st_nlink)
    return found


def refused(directory: Path, home: Path, match: str = "") -> None:
    """A fit there is refused and changes nothing."""
    before = everything(home)
    with pytest.raises((CheckpointError, SpillDirectoryError), match=match):
        forest(directory).fit(*DATA)
    assert everything(home) == before


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint"
    path.mkdir(mode=0o700)
    return path


def test_files_of_others_are_left_alone_all_together(tmp_path, directory) -> None:
    for name in NAMES:
        (directory / name).write_bytes(b"dear to its owner")
    refused(directory, tmp_path, "holds other files")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["file", "empty", "hard link", "symlink", "dangling", "directory", "fifo"])
def test_one_file_of_another_is_left_alone(tmp_path, directory, kind: str, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"dear to its owner")
    path = directory / name
    {
        "file": lambda: path.write_bytes(b'{"format": 4, "checksum": "0"}'),
        "empty": path.touch,
        "hard link": lambda: os.link(victim, path),
        "symlink": lambda: path.symlink_to(victim),
        "dangling": lambda: path.symlink_to("files-of-a-fit"),
        "directory": path.mkdir,
        "fifo": lambda: os.mkfifo(path),
    }[kind]()
    before = everything(tmp_path)
    with pytest.raises((CheckpointError, SpillDirectoryError)):
        forest(directory).fit(*DATA)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("name", ["trees.log", "thesis.txt", "lock", "sample.npz.new", "checkpoint.json"])
@pytest.mark.parametrize("kind", ["file", "hard link", "symlink"])
def test_a_directory_that_is_only_called_like_a_fits(tmp_path, directory, kind: str, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"dear to its owner")
    files = directory / FILES
    files.mkdir(mode=0o700)
    make = {"file": (files / name).write_bytes, "hard link": None, "symlink": None}[kind]
    if make is not None:
        make(b"mine")
    else:
        (os.link if kind == "hard link" else os.symlink)(victim, files / name)
    refused(directory, tmp_path, "was not made by a fit")


def test_what_is_called_like_the_directory_of_a_fit_and_is_none(tmp_path, directory) -> None:
    (directory / FILES).write_bytes(b"mine")
    refused(directory, tmp_path, "not a directory")
    (directory / FILES).unlink()
    (tmp_path / "elsewhere").mkdir()
    (directory / FILES).symlink_to(tmp_path / "elsewhere")
    refused(directory, tmp_path, "not a directory")


@pytest.mark.parametrize(
    "name", ["trees.log", "oob.log", "sample.npz", "sample.npz.new", "top-00000.rows", "lock"]
)
@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_links_in_a_fits_own_directory_do_not_reach_what_they_lead_to(
    tmp_path, directory, name: str, link
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"dear to its owner")
    with persistent_workspace(directory, keep=True) as workspace:
        workspace.replace("rounds.npz", b"kept")
        files = workspace.path
    (files / name).unlink(missing_ok=True)
    link(victim, files / name)
    try:
        with persistent_workspace(directory, keep=True) as workspace:
            if workspace.has("sample.npz"):
                workspace.read("sample.npz")
            workspace.replace("sample.npz", b"written")
            for file in ("trees.log", "oob.log", "top-00000.rows"):
                workspace.file(file).truncate(0)
                workspace.file(file).append(b"written")
    except (CheckpointError, SpillDirectoryError):
        pass
    assert victim.read_bytes() == b"dear to its owner"


def test_what_others_put_beside_a_checkpoint_stays(tmp_path, monkeypatch, directory) -> None:
    interrupted(monkeypatch, directory, *DATA)
    expected = forest(None).fit(*DATA).forest_.digest()
    for name in NAMES:
        (directory / name).write_bytes(b"dear to its owner")
    (directory / FILES / "thesis.txt").write_bytes(b"dear to its owner")
    assert forest(directory).fit(*DATA).forest_.digest() == expected
    left = everything(directory)
    assert set(left) == {*NAMES, FILES, f"{FILES}/thesis.txt"}
    assert all(held in (b"dear to its owner", None) for held, *_ in left.values())


def test_a_link_to_the_directory_stays_a_link(tmp_path, monkeypatch, directory) -> None:
    link = tmp_path / "link"
    link.symlink_to(directory)
    interrupted(monkeypatch, link, *DATA)
    assert (directory / FILES / "trees.log").exists()
    forest(link).fit(*DATA)
    assert link.is_symlink() and list(directory.iterdir()) == []


@pytest.mark.parametrize("came_to", ["mkdir", "lock", "mark", "new identity"])
def test_a_fit_that_died_while_it_began(tmp_path, directory, came_to: str) -> None:
    files = directory / FILES
    files.mkdir(mode=0o700)
    if came_to != "mkdir":
        (files / "lock").touch(0o600)
    if came_to not in ("mkdir", "lock"):
        os.close(fit_directory.take(files))
    if came_to == "new identity":
        (files / "checkpoint.json.new").write_bytes(b"\0" * 100)
    forest(directory).fit(*DATA)
    assert list(directory.iterdir()) == []


def test_a_fit_that_died_while_it_was_cleared_binds_nobody(tmp_path, monkeypatch, directory) -> None:
    interrupted(monkeypatch, directory, *DATA)
    removed = []

    def unlink(self: Path, missing_ok: bool = False) -> None:
        removed.append(self.name)
        if len(removed) == 4:
            raise KeyboardInterrupt
        if os.path.lexists(self):
            os.unlink(self)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "unlink", unlink)
        fit_directory.clear(directory / FILES)
    forest(directory, max_depth=3).fit(*DATA)
    assert list(directory.iterdir()) == []


def test_a_directory_that_others_can_write_is_refused(tmp_path, monkeypatch, directory) -> None:
    for mode in (0o777, 0o770, 0o702, 0o1777):
        directory.chmod(mode)
        refused(directory, tmp_path, "other users can write to it .*chmod go-w")
    directory.chmod(0o755)
    interrupted(monkeypatch, directory, *DATA)
    (directory / FILES).chmod(0o720)
    with pytest.raises(SharedCheckpointError, match=f"{FILES}: other users can write"):
        forest(directory).fit(*DATA)
    (directory / FILES).chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(SharedCheckpointError, match="belongs to another user"):
        forest(directory).fit(*DATA)


def test_files_beside_a_checkpoint_are_refused(tmp_path, monkeypatch, directory) -> None:
    """Files are recognized by the marker, not by their names and contents."""
    interrupted(monkeypatch, directory, *DATA)
    for path in (directory / FILES).iterdir():
        if path.name != "oldgrowth":
            path.rename(directory / path.name)
    (directory / FILES / "oldgrowth").unlink()
    (directory / FILES / "trees.log").write_bytes(b"dear to its owner")
    before = {path: path.is_file() and path.read_bytes() for path in directory.rglob("*")}
    with pytest.raises(CheckpointError):
        forest(directory).fit(*DATA)
    assert {path: path.is_file() and path.read_bytes() for path in directory.rglob("*")} == before


def test_a_file_that_others_can_write_is_refused(tmp_path, monkeypatch, directory) -> None:
    interrupted(monkeypatch, directory, *DATA)
    (directory / FILES / "checkpoint.json").chmod(0o666)
    with pytest.raises(SharedCheckpointError, match=r"checkpoint\.json: other users can write to it"):
        forest(directory).fit(*DATA)


@pytest.mark.parametrize("field", ["bucket", "nodes"])
def test_a_log_of_trees_with_right_checksums_and_wrong_numbers(
    field: str, tmp_path, monkeypatch, directory
) -> None:
    interrupted(monkeypatch, directory, *DATA)
    path = directory / FILES / "trees.log"
    data = bytearray(path.read_bytes())
    header, tree = task_log._HEADER, grown_trees._TREE
    magic, _, size, top, bucket, first_tree, trees = header.unpack_from(data)
    if field == "bucket":
        bucket = 2**40
    else:
        tree.pack_into(data, header.size, 2**40, *tree.unpack_from(data, header.size)[1:])
    header.pack_into(data, 0, magic, 0, size, top, bucket, first_tree, trees)
    crc = _core.crc32c(np.frombuffer(data, dtype=np.uint8)[task_log._CHECKED_FROM : header.size + size])
    header.pack_into(data, 0, magic, crc, size, top, bucket, first_tree, trees)
    path.write_bytes(data)
    with pytest.raises(DamagedCheckpointError, match=r"trees\.log is damaged"):
        forest(directory).fit(*DATA)


def test_a_checkpoint_without_its_identity(tmp_path, monkeypatch, directory) -> None:
    interrupted(monkeypatch, directory, *DATA)
    (directory / FILES / "checkpoint.json").unlink()
    with pytest.raises(DamagedCheckpointError, match=r"checkpoint\.json is damaged: it is missing.*Remove"):
        forest(directory).fit(*DATA)


def test_the_identity_says_what_is_wrong_with_it(tmp_path, monkeypatch, directory) -> None:
    interrupted(monkeypatch, directory, *DATA)
    path = directory / FILES / "checkpoint.json"
    for data in (b"", b"{", b"[" * 100_000, b"[]", json.dumps({"format": 4}).encode()):
        path.write_bytes(data)
        with pytest.raises(DamagedCheckpointError, match=f"Remove {directory / FILES} and fit again"):
            forest(directory).fit(*DATA)


def test_a_directory_that_cannot_be_looked_at_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: Path) -> bool:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    monkeypatch.setattr(Path, "exists", broken)
    with pytest.raises(SpillDirectoryError, match=r"checkpoint' cannot be used: Input/output error"):
        clear_checkpoint(tmp_path / "checkpoint")
