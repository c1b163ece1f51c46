"""All kinds of sources yield the same rows, for any batch size, start and pass."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dataset_sources import NAMES, SOURCES, Source, Truth, make_truth, plain
from oldgrowth import open_dataset
from oldgrowth.datasets import Dataset
from oldgrowth.errors import MissingColumnError, NamelessColumnsError, ParameterError

TRUTH = make_truth()


@pytest.fixture(params=SOURCES)
def source(request, tmp_path) -> Source:
    return SOURCES[request.param](TRUTH, tmp_path)


@pytest.fixture
def data(source) -> Dataset:
    return open_dataset(*source.args, **source.options)


def check_batches(data: Dataset, truth: Truth, rows: int, start: int = 0) -> None:
    at = start
    for batch in data.batches(rows, start):
        stop = min(at + rows, truth.rows)
        assert (batch.first_row, batch.rows) == (at, stop - at)
        assert batch.x.dtype == np.float32 and batch.x.flags.c_contiguous
        np.testing.assert_array_equal(batch.x, truth.x[at:stop])
        np.testing.assert_array_equal(plain(batch.y), truth.y[at:stop])
        np.testing.assert_array_equal(batch.weights, truth.weights[at:stop])
        assert batch.weights.dtype == np.float64 and batch.where and batch.carried is None
        at = stop
    assert at == truth.rows


@pytest.mark.parametrize("rows", [7, 1000, TRUTH.rows, 10**7])
def test_batches_of_any_size(data, rows):
    check_batches(data, TRUTH, rows)


def test_batches_of_one_row(source, data):
    for number, batch in zip(range(20), data.batches(1), strict=False):
        assert batch.x.shape == (1, len(NAMES)) and batch.first_row == number
        np.testing.assert_array_equal(batch.x[0], TRUTH.x[number])


@pytest.mark.parametrize("start", [1, 332, 333, 700, 701, 1999, TRUTH.rows - 1, TRUTH.rows])
def test_start_at_any_row(data, start):
    check_batches(data, TRUTH, 400, start)


def test_start_after_the_end_is_refused(data):
    with pytest.raises(ParameterError, match=r"start must be .*; got 2501"):
        list(data.batches(10, TRUTH.rows + 1))


def test_passes_are_independent(data):
    one, other = data.batches(300), data.batches(300)
    next(one)
    for first, second in zip(other, data.batches(300), strict=True):
        np.testing.assert_array_equal(first.x, second.x)
    assert sum(batch.rows for batch in one) == TRUTH.rows - 300


def test_number_of_rows(source, data):
    assert data.n_rows == (TRUTH.rows if source.counted else None)
    assert data.n_features == len(NAMES)
    for _ in data.batches(1000):
        pass
    assert data.n_rows == TRUTH.rows


def test_number_of_rows_is_learned_from_a_late_start(data):
    assert sum(batch.rows for batch in data.batches(100, 2000)) == 500
    assert data.n_rows == TRUTH.rows


def test_names(source, data):
    assert data.feature_names == (tuple(NAMES) if source.named else None)


def test_select(source, data):
    if not source.named:
        with pytest.raises((NamelessColumnsError, MissingColumnError)):
            data.select(["gap", "red"])
        return
    chosen = data.select(["gap", "red"])
    assert (chosen.feature_names, chosen.n_features) == (("gap", "red"), 2)
    assert data.feature_names == tuple(NAMES)
    x = np.concatenate([batch.x for batch in chosen.batches(999)])
    np.testing.assert_array_equal(x, TRUTH.x[:, [4, 0]])
    with pytest.raises(MissingColumnError, match=r"gapp.*mean 'gap'"):
        data.select(["gapp"])


def test_carry(source, data):
    if not source.carries:
        with pytest.raises((MissingColumnError, NamelessColumnsError)):
            data.batches(10, carry=["id"])
        return
    tables = [batch.carried for batch in data.batches(999, 5, carry=["id"])]
    assert [table.num_rows for table in tables] == [999, 999, TRUTH.rows - 5 - 2 * 999]
    np.testing.assert_array_equal(
        np.concatenate([table["id"].to_numpy() for table in tables]), np.arange(5, TRUTH.rows)
    )


def test_fingerprint_is_json_and_stays(source, data):
    text = json.dumps(data.fingerprint())
    list(data.batches(1000))
    assert json.dumps(open_dataset(*source.args, **source.options).fingerprint()) == text


def test_repr_is_short(data):
    lines = repr(data).split("\n")
    assert lines[0] == f"{data.kind} dataset" and 5 <= len(lines) <= 9
    assert f"features {len(NAMES)}" in repr(data) and all(len(line) < 400 for line in lines)


@pytest.mark.parametrize(("name", "value"), [("rows", 0), ("start", -1)])
def test_impossible_batches(data, name, value):
    with pytest.raises(ParameterError, match=f"{name} must be .*; got {value}"):
        data.batches(**{"rows": 10, name: value})
