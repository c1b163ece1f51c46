"""The command line: what the demo prints and draws, and the exit codes."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
import rasterio
from rich.console import Console

import oldgrowth
import oldgrowth.demo.demo as demo_module
from oldgrowth.cli.main import run
from oldgrowth.demo.demo import run_demo
from oldgrowth.demo.picture import COLOURS
from oldgrowth.demo.scene import CLASS_NAMES

# What the tests of other modules have loaded counts too.
LIMIT = 8 * 10**9
SMALL = ["demo", "--size", "100", "--trees", "4", "--memory-limit", "8GB"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory for temporary files, here and in processes that are started."""
    path = tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("TMPDIR", str(path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return path


def fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(demo_module, "run_demo", fail)


def test_demo_prints_tables_and_draws(
    here: Path, temporary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(SMALL) == 0
    out, err = capsys.readouterr()
    for stage in ("sample", "top trees", "distribute", "grow", "assemble"):
        assert re.search(rf"{stage} .*\d\.\d\d .*%( │ +[\d.]+ [kMG]?B){{3}} │", out), stage
        assert f"oldgrowth: {stage}: " in err, "progress is shown"
    for name in CLASS_NAMES:
        assert re.search(rf"{name} +│ +[\d.]+% │ +[\d,]+ │ +[\d.]+% │ +[\d.]+% │", out), name
    assert re.search(r"Test accuracy \d\d\.\d\d%", out)
    assert "Map saved to oldgrowth-demo.tif" in out and "Picture saved to oldgrowth-demo.png" in out
    assert "memory limit 8 GB" in out and "the rows are no larger than the limit" in " ".join(out.split())
    assert max(len(line) for line in out.splitlines() if str(temporary) not in line) <= 80
    assert not list(temporary.iterdir())


def test_demo_writes_a_real_png(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from matplotlib.image import imread

    (here / "map.png").write_bytes(b"something old")
    assert run([*SMALL, "--output", "map.png"]) == 0
    image = imread(here / "map.png")
    assert image.shape[1] == 1760 and image.shape[0] > 800
    assert len(np.unique(image[..., 0])) > 100 and image[..., :3].std() > 0.1, "there is a picture in it"
    found = sorted(path.name for path in here.iterdir())
    assert found == ["map.png", "map.tif", "map.tif.aux.xml"], "nothing temporary is left"


def test_a_picture_that_cannot_be_written_leaves_the_old_one(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    (here / "map.png").write_bytes(b"something old")
    assert run([*SMALL, "--output", "map.png"]) == 1
    assert "could not be written: No space left" in capsys.readouterr().err
    assert [path.name for path in here.iterdir()] == ["map.png"]
    assert (here / "map.png").read_bytes() == b"something old"


def test_a_directory_without_permission_is_refused_at_once(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert run(["demo", "--output", "map.png"]) == 2
    assert "cannot be written to" in capsys.readouterr().err


def test_demo_is_the_same_for_a_seed(here: Path) -> None:
    def outcome(seed: int) -> demo_module.Outcome:
        return run_demo(100, 3, seed, LIMIT, here / "map.svg", Console(file=io.StringIO()))

    one, same, other = outcome(1), outcome(1), outcome(2)
    np.testing.assert_array_equal(one.forest_map, same.forest_map)
    np.testing.assert_array_equal(one.subsets_map, same.subsets_map)
    assert (one.forest_map != other.forest_map).any()


def test_demo_numbers_are_those_of_the_maps(here: Path) -> None:
    outcome = run_demo(120, 4, 0, LIMIT, here / "map.svg", Console(file=io.StringIO()))
    truth, guess = outcome.scene.truth[outcome.test], outcome.forest_map[outcome.test]
    scores = outcome.scores(outcome.forest_map)
    assert scores["accuracy"] == pytest.approx((truth == guess).mean())
    assert scores["classes"][3]["recall"] == pytest.approx((guess[truth == 3] == 3).mean())
    assert scores["accuracy"] > 0.8
    assert 0.005 < outcome.subset_rows / (~outcome.test).sum() < 0.05
    with rasterio.open(here / "map.tif") as file:
        values, tags, colours = file.read(1), file.tags(), file.colormap(1)
        assert file.shape == (120, 120) and file.crs == "EPSG:32633" and file.nodata == 0
    for value in np.unique(values).tolist():
        label = CLASS_NAMES.index(tags[f"CLASS_{value}"])
        assert (outcome.forest_map[values == value] == label).all()
        assert "#" + bytes(colours[value][:3]).hex() == COLOURS[label]


def test_demo_without_matplotlib(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run(SMALL) == 0
    out = capsys.readouterr().out
    assert "pip install matplotlib" in out and "Test accuracy" in out
    assert "Picture saved" not in out
    assert sorted(path.name for path in here.iterdir()) == [
        "oldgrowth-demo.tif",
        "oldgrowth-demo.tif.aux.xml",
    ]


def test_demo_without_rasterio(here: Path) -> None:
    code = "import sys; sys.modules['rasterio'] = None\nfrom oldgrowth.cli.entry import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "demo"], capture_output=True, text=True)
    wanted = "oldgrowth: oldgrowth.raster requires rasterio 1.4 or newer. Install it with: pip install '"
    assert done.returncode == 1 and done.stderr.startswith(wanted) and not list(here.iterdir())


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert oldgrowth.__version__ in capsys.readouterr().out
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    assert "demo" in out and "--version" in out and "--debug" in out
    assert run(["demo", "--help"]) == 0
    out = capsys.readouterr().out
    for option, default in (
        ("size", "3000"),
        ("trees", "8"),
        ("memory-limit", "850MB"),
        ("seed", "0"),
        ("output", "oldgrowth-demo.png"),
    ):
        said = "".join(out.split())  # wherever lines are broken
        assert re.search(rf"--{option}.*?\[default:{re.escape(default)}", said), option


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fly"], "No such command 'fly'"),
        (["demo", "--size", "99"], "'--size'"),
        (["demo", "--size", "many"], "'--size'"),
        (["demo", "--trees", "0"], "'--trees'"),
        (["demo", "--memory-limit", "much"], "'--memory-limit'"),
        (["demo", "--seed", "-1"], "'--seed'"),
        (["demo", "--output", "map.txt"], "must end in .png, .pdf or .svg"),
        (["demo", "--output", "no/such/place.png"], "directory 'no/such' does not exist"),
        (["demo", "--wings"], "--wings"),
    ],
)
def test_wrong_usage_is_2(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert words in err and "Traceback" not in err and not out


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (oldgrowth.OldgrowthError("The rows are\n  upside down."), "oldgrowth: The rows are upside down."),
        (OSError(28, "No space left on device"), "oldgrowth: [Errno 28] No space left on device"),
        (KeyError("x"), "oldgrowth: KeyError: 'x'"),
        (ValueError(), "oldgrowth: ValueError (--debug shows where)"),
    ],
)
def test_failure_is_1_and_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    fail_with(monkeypatch, error)
    assert run(["demo"]) == 1
    assert capsys.readouterr().err == words + "\n"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "Out of memory: the process uses "),
        (MemoryError("9 GiB"), "Out of memory (9 GiB): the process uses "),
        (RuntimeError("can't start new thread"), "The system refused to start a thread"),
        (
            ImportError("/x/_fblas.so: failed to map segment from shared object"),
            "Out of memory (_fblas.so could not be loaded)",
        ),
    ],
)
def test_limits_of_the_system_are_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    fail_with(monkeypatch, error)
    assert run(["demo"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"oldgrowth: {words}") and "--jobs" in said


@pytest.mark.parametrize("arguments", [["--debug", "demo"], ["demo", "--debug"]])
def test_debug_shows_the_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    fail_with(monkeypatch, ValueError("upside down"))
    assert run(arguments) == 1
    err = capsys.readouterr().err
    assert "Traceback" in err and "test_cli.py" in err and err.endswith("oldgrowth: upside down\n")


def test_interrupt_is_130(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(monkeypatch, KeyboardInterrupt())
    assert run(["demo"]) == 130
    assert capsys.readouterr().err.strip() == "oldgrowth: interrupted."


def test_an_interrupt_says_the_way_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = KeyboardInterrupt()
    stop.add_note("Call fit again with checkpoint_dir='there' to go on.")
    fail_with(monkeypatch, stop)
    assert run(["demo"]) == 130
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == "oldgrowth: Call fit again with --checkpoint-dir 'there' to go on."


def running_demo(*options: str) -> subprocess.Popen[str]:
    script = "from oldgrowth.cli.entry import main; print('ready', flush=True); main()"
    command = [sys.executable, "-c", script, "demo", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("begun", ["oldgrowth-spill-*", "*/bands.npy", "*/oldgrowth-spill-*/*.rows"])
def test_interrupt_of_a_running_demo(here: Path, temporary: Path, begun: str) -> None:
    """At the start, while the scene is generated, while rows are distributed: no files are left."""
    process = running_demo("--size", "500", "--trees", "400", "--memory-limit", "540MB")
    deadline = time.monotonic() + 60
    while not list(temporary.glob(begun)) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err.endswith("oldgrowth: interrupted.\n") and "Traceback" not in err
    assert not list(here.iterdir()) and not list(temporary.iterdir())


@pytest.mark.slow
def test_demo_in_a_process_of_its_own_keeps_the_limit(here: Path, temporary: Path) -> None:
    process = running_demo("--size", "600", "--trees", "8")
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    found = re.search(
        r"memory limit 850 MB, peak of the process while training (\d+) MB", " ".join(out.split())
    )
    assert found and 100 < int(found[1]) < 850
    assert not list(temporary.iterdir())


def test_too_low_a_limit_is_one_sentence(
    here: Path, temporary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["demo", "--size", "100", "--memory-limit", "10MB"]) == 1
    err = capsys.readouterr().err
    assert re.fullmatch(r"oldgrowth: --memory-limit of 10 MB is too low: at least .*\n", err)
    assert not list(temporary.iterdir())


def test_memory_is_printed_as_given() -> None:
    def said(rows: int, peak: int, store: str = "disk") -> str:
        return demo_module.memory_sentence(rows * 10**6, 500 * 10**6, peak * 10**6, store)

    sizes = "600 MB of rows, memory limit 500 MB, peak of the process while training"
    assert said(600, 423) == f"{sizes} 423 MB: trained on all rows, on disk."
    assert said(600, 510) == f"{sizes} 510 MB: the limit was exceeded."
    assert said(20, 300, "memory").endswith("no larger than the limit, and were kept in memory.")
    assert said(400, 450).endswith("no larger than the limit, and were kept on disk all the same.")
