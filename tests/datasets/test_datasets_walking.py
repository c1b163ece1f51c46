"""Files of directories and globs: each is read once, none is silently skipped, special ones are refused."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import warnings
from pathlib import Path

import fsspec
import numpy as np
import pytest

from oldgrowth import open_dataset
from oldgrowth.cli.main import run
from oldgrowth.errors import NoDataError, UnknownSourceError, UnreadableFileError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i, inner in enumerate(["data/a.csv", "data/deep/b.csv"]):
        path = tmp_path / inner
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"x,y\n{i},0\n{i},1\n")
    return tmp_path / "data"


def read(source, **options) -> list[float]:
    return [x for batch in open_dataset(source, target="y", **options).batches(100) for x in batch.x[:, 0]]


def silently(source) -> list[float]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return read(source)


def test_links_that_lead_back(folder):
    (folder / "deep/one").symlink_to(folder)
    (folder / "deep/two").symlink_to("..")
    (folder / "up").symlink_to("..")
    with pytest.warns(UserWarning, match="Skipped in .*: 'deep/one', 'deep/two' and 'up'"):
        assert read(folder) == [0, 0, 1, 1]
    assert read(f"{folder}/**/*.csv") == [0, 0, 1, 1]


def test_links_that_lead_round_by_other_directories(folder):
    other = folder.parent / "other"
    other.mkdir()
    (other / "c.csv").write_text("x,y\n2,0\n2,1\n")
    (other / "back").symlink_to(folder)
    (folder / "there").symlink_to(other)
    with pytest.warns(UserWarning, match="'there/back'"):
        assert read(folder) == [0, 0, 1, 1, 2, 2]
    assert sorted(read(f"{folder}/**/*.csv")) == [0, 0, 1, 1, 2, 2]


def test_a_file_or_directory_by_two_names_is_read_once(folder):
    (folder / "aa.csv").symlink_to(folder / "a.csv")
    (folder / "0-latest").symlink_to("deep")
    with pytest.warns(UserWarning, match="'0-latest' and 'aa.csv'"):
        assert read(folder) == [0, 0, 1, 1]
    with pytest.warns(UserWarning, match="'aa.csv'"):
        assert read(f"{folder}/*.csv") == [0, 0]
    assert silently([folder / "a.csv", folder / "aa.csv"]) == [0, 0, 0, 0]  # as asked for


def test_links_to_data_elsewhere_are_followed(folder):
    store = folder.parent / "store"
    store.mkdir()
    (folder / "a.csv").rename(store / "blob")
    (folder / "a.csv").symlink_to(store / "blob")
    (folder / "deep").rename(store / "deep")
    (folder / "deep").symlink_to(store / "deep")
    assert silently(folder) == [0, 0, 1, 1]


def test_one_directory_with_two_values_of_a_key(tmp_path):
    (tmp_path / "k=1").mkdir()
    (tmp_path / "k=1/a.csv").write_text("x,y\n5,0\n")
    (tmp_path / "k=2").symlink_to("k=1")
    (batch,) = open_dataset(tmp_path, target="y").batches(10)
    np.testing.assert_array_equal(batch.x, [[5, 1], [5, 2]])


@pytest.mark.parametrize("where", ["folder", "glob", "itself"])
@pytest.mark.parametrize("kind", ["a named pipe", "a socket", "a device", "a broken symbolic link"])
def test_what_is_no_file(folder, kind, where):
    path = folder / "x.csv"
    if kind == "a named pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as bound:
            here = os.open(".", os.O_RDONLY)
            os.chdir(folder)  # the path of a socket must be short
            bound.bind("x.csv")
            os.fchdir(here)
            os.close(here)
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    else:
        path.symlink_to("gone.csv")
    source = {"folder": folder, "glob": f"{folder}/*.csv", "itself": path}[where]
    with pytest.raises(UnknownSourceError, match=rf"x.csv cannot be opened as a dataset: it is {kind}"):
        open_dataset(source, target="y")


@pytest.mark.parametrize("name", ["b.csv.xz", "b.parquet.gz", "b.CSV.LZ4", "b.csv.tar.zip"])
def test_compressed_data_that_is_not_read(folder, name):
    (folder / name).write_bytes(b"")
    if "tar" in name:
        with pytest.warns(UserWarning, match=name):
            open_dataset(folder, target="y")
        return
    with pytest.raises(UnknownSourceError, match=rf"{name} .* compression"):
        open_dataset(folder, target="y")


def test_skipped_files_are_reported(folder, capsys):
    for name in ("c.xlsx", "_d.csv", ".e.csv", "part-0001", "README.md", "_SUCCESS", ".a.csv.crc"):
        (folder / name).write_text("")
    (folder / "_old").mkdir()
    (folder / "_old/f.csv").write_text("")
    with pytest.warns(UserWarning) as caught:
        assert read(folder) == [0, 0, 1, 1]
    (message,) = (str(warning.message) for warning in caught)
    assert "'.e.csv', '_d.csv', '_old/f.csv', 'c.xlsx' and 'part-0001'" in message
    assert run(["fit", str(folder), "--target", "y", "-o", str(folder.parent / "f.og"), "-q"]) == 0
    assert "'_d.csv'" in capsys.readouterr().err
    with pytest.warns(UserWarning, match="'deep'"):  # a directory that a glob matches
        read(f"{folder}/[ad]*")


def test_nothing_to_say_of_a_plain_directory(folder):
    (folder / "README.md").write_text("rows")
    assert silently(folder) == [0, 0, 1, 1]
    (folder / "README.md").unlink()
    assert silently(f"{folder}/**") == [0, 0, 1, 1]


def test_compressed_data_of_a_url():
    with fsspec.open("memory://walked/a.csv", "w") as file:
        file.write("x,y\n0,0\n")
    assert silently("memory://walked") == [0]
    with fsspec.open("memory://walked/b.csv.xz", "wb") as file:
        file.write(b"")
    with pytest.raises(UnknownSourceError, match=r"b\.csv\.xz .* compression"):
        open_dataset("memory://walked", target="y")


def test_local_urls_are_paths(folder):
    (folder / "up").symlink_to("..")
    with pytest.warns(UserWarning, match="'up'"):
        assert read(f"local://{folder}") == [0, 0, 1, 1]


OPEN = """
import os, sys, oldgrowth, fsspec
oldgrowth.open_dataset  # is imported when it is asked for, which takes rights
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for source in sys.argv[1:]:
    try:
        oldgrowth.open_dataset(source, target="y")
    except Exception as error:
        print(type(error).__name__, error)
    else:
        print("opened", source)
