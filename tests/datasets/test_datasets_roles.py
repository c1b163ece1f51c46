"""Columns and their roles: contradictions and missing columns are refused, never ignored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from oldgrowth import RandomForestClassifier, open_dataset
from oldgrowth.cli.main import run
from oldgrowth.datasets.columns import AllBut
from oldgrowth.errors import (
    DuplicateColumnError,
    MissingColumnError,
    NamelessColumnsError,
    ParameterError,
    SameRoleError,
    TooManyFeaturesError,
)

MATRIX = np.arange(12.0).reshape(4, 3)
TABLE = pa.table({"a": [1.0, 2.0, 3.0], "b": [2.0, 1.0, 0.0], "y": [0, 1, 0]})
MANY = 20_000


def as_csv(folder: Path, text: str = "a,b,y\n1,2,0\n-9,1,1\n9,-9,0\n") -> Path:
    path = folder / "a.csv"
    path.write_text(text)
    return path


def as_npz(folder: Path) -> Path:
    np.savez(folder / "a.npz", X=MATRIX[:, :1], y=np.arange(4))
    return folder / "a.npz"


def as_hdf5(folder: Path) -> Path:
    with h5py.File(folder / "a.h5", "w") as file:
        for name in TABLE.column_names:
            file[name] = TABLE[name].to_numpy()
    return folder / "a.h5"


def test_a_text_of_missing_values_is_not_split(tmp_path):
    path = as_csv(tmp_path)
    for missing in ("-9", ["-9"]):
        (batch,) = open_dataset(path, target="y", missing=missing).batches(10)
        np.testing.assert_array_equal(np.isnan(batch.x), [[False, False], [True, False], [False, True]])


@pytest.mark.parametrize("missing", [-9, [-9], b"-9", ["?", None]])
def test_missing_values_are_given_as_text(tmp_path, missing):
    with pytest.raises(ParameterError, match="missing must be a string such as '-9', or a list"):
        open_dataset(as_csv(tmp_path), target="y", missing=missing)


def test_types_of_columns_that_are_not_there(tmp_path):
    with pytest.raises(MissingColumnError, match="no column 'typo'"):
        open_dataset(as_csv(tmp_path), target="y", types={"typo": "string"})


def same(error: type[Exception], words: str, source: Any, *args: Any, **options: Any) -> Any:
    return pytest.param(error, words, source, args, options)


@pytest.mark.parametrize(
    ("error", "words", "source", "args", "options"),
    [
        same(ParameterError, "distinct column numbers", MATRIX, None, [0, 0]),
        same(ParameterError, "distinct column numbers", MATRIX, None, [0, -3]),
        same(ParameterError, "without target and weight", MATRIX, 0, [0, 1]),
        same(ParameterError, "without target and weight", MATRIX, None, [0, 1], weight=-3),
        same(SameRoleError, "both target and weight", MATRIX, 2, None, -1),
        same(SameRoleError, "is X, and also target", MATRIX, MATRIX),
        same(DuplicateColumnError, "'a' .* is named twice", MATRIX, None, ["a", "b", "a"]),
        same(SameRoleError, "both target and weight", TABLE, "y", None, "y"),
        same(SameRoleError, "is a feature, and also target", TABLE, "y", ["a", "y"]),
        same(DuplicateColumnError, "'a' .* is named twice", TABLE, "y", ["a", "a"]),
        same(MissingColumnError, "no column 'z'", TABLE, "y", AllBut(["z"])),
        same(NamelessColumnsError, "exclude column 'z'", MATRIX, None, AllBut(["z"])),
        same(MissingColumnError, "no column '3'", MATRIX, None, AllBut(["3"])),
        same(
            DuplicateColumnError,
            "'a' .* is named twice",
            lambda: iter([MATRIX]),
            features=["a", "b", "a"],
        ),
    ],
)
def test_roles_that_contradict_each_other(error, words, source, args, options):
    with pytest.raises(error, match=words):
        open_dataset(source, *args, **options)


def test_the_same_array_for_target_and_weight():
    y = np.arange(4)
    with pytest.raises(SameRoleError, match="both target and weight"):
        open_dataset(MATRIX, y, None, y)


def test_the_same_member_of_a_file_in_two_roles(tmp_path):
    with pytest.raises(SameRoleError, match="both target and weight"):
        open_dataset(as_npz(tmp_path), weight="y")
    with pytest.raises(SameRoleError, match="is X, and also target"):
        open_dataset(as_npz(tmp_path), target="X")


def test_left_out_columns_of_every_kind_of_file(tmp_path):
    table = open_dataset(as_hdf5(tmp_path), "y", AllBut(["b"]))
    assert table.feature_names == ("a",)
    matrix = open_dataset(MATRIX, 2, AllBut(["0"]))
    (batch,) = matrix.batches(4)
    np.testing.assert_array_equal(batch.x, MATRIX[:, 1:2])


def test_a_column_that_is_left_out_may_hold_anything(tmp_path):
    path = as_csv(tmp_path, "id,b,y\n1,2,0\nx,1,1\n")
    assert open_dataset(path, "y", AllBut(["id"])).feature_names == ("b",)


def test_names_for_select_and_carry():
    data = open_dataset(TABLE, "y")
    with pytest.raises(ParameterError, match="features must be a list"):
        data.select("ab")
    with pytest.raises(ParameterError, match="carry must be a list"):
        data.batches(2, carry="ab")
    named = open_dataset(MATRIX, features=["a", "b", "c"])
    with pytest.raises(DuplicateColumnError, match="named twice"):
        named.select(["a", "a"])


def test_one_column_as_target_and_weight_on_the_command_line(tmp_path, capsys):
    path = as_csv(tmp_path)
    assert run(["fit", str(path), "--target", "y", "--weight", "y", "-o", str(tmp_path / "f.og")]) == 1
    assert "both target and weight" in capsys.readouterr().err


def many_columns() -> pa.Table:
    names = [f"c{i}" for i in range(MANY)]
    return pa.table([pa.array([0.0, 1.0], pa.float32())] * MANY, names=names).append_column(
        "y", pa.array(["no", "yes"])
    )


def wide_pandas(folder: Path) -> pd.DataFrame:
    numbers = pd.DataFrame(np.zeros((2, MANY), np.float32), columns=[f"c{i}" for i in range(MANY)])
    return pd.concat([numbers, pd.DataFrame({"y": ["no", "yes"]})], axis=1)


def wide_file(name: str, write: Any) -> Any:
    def make(folder: Path) -> Path:
        write(many_columns(), folder / name)
        return folder / name

    return make


@pytest.mark.slow
# Each took minutes when names were looked for in lists.
@pytest.mark.parametrize(
    "make",
    [
        wide_file("a.parquet", pq.write_table),
        wide_file("a.feather", pyarrow.feather.write_feather),
        wide_file("a.csv", pyarrow.csv.write_csv),
        lambda folder: many_columns(),
        lambda folder: pl.from_arrow(many_columns()),
        wide_pandas,
    ],
    ids=["parquet", "arrow", "csv", "table", "polars", "pandas"],
)
def test_time_is_linear_in_columns(tmp_path, make):
    source = make(tmp_path)
    data = open_dataset(source, "y")
    assert data.n_features == MANY
    backwards = list(data.feature_names)[::-1]
    chosen = open_dataset(source, "y", backwards)
    (batch,) = chosen.select(backwards).batches(4)
    assert batch.x.shape == (2, MANY)
    chosen.fingerprint()


def test_more_features_than_a_forest_can_have_are_refused():
    wide = open_dataset(np.zeros((4, 100_000), np.uint8), np.arange(4) % 2)
    with pytest.raises(TooManyFeaturesError, match=r"100,000 features, but .* at most 65,536"):
        RandomForestClassifier(2).fit(wide)
