"""Columns of dates, text that comes late, and the ways to name categories: refusals tell what works."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import oldgrowth
from oldgrowth import OldgrowthError, RandomForestClassifier, open_dataset
from oldgrowth.errors import LateTextError
from oldgrowth.messages.warnings import DateTextWarning

N = 80
Y = np.arange(N) % 2
NOON, DAY, HOUR, START = dt.time(12), dt.date(1970, 1, 3), dt.timedelta(hours=6), dt.datetime(1970, 1, 2, 12)


def pandas_times() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "date": pd.Series([DAY] * N, dtype=object),
            "stamp": [pd.Timestamp(START)] * N,
            "zone": [pd.Timestamp(START, tz="UTC")] * N,
            "span": [pd.Timedelta(HOUR)] * N,
            "period": [pd.Period(DAY, "D")] * N,
            "clock": pd.Series([NOON] * N, dtype=object),
            "level": pd.Categorical([pd.Timestamp(START)] * N),
            "arrow": pd.Series([DAY] * N, dtype=pd.ArrowDtype(pa.date32())),
        }
    )


PANDAS_DAYS = [2, 1.5, 1.5, 0.25, 2, 0.5, 1.5, 2]


def arrow_times() -> pa.Table:
    columns = {"date": DAY, "stamp": START, "clock": NOON, "span": HOUR}
    return pa.table({name: [value] * N for name, value in columns.items()})


def polars_times() -> Any:
    return pytest.importorskip("polars").from_arrow(arrow_times())


def objects() -> np.ndarray:
    return np.array([[DAY, START, HOUR]] * N, dtype=object)


def made_by(message: str, X: Any) -> Any:
    """What the lines of an error make of X."""
    space = {"X": X, "pd": pd, "np": np, "pl": pytest.importorskip("polars")}
    lines = re.findall(r"`(.+?)`", message)
    assert lines, message
    for line in lines:
        exec(line, space)
    return space["X"]


@pytest.mark.parametrize(
    ("make", "days"),
    [
        (pandas_times, PANDAS_DAYS),
        (arrow_times, [2, 1.5, 0.5, 0.25]),
        (polars_times, [2, 1.5, 0.5, 0.25]),
        (objects, [2, 1.5, 0.25]),
        (lambda: objects().tolist(), [2, 1.5, 0.25]),
        (lambda: np.full((N, 2), "1970-01-03", "M8[D]"), [2, 2]),
        (lambda: np.full((N, 2), 6, "m8[h]"), [0.25, 0.25]),
    ],
    ids=["pandas", "Arrow", "polars", "objects", "lists", "dates", "spans"],
)
def test_the_line_that_makes_numbers_of_times(make: Any, days: list[float]) -> None:
    X = make()
    with pytest.raises(OldgrowthError) as refused:
        RandomForestClassifier(1).fit(X, Y)
    made = made_by(str(refused.value), X)
    np.testing.assert_allclose(np.asarray(made, dtype=float)[0], days)
    RandomForestClassifier(1).fit(made, Y)


@pytest.mark.parametrize("make", [pandas_times, arrow_times, polars_times], ids=["pandas", "Arrow", "polars"])
def test_datasets_tell_the_same_line(make: Any) -> None:
    X = make()
    with pytest.raises(OldgrowthError) as refused:
        open_dataset(X)
    np.asarray(made_by(str(refused.value), X), dtype=float)


def test_files_tell_a_line_for_all_columns(tmp_path: Path) -> None:
    path = tmp_path / "arrays_of_pandas.parquet"  # names of files are no names of libraries
    pq.write_table(arrow_times(), path)
    with pytest.raises(OldgrowthError) as refused:
        open_dataset(path)
    made = made_by(str(refused.value), None).collect()
    np.testing.assert_allclose(made.to_numpy()[0], [2, 1.5, 0.5, 0.25])


def test_values_are_no_types() -> None:
    with pytest.raises(OldgrowthError) as refused:
        RandomForestClassifier(1).fit(pd.DataFrame({"a": [["date"]] * N}), Y)
    assert "`" not in str(refused.value)


@pytest.mark.parametrize("first", [None, 1.0])
@pytest.mark.parametrize("text", ["b", "1"])
def test_text_that_comes_after_the_first_batch(first: Any, text: str) -> None:
    def batches() -> Iterator[Any]:
        yield np.array([[first, 1.0]] * N, dtype=object), Y
        yield np.array([[text, 1.0]] * N, dtype=object), Y

    with pytest.raises(LateTextError, match=r"Column 0 of batch 1.*categorical_features=\[0\]"):
        RandomForestClassifier(1).fit(open_dataset(batches))
    if first is None:
        named = RandomForestClassifier(1, categorical_features=[0]).fit(open_dataset(batches))
        assert named.levels_ == {0: [text]}


FRAME = pd.DataFrame({"t": ["a", "b"] * (N // 2), "n": np.arange(N) % 7 * 1.0, "k": np.arange(N) % 3})
WANTED = ["t", "k"]


@pytest.mark.parametrize(
    "given",
    [
        pd.Index(WANTED),
        pd.Series(WANTED),
        FRAME.columns.isin(WANTED),
        FRAME.dtypes != np.dtype(float),
        np.array([0, 2]),
    ],
    ids=["index", "series", "mask", "series of bools", "numbers"],
)
def test_categories_are_named_by_columns_of_libraries(given: Any, tmp_path: Path) -> None:
    model = RandomForestClassifier(2, categorical_features=given, random_state=0).fit(FRAME, Y)
    assert list(model.levels_) == WANTED
    model.save(tmp_path / "forest.og")
    loaded = oldgrowth.load(tmp_path / "forest.og")
    again = loaded.set_params(warm_start=True, n_estimators=4).fit(FRAME, Y)
    assert len(again) == 4 and list(again.levels_) == WANTED


def test_a_row_that_is_no_table() -> None:
    model = RandomForestClassifier(2, random_state=0).fit(FRAME, Y)
    for row in (FRAME.iloc[0], FRAME.iloc[0].to_numpy()):
        with pytest.raises(OldgrowthError, match="one dimension"):
            model.predict(row)


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d/%m/%Y", "%d.%m.%y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M"])
def test_text_that_could_be_dates(form: str) -> None:
    texts = pd.Series(pd.date_range("2020", periods=N // 2).strftime(form).tolist() * 2)
    with pytest.warns(DateTextWarning, match="text of column 'when' could be dates"):
        RandomForestClassifier(1).fit(pd.DataFrame({"when": texts}), Y)


def test_dictionaries_of_views() -> None:
    texts = pa.array(FRAME["t"].tolist())
    views = texts.dictionary_encode().cast(pa.dictionary(pa.int32(), pa.string_view()))
    digests = {
        RandomForestClassifier(2, random_state=0).fit(pa.table({"t": column}), Y).forest_.digest()
        for column in (texts, views)
    }
    assert len(digests) == 1


def test_a_column_that_is_a_category_in_one_file_alone(tmp_path: Path) -> None:
    codes, paths = np.arange(N) % 5, [tmp_path / "a.feather", tmp_path / "b.feather"]
    for path, column in zip(paths, (pd.Categorical(codes), codes), strict=True):
        pd.DataFrame({"c": column, "n": np.arange(N) % 7 * 1.0, "y": Y}).to_feather(path)
    for given in (paths, paths[::-1]):
        with pytest.raises(OldgrowthError, match=rf"column 'c' of .*{given[1].name} has type .*int64"):
            open_dataset(given, target="y")
    assert open_dataset(paths, target="y", features=["n"]).n_features == 1