"""


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="drops the rights of root")
def test_a_directory_without_permission(tmp_path):
    """Root may read everything, so a process without root privileges tries."""
    import tempfile

    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        for inner in ("a", "closed", "_hidden"):
            (folder / inner).mkdir()
            (folder / inner / "x.csv").write_text("x,y\n0,0\n")
        folder.chmod(0o755)
        (folder / "closed").chmod(0o000)
        (folder / "_hidden").chmod(0o000)
        sources = [folder, f"{folder}/*/x.csv", f"{folder}/**/*.csv", f"{folder}/closed/x.csv", folder / "a"]
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", OPEN, *map(str, sources)], capture_output=True, text=True
        )
        lines = done.stdout.splitlines()
        assert len(lines) == len(sources), done.stderr
        for line in lines[:-1]:
            assert line.startswith("UnreadableFileError") and "Permission denied" in line, line
        assert lines[-1].startswith("opened")


def test_no_file():
    with pytest.raises(NoDataError, match="no file matches"):
        open_dataset("no/such/*.csv")
    with pytest.raises(NoDataError, match="no file matches"):
        open_dataset("/no/such.csv")


def test_a_link_to_itself(folder):
    (folder / "x.csv").symlink_to("x.csv")
    with pytest.raises(UnreadableFileError, match=r"x\.csv cannot be read"):
        open_dataset(folder, target="y")
