"""Values, labels and weights: conversion of each type, and errors that name row and column."""

from __future__ import annotations

import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset_sources import plain
from oldgrowth import open_dataset
from oldgrowth.datasets import CodedLabels
from oldgrowth.errors import (
    ColumnTypeError,
    InfiniteValueError,
    MissingLabelError,
    TextColumnsError,
    WeightError,
)

FORMATS = ["parquet", "feather", "pandas", "polars", "arrow"]
NUMBERS = [pa.bool_(), pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(),
           pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.decimal128(9, 2), pa.null(),
           pa.dictionary(pa.int8(), pa.int64())]  # fmt: skip


def source(table: pa.Table, form: str, folder):
    """The table as a source of this form."""
    if form == "parquet":
        pq.write_table(table, folder / "a.parquet", row_group_size=3)
        return folder / "a.parquet"
    if form == "feather":
        pyarrow.feather.write_feather(table, folder / "a.feather", chunksize=3)
        return folder / "a.feather"
    if form == "pandas":
        return table.to_pandas()
    return pl.from_arrow(table) if form == "polars" else table


def read(table, form, folder, rows=100, **roles):
    return list(open_dataset(source(table, form, folder), **roles).batches(rows))


@st.composite
def columns(draw) -> pa.Array:
    kind = draw(st.sampled_from(NUMBERS))
    value = st.integers(0, 100).map(decimal.Decimal if pa.types.is_decimal(kind) else int)
    if pa.types.is_boolean(kind):
        value = st.booleans()
    if pa.types.is_null(kind):
        value = st.none()
    if pa.types.is_floating(kind):
        value = st.floats(-(2.0**12), 2.0**12, width=16) | st.just(float("nan"))
    values = draw(st.lists(value | st.none(), min_size=11, max_size=11))
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)


@given(
    st.lists(columns(), min_size=1, max_size=4), st.integers(1, 12), st.integers(1, 12), st.integers(0, 11)
)
def test_numbers_of_any_type(tmp_path_factory, arrays, group, rows, start):
    table = pa.table({f"c{i}": array for i, array in enumerate(arrays)})
    folder = tmp_path_factory.mktemp("values")
    wanted = np.array([[np.nan if v is None else float(v) for v in array.to_pylist()] for array in arrays])
    pq.write_table(table, folder / "a.parquet", row_group_size=group)
    exported = pa.Table.from_batches(table.to_batches(group))
    for given_as in (folder / "a.parquet", exported, table.slice(0, 11)):
        batches = list(open_dataset(given_as).batches(rows, start))
        x = np.concatenate([batch.x for batch in batches]) if batches else np.empty((0, len(arrays)))
        np.testing.assert_array_equal(x, wanted.T.astype(np.float32)[start:])


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "values",
    [pa.array([3, 1, 2, 1], pa.int8()), pa.array([True, False, True, True]), pa.array([0.5, 1.5, 2.5, -1.0]),
     pa.array(["b", "", "ü", ""]), pa.array(["b", "a", "c", "a"]).dictionary_encode(),
     pa.array(["b", "a", "c", "a"], pa.large_string())],
    ids=lambda values: str(values.type)[:10],
)  # fmt: skip
@pytest.mark.parametrize("rows", [3, 4])  # with and without a batch of two record batches
def test_labels_keep_their_type(values, form, rows, tmp_path):
    batches = read(pa.table({"a": [1, 2, 3, 4], "y": values}), form, tmp_path, rows=rows, target="y")
    assert np.concatenate([plain(batch.y) for batch in batches]).tolist() == values.to_pylist()
    kind = {"int8": "i", "bool": "b", "double": "f"}.get(str(values.type), "U")
    for batch in batches:
        assert plain(batch.y).dtype.kind == kind
        assert isinstance(batch.y, CodedLabels) == (kind == "U")
        if isinstance(batch.y, CodedLabels):
            assert batch.y.codes.dtype == np.int32 and set(batch.y.codes) == set(range(len(batch.y.labels)))


def test_other_forms_of_text():
    view = pa.array(["u", "v", "u"]).cast(pa.string_view())
    (batch,) = open_dataset(pa.table({"a": [1, 2, 3], "y": view}), target="y").batches(9)
    assert plain(batch.y).tolist() == ["u", "v", "u"]
    latin = pa.StringArray.from_buffers(1, pa.array([b"u\xff"]).buffers()[1], pa.py_buffer(b"u\xff"))
    with pytest.raises(ColumnTypeError, match="not UTF-8"):
        list(open_dataset(pa.table({"a": [1], "y": latin}), target="y").batches(9))


