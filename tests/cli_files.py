"""Small files and a runner for the tests of the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import oldgrowth
from oldgrowth.cli.main import run

FEATURES = list("abcdef")


def frame(n: int = 1200, seed: int = 0) -> pd.DataFrame:
    """Six features, targets of each kind, ids that a float64 would round, a weight, and a column of text."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 6)).astype(np.float32)
    x[rng.random((n, 6)) < 0.02] = np.nan
    signal = np.nan_to_num(x[:, 0]) + np.nan_to_num(x[:, 1])
    rows = pd.DataFrame(x, columns=FEATURES)
    rows["label"] = np.where(signal > 0.5, "wood", np.where(signal < -0.5, "water", "grass"))
    rows["number"] = np.digitize(signal, [-0.5, 0.5]) * 10
    rows["wet"] = signal < 0
    rows["value"] = signal + 0.1 * rng.normal(size=n)
    rows["id"] = 2**60 + np.arange(n)
    rows["name"] = [f"row {i}, the one" for i in range(n)]
    rows["weight"] = rng.integers(1, 4, size=n)
    return rows


def write(rows: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".parquet":
        rows.to_parquet(path, index=False, row_group_size=250)
    else:
        rows.to_csv(path, index=False)
    return path


def done(*arguments: object) -> None:
    assert run([str(a) for a in arguments]) == 0


def failed(capsys: pytest.CaptureFixture[str], code: int, *arguments: object) -> str:
    """What a command that must fail says on standard error; nothing may be on standard output."""
    capsys.readouterr()
    assert run([str(a) for a in arguments]) == code
    out, err = capsys.readouterr()
    assert "Traceback" not in err and not out
    return err


def as_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    """What a command says with --json, which must be all of its standard output."""
    capsys.readouterr()
    done(*arguments, "--json")
    return json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def write_forests(place: Path) -> Path:
    """Forests for targets of each kind, and rows to test them on."""
    rows = frame()
    for target, cls in (
        ("label", oldgrowth.RandomForestClassifier),
        ("number", oldgrowth.ExtraTreesClassifier),
        ("wet", oldgrowth.RandomForestClassifier),
        ("value", oldgrowth.RandomForestRegressor),
    ):
        cls(8, random_state=0).fit(rows[FEATURES], rows[target].to_numpy()).save(place / f"{target}.og")
    test = frame(701, seed=1)
    write(test, place / "test.parquet")
    write(test, place / "test.csv")
    # Other columns around the features, which are in another order.
    write(test[["name", *FEATURES[::-1]]], place / "bare.parquet")
    return place


def model_and_rows(here: Path, target: str) -> tuple[Any, pd.DataFrame]:
    return oldgrowth.load(here / f"{target}.og"), frame(701, seed=1)
