"""The command line in scripts: standard input and output, quiet mode, and a fast start."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import oldgrowth
from cli_files import FEATURES, done, failed, frame, write, write_forests


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_forests(tmp_path_factory.mktemp("streams"))


def piped(here: Path, source: str, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    temporary = here / "temporary"
    temporary.mkdir(exist_ok=True)
    result = subprocess.run(
        [sys.executable, "-m", "oldgrowth", *map(str, arguments)],
        input=(here / source).read_bytes(),
        capture_output=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    assert not list(temporary.iterdir()), "nothing is left of what was read"
    return result


@pytest.mark.parametrize("source", ["test.csv", "test.parquet"])
def test_standard_input_and_output(here: Path, source: str) -> None:
    result = piped(here, source, "predict", here / "label.og", "-", "-o", "-", "--keep", "id", "--proba")
    assert result.returncode == 0, result.stderr
    shown = pd.read_csv(io.BytesIO(result.stdout))
    rows = frame(701, seed=1)
    assert (shown["prediction"] == oldgrowth.load(here / "label.og").predict(rows[FEATURES])).all()
    assert shown["id"].tolist() == rows["id"].tolist() and shown.shape == (701, 5)
    assert b"701 rows predicted" in result.stderr and b"standard output" in result.stderr


def test_a_forest_is_fitted_on_standard_input(here: Path, tmp_path: Path) -> None:
    drop = "number,wet,value,id,name,weight"
    options = [
        "--target",
        "label",
        "--drop",
        drop,
        "-o",
        tmp_path / "f.og",
        "--trees",
        "3",
        "--seed",
        "0",
        "-q",
    ]
    result = piped(here, "test.csv", "fit", "-", *options)
    assert result.returncode == 0 and not result.stdout + result.stderr
    direct = tmp_path / "direct.og"
    done("fit", here / "test.csv", *(direct if o == tmp_path / "f.og" else o for o in options))
    assert oldgrowth.load(tmp_path / "f.og").forest_.digest() == oldgrowth.load(direct).forest_.digest()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "-", "--target", "label", "-o", "-"], b"cannot be written to standard output"),
        (
            ["fit", "-", "--target", "label", "-o", "f.og", "--checkpoint-dir", "c"],
            b"used with standard input",
        ),
        (["predict", "label.og", "-", "-o", "-", "--json"], b"--json cannot be used with -o -"),
        (["predict", "label.og", "-", "test.csv", "-o", "-"], b"cannot be combined with other sources"),
    ],
)
def test_unsupported_uses_of_streams_are_refused(here: Path, arguments: list[str], words: bytes) -> None:
    result = piped(
        here, "test.csv", *(here / a if a.endswith(("label.og", ".csv")) else a for a in arguments)
    )
    assert result.returncode == 2 and words in result.stderr and not result.stdout


def test_empty_input_is_refused(here: Path) -> None:
    (here / "empty").write_bytes(b"")
    result = piped(here, "empty", "predict", here / "label.og", "-", "-o", "-")
    assert result.returncode == 1
    assert result.stderr == b"oldgrowth: Standard input contains no data: it is empty.\n"


def test_errors_name_standard_input_and_not_where_it_is_kept(here: Path, tmp_path: Path) -> None:
    output = ["-o", tmp_path / "f.og", "-q"]
    for source in ("test.csv", "test.parquet"):
        result = piped(here, source, "fit", "-", "--target", "nothing", *output)
        assert result.returncode == 1
        assert result.stderr.startswith(b"oldgrowth: standard input has no column 'nothing'")
    (here / "bad.csv").write_text("a,y\n1,0\nred,1\n")
    assert (
        b"standard input, line 3, column a"
        in piped(here, "bad.csv", "fit", "-", "--target", "y", *output).stderr
    )


def test_an_array_on_standard_input(here: Path, tmp_path: Path) -> None:
    np.save(here / "rows.npy", np.c_[np.eye(30), np.arange(30) % 2])
    for more in ([], ["--format", "npy"]):
        fit = [
            "fit",
            "-",
            "--target",
            "30",
            "--task",
            "classification",
            "--trees",
            "1",
            "-q",
            "--force",
            *more,
        ]
        result = piped(here, "rows.npy", *fit, "-o", tmp_path / "f.og")
        assert result.returncode == 0, result.stderr


def test_nobody_reads_the_output(here: Path) -> None:
    command = f"{sys.executable} -m oldgrowth predict {here}/label.og {here}/test.csv -o - -q --batch-rows 9"
    result = subprocess.run(f"{command} | head -n 1", shell=True, capture_output=True)
    assert result.stdout.count(b"\n") == 1 and not result.stderr


def test_quiet_is_quiet(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(frame()[[*FEATURES, "label"]], tmp_path / "t.parquet")
    capsys.readouterr()
    done("fit", source, "--target", "label", "-o", tmp_path / "f.og", "--trees", "2", "-q")
    done("predict", tmp_path / "f.og", source, "-o", tmp_path / "p.csv", "-q")
    assert capsys.readouterr() == ("", "")
    done("evaluate", tmp_path / "f.og", source, "--target", "label", "-q")
    out, err = capsys.readouterr()
    assert out.startswith("Accuracy ") and out.count("\n") == 1 and not err, "what was asked for"
    assert "does not exist" in failed(capsys, 2, "predict", tmp_path / "no.og", source, "-o", "-", "-q")


def loaded(code: str) -> set[str]:
    """The packages that a separate process has imported."""
    names = (
        *("numpy", "sklearn", "scipy", "pyarrow", "pandas", "rich", "joblib", "matplotlib"),
        *("rasterio", "pyogrio", "shapely"),
    )
    script = f"import sys\n{code}\nprint(*(n for n in {names!r} if n in sys.modules))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(result.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("command", ["", "fit", "predict", "evaluate", "sample"])
def test_help_imports_next_to_nothing(command: str) -> None:
    arguments = [*command.split(), "--help"]
    assert not loaded(f"from oldgrowth.cli.main import run; run({arguments!r})") - {"numpy"}


def test_the_package_and_its_version_import_next_to_nothing() -> None:
    assert not loaded("from oldgrowth.cli.main import run; run(['--version'])") - {"numpy"}
    assert not loaded("import oldgrowth; oldgrowth.__all__; dir(oldgrowth)")


def test_prediction_does_without_scikit_learn(here: Path, tmp_path: Path) -> None:
    commands = [
        ["predict", f"{here}/{forest}.og", f"{here}/bare.parquet", "-o", f"{tmp_path}/{forest}.csv"]
        for forest in ("label", "wet", "number", "value")
    ]
    used = loaded(f"from oldgrowth.cli.main import run\nfor one in {commands!r}: assert run(one) == 0")
    assert "pyarrow" in used and not used & {"sklearn", "scipy", "rasterio", "pyogrio", "shapely"}


def test_public_names_are_there() -> None:
    for name in oldgrowth.__all__:
        assert getattr(oldgrowth, name) is not None and name in dir(oldgrowth)
    assert oldgrowth.plot.importances and oldgrowth.errors.OldgrowthError is oldgrowth.OldgrowthError
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = oldgrowth.nonsense
