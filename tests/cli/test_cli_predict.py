"""`oldgrowth predict`: predictions in files of each format."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import oldgrowth
from cli_files import FEATURES, as_json, done, failed, frame, model_and_rows, write, write_forests
from oldgrowth.cli import sources
from oldgrowth.cli.main import run


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_forests(tmp_path_factory.mktemp("forests"))


def read(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


@pytest.mark.parametrize("target", ["label", "number", "wet", "value"])
@pytest.mark.parametrize("source", ["test.parquet", "test.csv", "bare.parquet"])
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_predictions_in_columns(target: str, source: str, suffix: str, here: Path, tmp_path: Path) -> None:
    out = tmp_path / f"out{suffix}"
    done(
        "predict",
        here / f"{target}.og",
        here / source,
        "-o",
        out,
        "--keep",
        "name",
        "--batch-rows",
        100,
        "-q",
    )
    model, rows = model_and_rows(here, target)
    result = read(out)
    assert result.columns.tolist() == ["name", "prediction"]
    assert result["name"].tolist() == rows["name"].tolist(), "in the order of the rows"
    expected = model.predict(rows[FEATURES])
    if target == "value":
        np.testing.assert_allclose(result["prediction"], expected, rtol=1e-6)
    else:
        assert result["prediction"].tolist() == expected.tolist()
    assert [path.name for path in tmp_path.iterdir()] == [out.name], "nothing temporary is left"


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_probabilities_have_columns_of_their_own(suffix: str, here: Path, tmp_path: Path) -> None:
    out = tmp_path / f"out{suffix}"
    done("predict", here / "label.og", here / "test.parquet", "-o", out, "--proba", "-q", "--batch-rows", 300)
    model, rows = model_and_rows(here, "label")
    result = read(out)
    names = ["probability_grass", "probability_water", "probability_wood"]
    assert result.columns.tolist() == ["prediction", *names]
    np.testing.assert_allclose(result[names], model.predict_proba(rows[FEATURES]), rtol=1e-12)


@pytest.mark.parametrize("target", ["label", "number", "wet", "value"])
@pytest.mark.parametrize("source", ["test.parquet", "test.csv"])
def test_predictions_in_an_array(target: str, source: str, here: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.npy"
    done("predict", here / f"{target}.og", here / source, "-o", out, "--batch-rows", 64, "-q")
    model, rows = model_and_rows(here, target)
    result, expected = np.load(out), model.predict(rows[FEATURES])
    assert result.dtype == ("<U5" if target == "label" else expected.dtype) and result.shape == (701,)
    np.testing.assert_allclose(result, expected) if target == "value" else np.testing.assert_array_equal(
        result, expected
    )


def test_probabilities_in_an_array(here: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.npy"
    done("predict", here / "number.og", here / "test.parquet", "-o", out, "--proba", "-q", "-j", 1)
    model, rows = model_and_rows(here, "number")
    np.testing.assert_array_equal(np.load(out), model.predict_proba(rows[FEATURES]))


@pytest.mark.parametrize("source", ["test.parquet", "test.csv"])
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_ids_come_through_whole(source: str, suffix: str, here: Path, tmp_path: Path) -> None:
    out = tmp_path / f"out{suffix}"
    done("predict", here / "label.og", here / source, "-o", out, "--keep", "id,name", "--keep", "a", "-q")
    result = read(out)
    assert [int(i) for i in result["id"]] == (2**60 + np.arange(701)).tolist()
    np.testing.assert_allclose(result["a"], frame(701, seed=1)["a"], rtol=1e-6)
    if source.endswith(suffix) and suffix == ".parquet":
        assert pq.read_schema(out).field("id").type == "int64"


def test_arrays_without_names(tmp_path: Path) -> None:
    rows = frame()
    x, y = rows[FEATURES].to_numpy(), rows["number"].to_numpy()
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "both.npy", np.column_stack([x, y]))
    base = ["--trees", 4, "--seed", 0, "-q"]
    done(
        "fit",
        tmp_path / "both.npy",
        "--target",
        -1,
        "--task",
        "classification",
        "-o",
        tmp_path / "f.og",
        *base,
    )
    done("predict", tmp_path / "f.og", tmp_path / "x.npy", "-o", tmp_path / "out.npy", "-q")
    model = oldgrowth.RandomForestClassifier(4, random_state=0).fit(x, y)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), model.predict(x))


def test_json_counts_the_classes(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = as_json(capsys, "predict", here / "label.og", here / "test.csv", "-o", tmp_path / "out.csv")
    model, rows = model_and_rows(here, "label")
    counts = pd.Series(model.predict(rows[FEATURES])).value_counts().to_dict()
    assert result["rows"] == 701 and result["predicted"] == counts
    assert result["columns"] == ["prediction"] and result["seconds"] > 0


def test_progress_is_shown_unless_quiet(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["predict", str(here / "label.og"), str(here / "test.csv"), "-o", str(tmp_path / "out.csv")]
    assert run(command) == 0
    out, err = capsys.readouterr()
    assert err.startswith("oldgrowth: predict: 701 rows in ") and "701 rows predicted" in out
    assert run([*command, "--quiet", "--force"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["label.og", "none.parquet", "-o", "out.csv"], 1, "none.parquet"),
        (["none.og", "test.parquet", "-o", "out.csv"], 2, "does not exist"),
        (["test.csv", "test.parquet", "-o", "out.csv"], 1, "is not a forest"),
        (["label.og", "test.parquet", "-o", "out.txt"], 2, "must end in .parquet, .csv, .npy, .tif or .tiff"),
        (["label.og", "test.parquet", "-o", "test.csv"], 2, "exists: --force replaces it"),
        (["label.og", "test.parquet"], 2, "Missing option '--output'"),
        (
            ["label.og", "test.parquet", "-o", "out.npy", "--keep", "id"],
            2,
            "--keep needs an output with columns",
        ),
        (["label.og", "test.parquet", "-o", "out.csv", "--keep", "idd"], 1, "has no column 'idd'"),
        (["label.og", "test.parquet", "-o", "out.csv", "--keep", "id,id"], 2, "two columns of that name"),
        (["value.og", "test.parquet", "-o", "out.csv", "--proba"], 2, "needs a classifier"),
        (["label.og", "test.parquet", "-o", "out.csv", "--features", "a,b"], 1, "trained on 6"),
        (["label.og", "test.parquet", "-o", "out.csv", "-j", "0"], 1, "--jobs must be"),
        (
            ["label.og", "test.parquet", "-o", "out.csv", "--memory-limit", "10MB"],
            1,
            "--memory-limit of 10 MB is too low: at least",
        ),
        (["label.og", "cut.parquet", "-o", "out.csv"], 1, "cut.parquet"),
        (["label.og", "few.csv", "-o", "out.csv"], 1, "has no columns 'c'"),
    ],
)
def test_errors_are_one_sentence(
    arguments: list[str],
    code: int,
    words: str,
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(here)
    Path("cut.parquet").write_bytes(Path("test.parquet").read_bytes()[:-500])
    Path("few.csv").write_text("a,b\n1,2\n")
    before = sorted(here.iterdir())
    err = failed(capsys, code, "predict", "--quiet", *arguments)
    assert words in " ".join(err.split())
    assert len(err.splitlines()) == (1 if code == 1 else 4)
    assert sorted(here.iterdir()) == before


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".npy"])
@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (RuntimeError("broken"), 1)])
def test_what_fails_on_the_way_leaves_the_old_file(  # noqa: PLR0913 - fixtures
    suffix: str,
    error: BaseException,
    code: int,
    here: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    predict_means, calls = sources.predict_means, []

    def fail_late(forest: Any, hard: bool, x: Any, *more: Any) -> Any:
        calls.append(len(x))
        if len(calls) == 3:
            raise error
        return predict_means(forest, hard, x, *more)

    monkeypatch.setattr(sources, "predict_means", fail_late)
    out = tmp_path / f"out{suffix}"
    out.write_bytes(b"something old")
    arguments = [
        "predict",
        here / "label.og",
        here / "test.csv",
        "-o",
        out,
        "--force",
        "--batch-rows",
        100,
        "-q",
    ]
    assert run([str(a) for a in arguments]) == code
    assert calls == [100, 100, 100]
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    assert out.read_bytes() == b"something old"
    assert len(capfd.readouterr().err.strip().splitlines()) == 1, "nothing is said by what was left open"


@pytest.mark.skipif(os.name == "nt", reason="POSIX limits")
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".npy"])
def test_a_full_disk_is_reported_once(suffix: str, here: Path, tmp_path: Path) -> None:
    out = tmp_path / f"out{suffix}"
    script = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); "
        "from oldgrowth.cli.entry import main; main()"
    )
    arguments = ["predict", here / "value.og", here / "test.csv", "-o", out, "--keep", "id", "-q"]
    arguments = [*arguments[:-3], "-q"] if suffix == ".npy" else arguments
    result = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments), "--batch-rows", "50"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert result.returncode == 1
    assert result.stderr == (
        f"oldgrowth: {out} could not be written: File too large. An existing file is unchanged.\n"
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".npy"])
def test_a_truncated_source_is_the_only_error(suffix: str, here: Path, tmp_path: Path) -> None:
    """In a separate process, which frees everything at exit."""
    header, *rows = (here / "test.csv").read_text().splitlines()
    # Long enough that something is written before the end is read.
    (tmp_path / "broken.csv").write_text("\n".join([header, *rows * 120, "no number" + rows[0]]))
    arguments = [here / "label.og", tmp_path / "broken.csv", "-o", tmp_path / f"out{suffix}", "-q"]
    command = [sys.executable, "-m", "oldgrowth", "predict", *map(str, arguments), "--batch-rows", "1000"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 1
    assert result.stderr.startswith("oldgrowth: ") and "broken.csv" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["broken.csv"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_interrupt_of_a_running_predict(here: Path, tmp_path: Path) -> None:
    write(pd.concat([frame(5000)] * 20), tmp_path / "long.csv")
    script = "from oldgrowth.cli.entry import main; print('ready', flush=True); main()"
    arguments = [
        here / "label.og",
        tmp_path / "long.csv",
        "-o",
        tmp_path / "out.parquet",
        "--batch-rows",
        "1",
    ]
    command = [sys.executable, "-c", script, "predict", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for _ in range(200):  # until it writes
        if any(path.suffix == ".part" for path in tmp_path.iterdir()):
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err.endswith("oldgrowth: interrupted.\n") and "Traceback" not in err and "ignored" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["long.csv"]
