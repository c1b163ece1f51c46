"""Partitions of every kind of source: together they have all rows, also in another process."""

from __future__ import annotations

import hashlib
import pickle
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataset_sources import NAMES, SOURCES, Source, Truth, make_truth, plain
from oldgrowth import open_dataset
from oldgrowth.datasets import Dataset, Partition
from oldgrowth.datasets.base import numbered
from oldgrowth.datasets.batches import Span
from oldgrowth.datasets.partition_edges import nearest_edges
from oldgrowth.errors import ChangedSourceError, InfiniteValueError, MissingLabelError, ParameterError

TRUTH = make_truth()
BETWEEN_FILES = {"arrow_stream_file", "csv", "file_url", "csv_gz_folder"}
IN_ONE = {"lazy_frame", "arrow_stream", "batch_callable"}
# Their rows are in the memory of this process, or Python cannot pickle them.
NOT_ELSEWHERE = {"memory_url", "memory_url_arrow", "arrow_stream", "batch_callable"}
READ_ELSEWHERE = """
import pickle, sys, hashlib
for partition in pickle.load(sys.stdin.buffer):
    rows, digest = 0, hashlib.sha256()
    for batch in partition.open().batches(500):
        assert batch.first_row == partition.first_row + rows
        rows += batch.rows
        for values in (batch.x, batch.y, batch.weights):
            digest.update(values.tobytes())
    print(partition.first_row, partition.n_rows, rows, digest.hexdigest())
"""


def opened(name: str, folder: Path, truth: Truth = TRUTH) -> Dataset:
    source: Source = SOURCES[name](truth, folder)
    return open_dataset(*source.args, **source.options)


def edges_of(partitions: list[Partition]) -> list[int]:
    edges = [partition.first_row for partition in partitions]
    for partition, (first, last) in zip(partitions, pairwise([*edges, TRUTH.rows]), strict=True):
        assert partition.n_rows == last - first
    return [*edges, TRUTH.rows]


def check_rows(partitions: list[Partition], rows: int) -> None:
    for partition, (first, last) in zip(partitions, pairwise(edges_of(partitions)), strict=True):
        at = first
        for batch in partition.open().batches(rows):
            stop = min(at + rows, last)
            assert (batch.first_row, batch.rows) == (at, stop - at)
            np.testing.assert_array_equal(batch.x, TRUTH.x[at:stop])
            np.testing.assert_array_equal(plain(batch.y), TRUTH.y[at:stop])
            np.testing.assert_array_equal(batch.weights, TRUTH.weights[at:stop])
            at = stop
        assert at == last


@pytest.mark.parametrize("n", [1, 3, 8])
@pytest.mark.parametrize("name", SOURCES)
def test_partitions_are_the_rows_of_the_whole(name: str, n: int, tmp_path: Path) -> None:
    partitions = opened(name, tmp_path).partitions(n)
    check_rows(partitions, 400)
    if name in IN_ONE or name in BETWEEN_FILES - {"csv_gz_folder"}:
        assert len(partitions) == 1
    elif name == "csv_gz_folder":
        assert edges_of(partitions) == {1: [0, 2500], 3: [0, 701, 2500], 8: [0, 700, 701, 2500]}[n]
    else:
        assert len(partitions) == (n if "parquet_" not in name else {1: 1, 3: 2, 8: 3}[n])
        if name in ("parquet", "feather", "memory_url", "memory_url_arrow"):
            assert all(edge % 333 == 0 for edge in edges_of(partitions)[:-1])


@pytest.mark.parametrize("name", ["parquet", "feather", "pandas", "array", "npz", "hdf5_columns"])
def test_more_partitions_than_can_be(name: str, tmp_path: Path) -> None:
    partitions = opened(name, tmp_path).partitions(3000)
    assert len(partitions) == (8 if name in ("parquet", "feather") else 2500)
    assert sum(partition.open().n_rows for partition in partitions) == TRUTH.rows


@pytest.mark.parametrize("name", ["parquet_folder", "feather", "polars", "array_with_all", "memmap", "hdf5"])
def test_a_partition_is_a_dataset(name: str, tmp_path: Path) -> None:
    """It can be split again, started at any row, and read with other columns."""
    one, other = opened(name, tmp_path).partitions(2)
    last = other.open()
    first = last.first_row
    check_rows([one, *last.partitions(3)], 77)
    x = np.concatenate([batch.x for batch in last.batches(100, first + 5)])
    np.testing.assert_array_equal(x, TRUTH.x[first + 5 :])
    for start in (first - 1, TRUTH.rows + 1):
        with pytest.raises(ParameterError, match=f"start must be .*; got {start}"):
            last.batches(100, start)
    assert list(last.batches(100, TRUTH.rows)) == []
    if last.feature_names is not None:
        batch = next(last.select(["gap", "red"]).batches(50))
        np.testing.assert_array_equal(batch.x, TRUTH.x[first : first + 50, [4, 0]])