def test_labels_of_arrays():
    for y in (
        ["u", "v", "u"],
        np.array(["u", "v", "u"], object),
        np.array([b"u", b"v", b"u"]),
        pd.Series(list("uvu")),
    ):
        (batch,) = open_dataset(np.eye(3), target=y).batches(3)
        assert isinstance(batch.y, CodedLabels) and plain(batch.y).tolist() == ["u", "v", "u"]
    (batch,) = open_dataset(np.eye(3), target=np.array([1, 2, 3], ">i2")).batches(3)
    assert batch.y.tolist() == [1, 2, 3] and batch.y.dtype == np.int16
    with pytest.raises(ColumnTypeError, match=r"'target' of .* object"):
        next(open_dataset(np.eye(3), target=np.array(["u", 1, {}], object)).batches(3))
    with pytest.raises(ColumnTypeError, match=r"'target' of .* datetime"):
        next(open_dataset(np.eye(3), target=np.zeros(3, "M8[s]")).batches(3))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e39])
def test_infinite_values(form, value, tmp_path):
    table = pa.table({"a": np.zeros(9), "b": [0.0] * 7 + [value, 0.0]})
    with pytest.raises(InfiniteValueError, match=r"row 7, column b of "):
        read(table, form, tmp_path, rows=4)


def test_infinite_values_of_arrays(tmp_path):
    x = np.zeros((9, 2))
    x[7, 1] = 1e39
    np.save(tmp_path / "x.npy", x)
    for given_as in (x, tmp_path / "x.npy"):
        with pytest.raises(InfiniteValueError, match=r"row 7, column 1 of "):
            list(open_dataset(given_as).batches(4))
    with pytest.raises(InfiniteValueError, match=r"row 7, column v of "):
        list(open_dataset(x, features=["u", "v"]).batches(4))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("labels", "what"),
    [(pa.array([1.0] * 7 + [None, 1.0]), "missing"), (pa.array([1.0] * 7 + [np.nan, 1.0]), "missing"),
     (pa.array([1.0] * 7 + [np.inf, 1.0]), "infinite"), (pa.array(["u"] * 7 + [None, "u"]), "missing"),
     (pa.array(["u"] * 7 + [None, "u"]).dictionary_encode(), "missing")],
    ids=["null", "nan", "inf", "text", "dictionary"],
)  # fmt: skip
def test_missing_labels(labels, what, form, tmp_path):
    table = pa.table({"a": np.zeros(9), "y": labels})
    with pytest.raises(MissingLabelError, match=rf"row 7, column y, of .* is {what}"):
        read(table, form, tmp_path, rows=4, target="y")


def test_null_among_the_labels_of_a_dictionary():
    labels = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1]), pa.array(["u", None]))
    with pytest.raises(MissingLabelError, match="row 2"):
        list(open_dataset(pa.table({"a": [1, 2, 3], "y": labels}), target="y").batches(9))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("weight", [-0.5, np.nan, np.inf, None])
def test_bad_weights(form, weight, tmp_path):
    table = pa.table({"a": np.zeros(9), "w": pa.array([1.0] * 7 + [weight, 1.0])})
    with pytest.raises(WeightError, match=r"row 7, column w, of "):
        read(table, form, tmp_path, rows=4, weight="w")


def test_bad_weights_of_arrays():
    with pytest.raises(WeightError, match=r"row 2, column weight, of "):
        list(open_dataset(np.eye(3), weight=[1, 1, -1]).batches(2))
    with pytest.raises(ColumnTypeError, match="cannot be a weight"):
        open_dataset(np.eye(3), weight=["u", "v", "w"])


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("values", "kind"),
    [(pa.array(["u"] * 4), "str"), (pa.array([0] * 4, pa.date32()), "date"), (pa.array([[1]] * 4), "list"),
     (pa.array([0] * 4, pa.timestamp("us")), "timestamp"), (pa.array([b"u"] * 4), "binary")],
    ids=["string", "date", "list", "timestamp", "binary"],
)  # fmt: skip
def test_columns_that_are_no_numbers(values, kind, form, tmp_path):
    table = pa.table({"a": np.zeros(4), "b": values})
    given_as = source(table, form, tmp_path)
    if kind == "str":
        with pytest.raises(TextColumnsError, match=r"'b' of .* holds text"):
            open_dataset(given_as).batches(1)
    else:
        with pytest.raises(ColumnTypeError, match=rf"'b' of .* type .*{kind}.* cannot be a feature"):
            open_dataset(given_as)
    assert open_dataset(given_as, features=["a"]).n_features == 1
    with pytest.raises(ColumnTypeError, match="cannot be a weight"):
        open_dataset(given_as, features=["a"], weight="b")
    if kind != "str":
        with pytest.raises(ColumnTypeError, match="cannot be a target"):
            open_dataset(given_as, target="b")


def test_objects_of_many_types_in_pandas():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1, "u"]})
    with pytest.raises(ColumnTypeError, match=r"'b' of the pandas DataFrame"):
        open_dataset(frame)
    assert open_dataset(frame, features=["a"]).n_features == 1


@pytest.mark.parametrize("x", [np.zeros((2, 2), complex), np.array([[{}]], object), np.array([[b"a"]])])
def test_matrices_that_are_no_numbers(x):
    with pytest.raises(ColumnTypeError, match=r"Column ('X'|0) of the array"):
        open_dataset(x)
