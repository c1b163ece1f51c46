"""The levels of categorical features: learned in the order of rows, merged, pooled, coded by value."""

from __future__ import annotations

import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oldgrowth import open_dataset
from oldgrowth.datasets import level_counts
from oldgrowth.datasets.level_counts import LearnedLevels, LevelLimit
from oldgrowth.datasets.levels import NOT_THERE, Levels
from oldgrowth.errors import (
    BadValueError,
    DifferentFilesError,
    DifferentLevelKindsError,
    LevelKindError,
    NumbersExpectedError,
    RoundedLevelError,
    SameLevelError,
    TextColumnsError,
    TooManyLevelsError,
)
from oldgrowth.messages.warnings import IdColumnWarning, NumericTextWarning, PooledLevelsWarning

TEXTS = st.lists(st.sampled_from(["rome", "oslo", "bonn", "", "ü", "\0", None]), min_size=1, max_size=60)


def learned(data, features=None):
    found = LearnedLevels(data, data.typed_categories if features is None else features)
    for _ in found.learn(data):
        pass
    return found


def levels_of(data, features=None):
    return learned(data, features).finish(data.n_features)


def codes_of(data, levels, **options):
    return np.concatenate([batch.x for batch in data.coded_by(levels, **options).batches(7)])


@given(TEXTS, st.integers(1, 9), st.lists(st.booleans(), min_size=60, max_size=60))
@settings(deadline=None)
def test_the_order_is_that_of_the_first_rows_of_some_weight(texts, n_parts, weighted):
    weights = np.array(weighted[: len(texts)], dtype=float)
    frame = pd.DataFrame({"c": pd.array(texts, dtype="string"), "w": weights})
    data = open_dataset(frame, weight="w")
    used = [text for text, weight in zip(texts, weights, strict=True) if weight and text is not None]
    whole = learned(data)
    assert list(whole.counted[0].rows) == list(dict.fromkeys(used))
    assert list(whole.counted[0].rows.values()) == [used.count(text) for text in dict.fromkeys(used)]
    parts = [pickle.loads(pickle.dumps(part)).open() for part in data.partitions(n_parts)]
    merged = LearnedLevels(data, (0,))
    for part in parts:
        merged.merge(learned(part, (0,)))
    assert merged.state() == whole.state()
    again = LearnedLevels(data, (0,))
    again.restore(merged.state())
    assert again.state() == whole.state()


@given(TEXTS)
@settings(deadline=None)
def test_codes_give_the_values_back(texts):
    data = open_dataset(pa.table({"c": pa.array(texts, pa.string()), "x": np.zeros(len(texts))}))
    levels = levels_of(data)
    codes = codes_of(data, levels, strictly=True)[:, 0]
    known = levels[0].values
    assert [None if np.isnan(code) else known[int(code)] for code in codes] == texts
    unseen = Levels(tuple(value for value in known if value != "rome"))
    odd = codes_of(data, (unseen, None))[:, 0]
    np.testing.assert_array_equal(np.isnan(odd), [text in ("rome", None) for text in texts])
    strict = codes_of(data, (unseen, None), strictly=True)[:, 0]
    np.testing.assert_array_equal(strict == NOT_THERE, [text == "rome" for text in texts])


def sources(tmp_path):
    """The same rows as every kind of source that has text."""
    n = 3000
    rng = np.random.default_rng(0)
    text = rng.choice(["rome", "oslo", "bonn", "NA-", "ü"], n).astype(object)
    text[::9] = None
    frame = pd.DataFrame({"x": rng.normal(size=n).astype(np.float32), "c": text})
    table = pa.Table.from_pandas(frame, preserve_index=False)
    frame.to_csv(tmp_path / "t.csv", index=False)
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=400)
    (tmp_path / "parts").mkdir()
    for i, first in enumerate(range(0, n, 800)):  # each with a dictionary of its own
        part = table.slice(first, 800).set_column(1, "c", table["c"].slice(first, 800).dictionary_encode())
        pq.write_table(part.unify_dictionaries(), tmp_path / "parts" / f"{i}.parquet")
    pyarrow.feather.write_feather(table, tmp_path / "t.feather")
    objects = frame.to_numpy(dtype=object)
    yield open_dataset(frame)
    yield open_dataset(frame.astype({"c": "category"}))
    yield open_dataset(frame.astype({"c": pd.CategoricalDtype(["x", "ü", "oslo", "rome", "NA-", "bonn"])}))
    yield open_dataset(frame.astype({"c": "string"}))
    yield open_dataset(pl.from_pandas(frame))
    yield open_dataset(pl.from_pandas(frame).with_columns(pl.col("c").cast(pl.Categorical)))
    yield open_dataset(pl.from_pandas(frame).lazy())
    yield open_dataset(table)
    yield open_dataset(table.set_column(1, "c", table["c"].dictionary_encode()))
    yield open_dataset(objects)
    yield open_dataset(lambda: (objects[i : i + 700] for i in range(0, n, 700)))
    for path in ("t.csv", "t.parquet", "parts", "t.feather"):
        yield open_dataset(tmp_path / path)


