"""Runs every trial of the tables in this directory, each in an empty folder."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import pickle
import tempfile
import warnings
from pathlib import Path

import pytest
from trial import Command, Trial

from oldgrowth.cli.main import run
from oldgrowth.errors import OldgrowthError

HERE = Path(__file__).parent
TABLES = sorted(path.stem for path in HERE.glob("*_trials.py") if path.name != Path(__file__).name)
TRIALS = [(table, trial) for table in TABLES for trial in importlib.import_module(table).TRIALS]
FEWEST = 300


def test_there_are_enough_of_them_and_each_has_a_name_of_its_own() -> None:
    names = [(table, trial.name) for table, trial in TRIALS]
    assert len(set(names)) == len(names) >= FEWEST


@pytest.mark.parametrize("trial", [pytest.param(trial, id=f"{t}-{trial.name}") for t, trial in TRIALS])
def test_trial(trial: Trial | Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, scratch = tmp_path / "folder", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    if trial.make is not None:
        trial.make()
    before = everything(folder)
    left = run_command(trial) if isinstance(trial, Command) else run_trial(trial)
    assert not everything(scratch)
    if left is not None:
        assert everything(folder) == sorted({*before, *left})


def everything(folder: Path) -> list[str]:
    return sorted(
        os.path.relpath(os.path.join(root, name), folder)
        for root, folders, names in os.walk(folder)
        for name in [*folders, *names]
    )


def run_trial(trial: Trial) -> list[str] | None:
    """Runs a trial; returns the files that it may leave, none if it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if trial.error is None:
            result = trial.call()
            assert trial.result is None or result == trial.result
            return None
        with pytest.raises(trial.error) as caught:
            trial.call()
    check_words(caught.value, trial.words)
    return []


def check_words(error: OldgrowthError, words: object) -> None:
    said = str(error)
    for word in words:  # type: ignore[attr-defined]
        assert word in said, said
    assert said.endswith((".", "?")) and "Traceback" not in said and "object at 0x" not in said
    assert len(said) < 1500 and "\0" not in said
    for spelling in ("features=[", "missing=[", "types={"):
        assert spelling not in error.on_command_line
    assert str(pickle.loads(pickle.dumps(error))) == said


def run_command(trial: Command) -> list[str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([*trial.arguments])
    said = " ".join((err if trial.code else out).getvalue().split()).replace("│ ", "")
    assert code == trial.code, (out.getvalue(), err.getvalue())
    for word in trial.words:
        assert word in said + " ".join(err.getvalue().split()), said
    assert "Traceback" not in err.getvalue()
    for spelling in ("features=[", "missing=[", "types={", "open_dataset(", " dict", "None", "True", "False"):
        assert spelling not in said or (spelling[0] in "NTF" and not trial.code)
    return list(trial.leaves)
