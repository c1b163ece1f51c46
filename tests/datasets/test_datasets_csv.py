"""CSV files: types, missing values, and lines that do not fit, named by file, line and column."""

from __future__ import annotations

import numpy as np
import pytest

from dataset_sources import plain
from oldgrowth import open_dataset
from oldgrowth.datasets import csv as csv_module
from oldgrowth.errors import (
    BadValueError,
    BrokenLineError,
    DuplicateColumnError,
    MissingLabelError,
    NoDataError,
    ParameterError,
    TextColumnsError,
)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(csv_module, "BLOCK_BYTES", 1 << 10)


def write(folder, text, name="a.csv"):
    (folder / name).write_text(text)
    return folder / name


def read(path, **options):
    data = open_dataset(path, **options)
    batches = list(data.batches(100_000))
    assert len(batches) == 1
    return batches[0]


def test_missing_values_are_nan(tmp_path):
    batch = read(write(tmp_path, "a,b\n1,\nNA,2.5\nnan,null\n"))
    np.testing.assert_array_equal(
        batch.x, np.array([[1, np.nan], [np.nan, 2.5], [np.nan, np.nan]], np.float32)
    )


def test_missing_values_of_ones_own(tmp_path):
    path = write(tmp_path, "a,y\n1,NA\n?,DE\n")
    batch = read(path, target="y", missing=["?"])
    assert np.isnan(batch.x[1, 0]) and plain(batch.y).tolist() == ["NA", "DE"]
    with pytest.raises(BadValueError, match=r"a.csv, line 3, column a: .*'\?'.*missing="):
        read(path, target="y")


@pytest.mark.parametrize("late", ["2.5", "1e300", "", "123456789012345678901234567890"])
def test_whole_numbers_that_become_others_late(late, tmp_path, small_blocks):
    lines = "1,0\n" * 5000 + f"{late},1\n"
    path = write(tmp_path, "a,y\n" + lines)
    if late == "1e300":
        with pytest.raises(ValueError, match=r"infinity.*row 5000, column a of .*a.csv"):
            read(path, target="y")
        return
    batch = read(path, target="y")
    wanted = np.float32(late or "nan")
    np.testing.assert_array_equal(batch.x[[0, 5000], 0], np.array([1, wanted], np.float32))
    assert batch.y.dtype == np.int64


def test_column_that_is_empty_at_first(tmp_path, small_blocks):
    batch = read(write(tmp_path, "a,b\n" + "1,\n" * 5000 + "1,7\n"))
    assert np.isnan(batch.x[:5000, 1]).all() and batch.x[5000, 1] == 7


@pytest.mark.parametrize("line", [2, 3, 5000, 9000])
def test_not_a_number(line, tmp_path, small_blocks):
    lines = ["1,2,3"] * 9000
    lines[line - 2] = "1,2,x7"
    path = write(tmp_path, "a,b,c\n" + "\n".join(lines) + "\n")
    wanted = TextColumnsError if line == 2 else BadValueError
    match = r"'c' of .*a.csv holds text" if line == 2 else rf"a.csv, line {line}, column c: .*'x7'"
    with pytest.raises(wanted, match=match):
        read(path)


@pytest.mark.parametrize(("names", "column"), [(["c", "a"], "c"), (["a"], None)])
def test_only_chosen_columns_are_parsed(names, column, tmp_path, small_blocks):
    path = write(tmp_path, "a,b,c\n" + "1,2,3\n" * 5000 + "1,2,x\n")
    if column is None:
        assert read(path, features=names).rows == 5001
        return
    with pytest.raises(BadValueError, match=f"line 5002, column {column}:"):
        read(path, features=names)


@pytest.mark.parametrize(("bad", "got"), [("1", 1), ("1,2,3", 3)])
def test_broken_lines(bad, got, tmp_path, small_blocks):
    path = write(tmp_path, "a,b\n" + "1,2\n" * 5000 + f"{bad}\n1,2\n")
    with pytest.raises(BrokenLineError, match=rf"a.csv, line 5002, has {got} values? instead of 2"):
        read(path)