def test_partitions_are_read_in_another_process(tmp_path: Path) -> None:
    elsewhere: list[Partition] = []
    for name in sorted(SOURCES.keys() - NOT_ELSEWHERE):
        (tmp_path / name).mkdir()
        partitions = opened(name, tmp_path / name).partitions(3)
        largest = max(len(pickle.dumps(partition)) for partition in partitions)
        whole = TRUTH.x.nbytes + TRUTH.table.nbytes
        assert largest < (9000 if name not in MEMORY else 0.6 * whole), name
        elsewhere += partitions
    done = subprocess.run(
        [sys.executable, "-c", READ_ELSEWHERE], input=pickle.dumps(elsewhere), capture_output=True, check=True
    )
    here = []
    for partition in elsewhere:
        digest = hashlib.sha256()
        for batch in partition.open().batches(500):
            for values in (batch.x, batch.y, batch.weights):
                digest.update(values.tobytes())
        here.append(f"{partition.first_row} {partition.n_rows} {partition.n_rows} {digest.hexdigest()}")
    assert done.stdout.decode().splitlines() == here


MEMORY = {"pandas", "polars", "arrow_table", "array", "array_with_all", "memmap", "npy", "npy_by_column"}


@pytest.mark.parametrize("name", ["parquet", "feather"])
def test_only_rows_of_the_partition_are_read(name: str, tmp_path: Path) -> None:
    part = opened(name, tmp_path).partitions(8)[3].open()
    assert [piece.first_row for piece in part._pieces(10**6, Span(999, 1332), ())] == [999]


def test_empty_files_are_partitions_without_rows(tmp_path: Path) -> None:
    for i, rows in enumerate(["", "1,a\n2,b\n", "", "3,a\n"]):
        (tmp_path / f"{i}.csv").write_text(f"v,y\n{rows}")
    data = open_dataset(tmp_path, target="y", types={"v": "float64", "y": "string"})
    partitions = data.partitions(10)
    assert [(part.first_row, part.n_rows) for part in partitions] == [(0, 0), (0, 2), (2, 0), (2, 1)]
    found = [[batch.x.ravel().tolist() for batch in part.open().batches(5)] for part in partitions]
    assert found == [[], [[1, 2]], [], [[3]]]


def test_rows_may_be_counted_elsewhere(tmp_path: Path) -> None:
    for i in range(3):
        (tmp_path / f"{i}.csv").write_text("v,y\n" + f"{i},{i}\n" * (i + 1))
    cut = open_dataset(tmp_path, target="y")._cut(3)
    assert [(part.first_row, part.n_rows) for part in cut] == [(None, None)] * 3
    counts = [pickle.loads(pickle.dumps(part)).open().count_rows() for part in cut]
    assert counts == [1, 2, 3]
    assert [part.first_row for part in numbered(cut, counts)] == [0, 1, 3]


@pytest.mark.parametrize("name", SOURCES)
def test_rows_with_a_weight_are_counted(name: str, tmp_path: Path) -> None:
    truth = make_truth()
    truth.weights[::3] = 0
    truth.table = truth.table.set_column(6, "w", pa.array(truth.weights))
    data = opened(name, tmp_path, truth)
    used = [partition.open().count_used_rows() for partition in data.partitions(4)]
    assert sum(used) == data.count_used_rows() == np.count_nonzero(truth.weights)


def test_a_changed_file_is_noticed_in_its_partition(tmp_path: Path) -> None:
    data = opened("parquet", tmp_path)
    partition = data.partitions(3)[1]
    pq.write_table(TRUTH.table.slice(1), tmp_path / "a.parquet", row_group_size=333)
    with pytest.raises(ChangedSourceError):
        list(partition.open().batches(100))


@pytest.mark.parametrize("kind", ["file", "array"])
def test_errors_of_a_partition_name_the_row_of_the_whole(kind: str, tmp_path: Path) -> None:
    x = np.zeros((1000, 2))
    x[777, 1] = np.inf
    source: Any = x
    if kind == "file":
        source = tmp_path / "a.parquet"
        labels = pa.array([None if i == 444 else 1 for i in range(1000)])
        pq.write_table(pa.table({"a": x[:, 0], "b": x[:, 1], "y": labels}), source, row_group_size=100)
    data = open_dataset(source, target="y" if kind == "file" else None)
    partitions = data.partitions(5)
    with pytest.raises(InfiniteValueError, match="row 777"):
        list(partitions[3].open().batches(300))
    if kind == "file":
        with pytest.raises(MissingLabelError, match="row 444"):
            list(partitions[2].open().batches(300))


def test_edges_are_the_nearest_that_are_possible() -> None:
    assert nearest_edges([0, 10, 20, 30], 3) == [0, 10, 20, 30]
    assert nearest_edges([0, 1, 2, 99, 100], 2) == [0, 2, 100]
    assert nearest_edges([0, 40, 61, 100], 2) == [0, 40, 100]
    assert nearest_edges([5, 5, 5], 4) == [5, 5]
    with pytest.raises(ParameterError, match="n must be at least 1; got 0"):
        open_dataset(np.zeros((3, 2))).partitions(0)


def test_names_are_those_of_the_tests() -> None:
    assert SOURCES.keys() >= BETWEEN_FILES | IN_ONE | NOT_ELSEWHERE | MEMORY
    assert len(NAMES) == TRUTH.x.shape[1]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_partitions_of_relative_paths_are_read_from_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    frame = pd.DataFrame({"a": np.arange(6.0), "y": [0, 1] * 3})
    (frame.to_parquet if ending == "parquet" else frame.to_csv)(tmp_path / f"rows.{ending}", index=False)
    monkeypatch.chdir(tmp_path)
    sent = pickle.dumps(open_dataset(f"rows.{ending}", target="y").partitions(2))
    monkeypatch.chdir("/")
    rows = [batch.x for part in pickle.loads(sent) for batch in part.open().batches(10)]
    np.testing.assert_array_equal(np.concatenate(rows)[:, 0], frame["a"])