def test_all_sources_have_the_same_codes(tmp_path):
    first, *others = sources(tmp_path)
    levels = levels_of(first)
    codes = codes_of(first, levels)
    for other in others:
        assert levels_of(other) == levels, other.kind
        np.testing.assert_array_equal(codes_of(other, levels), codes)


def test_the_rarest_levels_become_one(monkeypatch):
    monkeypatch.setattr(level_counts, "MOST_LEVELS", 3)
    data = open_dataset(pd.DataFrame({"c": list("abbcccddee"), "x": range(10)}))
    with pytest.warns(PooledLevelsWarning, match="'c' has 5 levels, .* 3: the rarest, with 5 rows"):
        levels = levels_of(data)
    assert levels[0] == Levels(("b", "c"), pooled=True)
    assert codes_of(data, levels)[:, 0].tolist() == [2, 0, 0, 1, 1, 1, 2, 2, 2, 2]
    assert levels[0].names == ["b", "c", "all others"]


def test_more_levels_than_a_forest_can_tell_apart():
    n = 70_000
    text = np.repeat([f"l{i}" for i in range(n)], 2)
    data = open_dataset(pa.table({"c": text, "x": np.zeros(len(text), np.uint8)}))
    with pytest.warns(PooledLevelsWarning, match="70,000 levels"):
        (levels, _) = levels_of(data)
    assert levels.count == 65_534 and levels.values[-1] == "l65532"


@pytest.mark.parametrize("values", [[1, 2, 1, None], [1.0, 2.0, 1.0, np.nan], np.array([1, 2, 1, 7], "f4")])
def test_numbers_are_levels_by_their_value(values):
    data = open_dataset(pd.DataFrame({"k": values, "x": range(4)}))
    levels = levels_of(data, (0,))
    assert levels[0].values[:2] == (1, 2) and levels[0].is_text is False
    other = open_dataset(pa.table({"k": pa.array([2, 1, 3, None], pa.int8()), "x": range(4)}))
    np.testing.assert_array_equal(codes_of(other, (Levels((1, 2)), None))[:, 0], [1, 0, np.nan, np.nan])


def test_numbers_and_text_are_different_levels():
    text, numbers = (open_dataset(pd.DataFrame({"k": k, "x": [1, 2]})) for k in (["1", "2"], [1, 2]))
    with pytest.raises(LevelKindError, match="holds text, but the levels of this feature are numbers"):
        codes_of(text, (Levels((1, 2)), None))
    with pytest.raises(LevelKindError, match="holds numbers, but the levels of this feature are text"):
        codes_of(numbers, (Levels(("1", "2")), None))
    with pytest.raises(NumbersExpectedError, match=r"'k' .* learned numbers"):
        text.coded_by((None, None))
    nothing = open_dataset(pd.DataFrame({"k": [np.nan, np.nan], "x": [1, 2]}))
    assert np.isnan(codes_of(nothing, (Levels(("1", "2")), None))[:, 0]).all()


def test_batches_that_change_from_text_to_numbers():
    parts = [np.array([["a", 1.0]], object), np.array([[2, 1.0]], object)]
    with pytest.raises(DifferentLevelKindsError, match=r"Column 0 .* text in some rows and numbers"):
        learned(open_dataset(lambda: iter(parts)))


def test_files_in_which_a_column_is_text_and_numbers(tmp_path):
    pq.write_table(pa.table({"c": ["a"], "x": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"c": [1], "x": [1]}), tmp_path / "b.parquet")
    with pytest.raises(DifferentFilesError, match=r"'c' .*b.parquet has type int64"):
        open_dataset(tmp_path)


def test_a_file_in_which_a_text_column_has_no_value(tmp_path):
    pq.write_table(pa.table({"c": pa.nulls(2), "x": [1, 2]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"c": ["u"], "x": [1]}), tmp_path / "b.parquet")
    data = open_dataset(tmp_path)
    assert data.text_features == (0,)
    np.testing.assert_array_equal(codes_of(data, levels_of(data))[:, 0], [np.nan, np.nan, 0])


def test_text_without_codes_is_not_read():
    with pytest.raises(TextColumnsError, match="'c' of the pandas DataFrame holds text"):
        open_dataset(pd.DataFrame({"c": ["a"], "x": [1]})).batches(1)


def test_levels_that_fill_the_memory():
    data = open_dataset(pd.DataFrame({"c": [f"id {i}" for i in range(500)], "x": range(500)}))
    found = LearnedLevels(data, (0,))
    found.limit = LevelLimit(10_000, 2**30)
    with pytest.raises(TooManyLevelsError, match="'c' has 500 levels in its first 500 rows"):
        list(found.learn(data))


