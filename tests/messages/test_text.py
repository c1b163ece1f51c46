"""Text for users: names from files have no control characters, and all terminals can show them."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import oldgrowth
from cli_files import done, failed
from oldgrowth.errors import MissingColumnError
from oldgrowth.messages.text import counted, human_bytes, printable

EVIL = "a\x1b[31mred\x07\x9b\u202e"


def test_control_characters_are_spelled_out() -> None:
    assert printable("a\x1b[2J\r\nb\u202e\x9b é") == r"a\x1b[2J\r\nb\u202e\x9b é"
    assert printable("a\nb\x00", keep="\n") == "a\nb\\x00"
    assert counted(1, "row") == "1 row" and counted(0, "row") == "0 rows"
    assert counted(2000, "class", "classes") == "2,000 classes"


def test_errors_and_datasets_show_no_control_characters() -> None:
    error = MissingColumnError("x", EVIL, [EVIL])
    data = oldgrowth.open_dataset(pd.DataFrame({EVIL: [1.0], "y": [0]}), target="y")
    for shown in (str(error), repr(data)):
        assert "\x1b" not in shown and "\u202e" not in shown and "red" in shown


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """Names of features, labels and a target with escape sequences for the terminal."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(200, 2)), columns=[EVIL, "größe"])
    rows["ta\x1b[0mrget"] = np.where(rows[EVIL] > 0, "la\x1b[1mbel", "Ärger\x07")
    rows.to_parquet(tmp_path / "evil.parquet")
    return tmp_path


def test_no_command_hands_escape_sequences_on(evil: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = "ta\x1b[0mrget"
    source, forest = evil / "evil.parquet", evil / "f.og"
    done("fit", source, "--target", target, "-o", forest, "--trees", "2")
    done("evaluate", forest, source, "--target", target)
    done("inspect", forest)
    done("predict", forest, source, "-o", evil / "p.csv")
    out, err = capsys.readouterr()
    assert r"la\x1b[1mbel" in out and r"a\x1b[31mred" in out
    err += failed(capsys, 1, "evaluate", forest, source, "--target", "no\x1b[0mne")
    err += failed(capsys, 2, "fit", source, "--target", "y", "-o", evil / "x\x1b[0m" / "f.og")
    assert "\x1b" not in out + err and "\x07" not in out + err and r"no\x1b[0mne" in err


@pytest.mark.parametrize("command", ["inspect", "evaluate"])
def test_a_terminal_without_utf8(evil: Path, command: str) -> None:
    target = "ta\x1b[0mrget"
    rows = pd.read_parquet(evil / "evil.parquet")
    model = oldgrowth.RandomForestClassifier(2, random_state=0).fit(rows.iloc[:, :2], rows[target])
    model.save(evil / "f.og")
    more = [str(evil / "evil.parquet"), "--target", target] if command == "evaluate" else []
    result = subprocess.run(
        [sys.executable, "-m", "oldgrowth", command, str(evil / "f.og"), *more],
        env=os.environ | {"PYTHONIOENCODING": "ascii", "LANG": "C"}, capture_output=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert b"\\xc4rger" in result.stdout and result.stdout.isascii()


def test_names_are_drawn_without_control_characters() -> None:
    import oldgrowth.plot as plot

    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=[EVIL, r"$\nosuch$"])
    model = oldgrowth.RandomForestClassifier(2).fit(rows, np.where(rows[EVIL] > 0, "$x$\x1b", "b"))
    drawn = [plot.importances(model), plot.confusion(model, rows, np.where(rows[EVIL] > 0, "$x$\x1b", "b"))]
    for ax in drawn:
        ax.figure.canvas.draw()
        assert not any("\x1b" in label.get_text() for label in ax.get_yticklabels())


def test_one_row_is_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = pd.DataFrame({"a": [1.0, 2.0], "y": ["u", "v"]})
    rows.to_csv(tmp_path / "two.csv", index=False)
    rows.head(1).to_csv(tmp_path / "one.csv", index=False)
    done("fit", tmp_path / "two.csv", "--target", "y", "-o", tmp_path / "f.og", "--trees", "1")
    done("predict", tmp_path / "f.og", tmp_path / "one.csv", "-o", tmp_path / "p.csv")
    done("evaluate", tmp_path / "f.og", tmp_path / "one.csv", "--target", "y")
    out, err = capsys.readouterr()
    assert "predict: 1 row in" in err and "1 row predicted" in out and "1 row in" in out
    for wrong in ("1 rows", "1 trees", "1 features"):
        assert wrong not in out + err


def test_warnings_show_no_control_characters() -> None:
    rows = pd.DataFrame({"x\x1b_id": np.arange(100), "b": np.random.default_rng(0).normal(size=100)})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        oldgrowth.RandomForestRegressor(1).fit(rows, rows["b"])
    assert [r"x\x1b_id" in str(warning.message) for warning in caught] == [True]


def test_bytes_have_three_digits_and_a_unit() -> None:
    sizes = (7, 1500, 2.5e6, 999.4e6, 999.6e6, 3e9, 4e12)
    assert [human_bytes(n) for n in sizes] == ["7 B", "1.5 kB", "2.5 MB", "999 MB", "1 GB", "3 GB", "4 TB"]
