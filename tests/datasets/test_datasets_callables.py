"""Callables and streams: sources that run again for each pass, or cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from dataset_sources import Exporter
from oldgrowth import open_dataset
from oldgrowth.datasets import CodedLabels, streams
from oldgrowth.errors import (
    BatchError,
    ChangedSourceError,
    FailedBatchError,
    NoDataError,
    OnceOnlyError,
    ParameterError,
    ReadError,
    UnknownSourceError,
)

X = np.arange(20.0).reshape(10, 2)


def batches_of(*batches):
    return lambda: iter(batches)


def count(data) -> int:
    return sum(batch.rows for batch in data.batches(4))


def test_parts_of_a_batch():
    (alone,) = open_dataset(batches_of(X)).batches(99)
    assert alone.y is None and alone.weights is None
    (named,) = (
        open_dataset(batches_of((X, ["u", "v"] * 5, None)), features=["a", "b"]).select(["b"]).batches(99)
    )
    assert isinstance(named.y, CodedLabels) and named.x.tolist() == X[:, 1:].tolist()


def test_empty_batches_are_no_end():
    data = open_dataset(batches_of(X[:0], X, X[:0], X))
    assert count(data) == 20


@pytest.mark.parametrize(
    ("batch", "what"),
    [((X[:, :1], np.zeros(10)), "1 columns"), ((X, np.zeros(9)), r"y has shape \(9,\)"), (X, "no y"),
     ((X, np.zeros(10), np.ones(10)), "a weight"), ((X, np.zeros(10), np.ones(3)), "weight has shape"),
     ((X.ravel(), np.zeros(10)), r"shape \(20,\)"), ((X.astype(str), np.zeros(10)), "type <U.*batch 0 has"),
     ((X, np.zeros(10, int)), "labels of type int64"), ((X, np.zeros(10), None, 1), "4 parts"),
     ((X, np.zeros(10), ["u"] * 10), "weights of type")],
)  # fmt: skip
def test_batches_that_do_not_fit(batch, what):
    good = (X, np.zeros(10))
    data = open_dataset(batches_of(good, good, batch))
    with pytest.raises(BatchError, match=rf"Batch 2 .*{what}"):
        count(data)


def test_errors_of_the_iterator_are_passed_on():
    def failing():
        yield X
        raise OSError("the disk is gone")

    with pytest.raises(FailedBatchError, match="at batch 1: OSError: the disk is gone") as caught:
        count(open_dataset(failing))
    assert isinstance(caught.value.__cause__, OSError)

    def refusing():
        raise OSError("no disk")

    with pytest.raises(FailedBatchError, match="at batch 0: OSError: no disk"):
        open_dataset(refusing)


@pytest.mark.parametrize(("second", "what"), [(1, "20 rows and now has 10"), (3, "20 rows and now has more")])
def test_second_pass_of_another_length(second, what):
    lengths = [2, 2, 2, second]  # two calls to look at the first batch, then two passes

    def batches():
        return iter([X] * lengths.pop(0))

    data = open_dataset(batches)
    assert count(data) == 20
    with pytest.raises(ChangedSourceError, match=what):
        count(data)


def test_other_rows_in_the_second_pass():
    rng = np.random.default_rng(0)
    data = open_dataset(lambda: iter([rng.random((10, 2))]))
    with pytest.raises(ChangedSourceError, match="first batch has other rows"):
        count(data)


def test_no_batches():
    with pytest.raises(NoDataError, match="yielded no batch"):
        open_dataset(batches_of())
    with pytest.raises(NoDataError, match="no rows"):
        count(open_dataset(batches_of(X[:0])))


def test_what_can_be_read_only_once():
    generator = (batch for batch in [X, X])
    with pytest.raises(OnceOnlyError, match="callable"):
        open_dataset(generator)
    with pytest.raises(OnceOnlyError, match="each time"):
        open_dataset(lambda: generator)
    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), [])
    with pytest.raises(OnceOnlyError, match="RecordBatchReader"):
        open_dataset(reader)


@pytest.mark.parametrize("chunk", [3, 100])
def test_stream_object_that_can_be_read_only_once(chunk):
    class Once:
        def __init__(self) -> None:
            table = pa.table({"a": np.arange(10)})
            self._reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(chunk))

        def __arrow_c_stream__(self, requested_schema=None):
            return self._reader.__arrow_c_stream__(requested_schema)

    with pytest.raises(OnceOnlyError, match="Arrow stream of Once"):
        open_dataset(Once())


def test_stream_of_another_length_or_type():
    source = Exporter(pa.table({"a": np.arange(10)}))
    data = open_dataset(source)
    assert count(data) == 10
    source._table = pa.table({"a": np.arange(9)})
    with pytest.raises(ChangedSourceError, match="had 10 rows and now has 9"):
        count(data)
    source._table = pa.table({"a": np.arange(11)})
    with pytest.raises(ChangedSourceError, match="10 rows and now has more"):
        count(data)
    source._table = pa.table({"a": np.arange(10.0)})
    with pytest.raises(ChangedSourceError, match="columns are different"):
        count(data)


def test_stream_that_fails():
    class Failing:
        def __arrow_c_stream__(self, requested_schema=None):
            table = pa.table({"a": np.arange(10)})

            def batches():
                yield from table.to_batches(5)
                raise RuntimeError("lost the connection")

            return pa.RecordBatchReader.from_batches(table.schema, batches()).__arrow_c_stream__(
                requested_schema
            )

    with pytest.raises(ReadError, match=r"after row 10: .*lost the connection"):
        count(open_dataset(Failing()))


def test_lazy_frame_that_fails(tmp_path):
    pl.DataFrame({"a": np.arange(10)}).write_parquet(tmp_path / "a.parquet")
    data = open_dataset(pl.scan_parquet(tmp_path / "a.parquet"))
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(ReadError, match="polars LazyFrame failed after row 0"):
        count(data)
    with pytest.raises(ReadError, match="polars LazyFrame"):
        open_dataset(pl.scan_parquet(tmp_path / "b.parquet"))


def test_lazy_frame_without_batches():
    """An older polars has no collect_batches."""

    class Old:
        def __init__(self, frame) -> None:
            self._frame = frame

        def slice(self, start, rows):
            return self._frame.lazy().slice(start, rows)

    frame = pl.DataFrame({"a": np.arange(10)})
    parts = list(streams._collected(Old(frame), 4))
    assert [part.height for part in parts] == [4, 4, 2] and pl.concat(parts).equals(frame)


def test_impossible_arguments():
    with pytest.raises(ParameterError, match=r"target must be None .*; got 'y'"):
        open_dataset(batches_of(X), target="y")
    with pytest.raises(ParameterError, match="2 names"):
        open_dataset(batches_of(X), features=["a"])
    for source in (3, None, {"a": [1]}, [X, X]):
        with pytest.raises(UnknownSourceError, match=type(source).__name__):
            open_dataset(source)


def test_batches_may_be_cut_otherwise_in_each_pass() -> None:
    """As those of a database may be split; the rows are the same."""
    x, y = np.arange(60, dtype=np.uint8).reshape(20, 3), np.arange(20) % 2
    sizes = iter([5, 7, 3, 20])

    def batches() -> Any:
        step = next(sizes)
        for first in range(0, 20, step):
            yield (
                x[first : first + step].astype(np.uint8 if step > 4 else np.float64),
                y[first : first + step],
            )

    data = open_dataset(batches)
    for _ in range(3):
        read = [batch.x for batch in data.batches(6)]
        np.testing.assert_array_equal(np.concatenate(read), x)
    sizes = iter([5])
    x[1, 1] = 99
    with pytest.raises(ChangedSourceError, match="first batch"):
        list(data.batches(6))