def test_target_that_changes_its_type(tmp_path, small_blocks):
    path = write(tmp_path, "a,y\n" + "1,2\n" * 5000 + "1,two\n")
    with pytest.raises(BadValueError, match=r"line 5002, column y: .*'two'.*types="):
        read(path, target="y")
    batch = read(path, target="y", types={"y": "string"})
    assert sorted(batch.y.labels) == ["2", "two"]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [(["1", "-2"], np.array([1, -2])), (["1.5", "2"], np.array([1.5, 2])),
     (["true", "false"], np.array([True, False])),
     (["2020-01-01", "2020-01-02"], np.array(["2020-01-01", "2020-01-02"]))],
)  # fmt: skip
def test_labels_keep_their_type(values, wanted, tmp_path):
    batch = read(write(tmp_path, "a,y\n" + "".join(f"1,{value}\n" for value in values)), target="y")
    np.testing.assert_array_equal(plain(batch.y), wanted)
    assert plain(batch.y).dtype.kind == wanted.dtype.kind


def test_missing_label(tmp_path):
    with pytest.raises(MissingLabelError, match=r"row 1, column y, of .*a.csv is missing"):
        read(write(tmp_path, "a,y\n1,u\n2,\n"), target="y")


def test_rows_are_numbered_over_files(tmp_path):
    write(tmp_path, "a,y\n" + "1,u\n" * 10, "1.csv")
    write(tmp_path, "a,y\n1,u\n2,\n", "2.csv")
    with pytest.raises(MissingLabelError, match=r"row 11, column y, of .*2.csv is missing"):
        read(tmp_path, target="y")


def test_columns_may_come_in_another_order(tmp_path):
    write(tmp_path, "a,b\n1,2\n", "1.csv")
    write(tmp_path, "b,a\n4,3\n", "2.csv")
    np.testing.assert_array_equal(read(tmp_path).x, [[1, 2], [3, 4]])


def test_tabs_and_delimiters(tmp_path):
    assert read(write(tmp_path, "a\tb\n1\t2\n", "a.tsv")).x.tolist() == [[1, 2]]
    assert read(write(tmp_path, "a;b\n1;2\n"), delimiter=";").x.tolist() == [[1, 2]]


def test_empty_files(tmp_path):
    with pytest.raises(NoDataError, match=r"a.csv"):
        read(write(tmp_path, ""))
    with pytest.raises(NoDataError, match=r"a.csv .*no rows"):
        list(open_dataset(write(tmp_path, "a,b\n")).batches(10))


def test_two_columns_of_one_name(tmp_path):
    with pytest.raises(DuplicateColumnError, match="'a' of"):
        open_dataset(write(tmp_path, "a,a\n1,2\n"))


def test_impossible_options(tmp_path):
    path = write(tmp_path, "a\n1\n")
    with pytest.raises(ParameterError, match=r"types must be .*; got 'nothing'"):
        open_dataset(path, types={"a": "nothing"})
    with pytest.raises(ParameterError, match="separator"):
        open_dataset(path, separator=";")


@pytest.mark.parametrize("empty", ["a,y\n", "a,y\n1,\n2,\n"], ids=["no rows", "no labels"])
@pytest.mark.parametrize(
    ("values", "wanted"),
    [("7", np.array([7])), ("2.5", np.array([2.5])), ("true", np.array([True])), ("u", None)],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_file_without_labels_does_not_decide_their_type(empty, values, wanted, first, tmp_path):
    write(tmp_path, empty, f"{'a' if first else 'z'}.csv")
    write(tmp_path, f"a,y\n3,{values}\n", "m.csv")
    data = open_dataset(tmp_path, target="y")
    if "1" in empty:
        with pytest.raises(MissingLabelError):
            next(iter(data.batches(9)))
        return
    (batch,) = data.batches(9)
    if wanted is None:
        assert batch.y.decoded().tolist() == ["u"]
    else:
        assert batch.y.dtype == wanted.dtype and batch.y.tolist() == wanted.tolist()


def test_files_without_a_single_label(tmp_path):
    write(tmp_path, "a,y\n", "a.csv")
    write(tmp_path, "a,y\n1,\n", "b.csv")
    with pytest.raises(MissingLabelError):
        next(iter(open_dataset(tmp_path, target="y").batches(9)))