def test_what_is_odd_is_told():
    n = 100
    frame = pd.DataFrame({"id": [f"u{i}" for i in range(n)], "n": [str(i % 7) for i in range(n)]})
    with pytest.warns(IdColumnWarning, match="'id'"), pytest.warns(NumericTextWarning, match="column 'n'"):
        levels_of(open_dataset(frame))
    frame = pd.DataFrame({"n": ["?"] * 5 + ["1.5"] * 95, "x": range(n)})
    with pytest.warns(NumericTextWarning, match=r"'n' \(but not '\?'\)"):
        levels_of(open_dataset(frame))


SAME = [("007", "7"), ("7", "07"), ("-03", "-3"), (str(2**60), str(2**60 + 1)), (str(2**70), str(2**70 + 1))]


@pytest.mark.parametrize(("one", "other"), SAME)
@pytest.mark.parametrize("apart", [1, 1_200_000], ids=["of one batch", "of two batches"])
def test_texts_of_csv_that_are_one_number_are_no_level(tmp_path, one, other, apart):
    (tmp_path / "t.csv").write_text("c,x\n" + f"{one},1\n" * apart + f"{other},1\n")
    data = open_dataset(tmp_path / "t.csv")
    with pytest.raises(SameLevelError, match=r"'c'.*t\.csv.*types=") as raised:
        levels_of(data, (0,))
    assert f"'{one}'" in str(raised.value) and f"'{other}'" in str(raised.value)
    assert "--type c=string" in raised.value.on_command_line
    text = open_dataset(tmp_path / "t.csv", types={"c": "string"})
    assert list(learned(text, (0,)).counted[0].rows) == [one, other]


@pytest.mark.parametrize("texts", [("007", "012"), ("7", "7.0", "+7", "7e0"), ("0.5", "0.50"), ("0", "-0")])
def test_numbers_of_csv_that_are_levels(tmp_path, texts):
    (tmp_path / "t.csv").write_text("c\n" + "".join(f"{text}\n" for text in texts * 3) + "NA\n")
    numbers = tuple(dict.fromkeys(float(text) for text in texts))
    assert levels_of(open_dataset(tmp_path / "t.csv"), (0,))[0].values == numbers


def test_a_text_in_levels_of_csv_is_an_error_with_its_line(tmp_path):
    (tmp_path / "t.csv").write_text("c\n" + "007\n" * 1_200_000 + "red\n")
    with pytest.raises(BadValueError, match="line 1200002, column c: 'red'"):
        levels_of(open_dataset(tmp_path / "t.csv"), (0,))


@pytest.mark.parametrize("names", [("007", "7"), ("07", "7"), ("7", "8")])
def test_names_of_directories_that_are_one_number_are_no_level(tmp_path, names):
    for name in names:
        (tmp_path / f"c={name}").mkdir()
        pd.DataFrame({"x": [1.0, 2.0]}).to_parquet(tmp_path / f"c={name}" / "a.parquet")
    data = open_dataset(tmp_path, features=["c"])
    if names == ("7", "8"):
        assert levels_of(data, (0,))[0].values == (7, 8)
        return
    with pytest.raises(SameLevelError, match=f"'{names[0]}' and '7' of the categorical feature 'c'"):
        levels_of(data, (0,))


def test_how_levels_were_written_is_merged_and_kept(tmp_path):
    (tmp_path / "t.csv").write_text("c\n007\n012\n")
    (tmp_path / "u.csv").write_text("c\n7\n")
    first, other = (learned(open_dataset(tmp_path / name), (0,)) for name in ("t.csv", "u.csv"))
    for one, following in ((first, other), (other, first)):
        again = LearnedLevels(open_dataset(tmp_path / "t.csv"), (0,))
        again.restore(pickle.loads(pickle.dumps(one)).state())
        assert again.state() == one.state()
        with pytest.raises(SameLevelError, match="the same number"):
            again.merge(following)
    again = LearnedLevels(open_dataset(tmp_path / "t.csv"), (0,))
    again.merge(first)
    again.merge(first)
    assert again.counted[0].odd == {7: "007", 12: "012"}


def test_decimals_are_levels_without_rounding():
    pair = [Decimal("1000000000000000000001"), Decimal("1000000000000000000002")]
    data = open_dataset(pa.table({"c": [*pair, None, Decimal(7)]}))
    levels = levels_of(data, (0,))
    assert levels[0].values == (10**21 + 1, 10**21 + 2, 7)
    np.testing.assert_array_equal(codes_of(data, levels)[:, 0], [0, 1, np.nan, 2])
    assert levels_of(open_dataset(pa.table({"c": [Decimal("0.10"), Decimal("0.5")]})), (0,))[0].values == (
        0.1,
        0.5,
    )
    with pytest.raises(RoundedLevelError, match=r"'c' of .*0\.1000000000000000000001"):
        levels_of(open_dataset(pa.table({"c": [Decimal("0.1000000000000000000001")]})), (0,))
