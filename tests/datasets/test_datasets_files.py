"""Which files a source consists of, in which order, and whether they match."""

from __future__ import annotations

import sys
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataset_sources import plain
from oldgrowth import open_dataset
from oldgrowth.datasets.batches import Span
from oldgrowth.errors import (
    DifferentFilesError,
    DuplicateColumnError,
    MissingColumnError,
    MissingExtraError,
    NoDataError,
    ParameterError,
    SameRoleError,
    UnknownSourceError,
)


def write(path: Path, **columns) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def values(source, **roles) -> list:
    return np.concatenate([batch.x for batch in open_dataset(source, **roles).batches(2)]).tolist()


def test_order_of_files(tmp_path):
    for number, name in enumerate(["b", "c/a", "a"]):
        write(tmp_path / f"{name}.parquet", v=[number])
    assert values(tmp_path) == values(f"{tmp_path}/") == [[2], [0], [1]]
    assert values(f"{tmp_path}/*.parquet") == [[2], [0]]
    assert values(f"{tmp_path}/**/*.parquet") == [[2], [0], [1]]
    assert values([tmp_path / "c", str(tmp_path / "b.parquet")]) == [[1], [0]]


def test_rows_before_the_start_are_not_read(tmp_path):
    for name in "abc":
        pq.write_table(pa.table({"v": np.arange(100)}), tmp_path / f"{name}.parquet", row_group_size=30)
    data = open_dataset(tmp_path)
    for start, first in ((0, 0), (59, 30), (60, 60), (99, 90), (100, 100), (250, 230)):
        assert next(data._pieces(10, Span(start), ())).first_row == first


def test_dots_in_names(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1], "a.b": [2], "a.b.c": [3]}), path)
    assert values(path, features=["a.b"]) == [[2]] and values(path, features=["a.b.c", "a"]) == [[3, 1]]


def test_home_and_relative_paths(tmp_path, monkeypatch):
    write(tmp_path / "a.parquet", v=[1])
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert values("~/a.parquet") == values("a.parquet") == values(["a.parquet", "~/a.parquet"])[:1] == [[1]]
    assert open_dataset("a.parquet").fingerprint() == open_dataset("~/a.parquet").fingerprint()


def test_files_that_are_no_data(tmp_path):
    write(tmp_path / "a.parquet", v=[1])
    for name in (
        "_SUCCESS",
        ".a.parquet.crc",
        "_old.parquet",
        "README.md",
        ".hidden/a.parquet",
        "_tmp/a.parquet",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"nothing")
    assert values(tmp_path) == [[1]]


def test_names_with_wildcards_in_them(tmp_path):
    write(tmp_path / "a[1].parquet", v=[1])
    assert values(tmp_path / "a[1].parquet") == [[1]]


def test_nothing_matches(tmp_path):
    for source in (tmp_path, tmp_path / "a.parquet", f"{tmp_path}/*.csv", [tmp_path / "b.csv"]):
        with pytest.raises(NoDataError, match="no file matches"):
            open_dataset(source)
    with pytest.raises(NoDataError, match="empty"):
        open_dataset([])


def test_no_rows(tmp_path):
    empty = write(tmp_path / "a.parquet", v=pa.array([], pa.int64()))
    with pytest.raises(NoDataError, match=r"a.parquet .*no rows"):
        open_dataset(empty)
    write(tmp_path / "b.parquet", v=[1])
    assert values(tmp_path) == [[1]]
    for source in (np.empty((0, 2)), pa.table({"a": pa.array([], pa.int64())})):
        with pytest.raises(NoDataError, match="no rows"):
            open_dataset(source)


def test_formats(tmp_path):
    write(tmp_path / "data", v=[1])
    assert values(tmp_path / "data") == values(tmp_path / "data", format="parquet") == [[1]]
    (tmp_path / "lines").write_text("a,b\n1,2\n")
    assert values(tmp_path / "lines", format="csv") == [[1, 2]]
    with pytest.raises(UnknownSourceError, match=r"lines .*Give format="):
        open_dataset(tmp_path / "lines")
    with pytest.raises(ParameterError, match="format must be one of"):
        open_dataset(tmp_path / "lines", format="excel")
    write(tmp_path / "a.parquet", v=[1])
    (tmp_path / "a.csv").write_text("v\n1\n")
    with pytest.raises(UnknownSourceError, match="different formats"):
        open_dataset(tmp_path)


def test_partitions_are_columns(tmp_path):
    write(tmp_path / "year=2020" / "kind=a b" / "x.parquet", v=[1, 2])
    write(tmp_path / "year=2021" / "kind=c%2Fd" / "x.parquet", v=[3])
    data = open_dataset(tmp_path, target="kind")
    assert data.feature_names == ("v", "year")
    (batch,) = data.batches(10, carry=["kind"])
    assert batch.x.tolist() == [[1, 2020], [2, 2020], [3, 2021]]
    assert plain(batch.y).tolist() == batch.carried["kind"].to_pylist() == ["a b", "a b", "c/d"]
    assert values(f"{tmp_path}/*/*/x.parquet", target="kind") == batch.x.tolist()
    assert values(tmp_path, features=["year"]) == [[2020], [2020], [2021]]
    assert values(f"{tmp_path}/year=2020/*/x.parquet", features=["v"]) == [[1], [2]]
    assert open_dataset(tmp_path).text_features == (2,)


def test_partitions_without_a_value(tmp_path):
    write(tmp_path / "part=1.5" / "x.parquet", v=[1])
    write(tmp_path / "part=__HIVE_DEFAULT_PARTITION__" / "x.parquet", v=[2])
    np.testing.assert_array_equal(values(tmp_path), [[1, 1.5], [2, np.nan]])
    write(tmp_path / "x.parquet", v=[1])
    with pytest.raises(DifferentFilesError, match=r"'part' of .*x.parquet"):
        open_dataset(tmp_path)


def test_missing_columns(tmp_path):
    path = write(tmp_path / "a.parquet", height=[1], label=[1])
    with pytest.raises(MissingColumnError, match=r"a.parquet has no column 'lable'. Did you mean 'label'\?"):
        open_dataset(path, target="lable")
    for roles in ({"features": ["width"]}, {"weight": "width"}):
        with pytest.raises(MissingColumnError, match="Its columns are 'height' and 'label'"):
            open_dataset(path, **roles)


def test_roles_that_do_not_fit(tmp_path):
    path = write(tmp_path / "a.parquet", a=[1], b=[1])
    with pytest.raises(DuplicateColumnError, match="named twice"):
        open_dataset(path, features=["a", "a"])
    with pytest.raises(SameRoleError, match="is a feature, and also target"):
        open_dataset(path, features=["a", "b"], target="a")
    with pytest.raises(DuplicateColumnError, match="more than once"):
        open_dataset(pa.Table.from_arrays([pa.array([1]), pa.array([1])], ["a", "a"]))
    with pytest.raises(NoDataError, match="no column is left"):
        open_dataset(path, features=[])
    for name, value in (("target", 3), ("weight", np.ones(1)), ("features", "a")):
        with pytest.raises(ParameterError, match=name):
            open_dataset(path, **{name: value})


def test_files_with_other_columns(tmp_path):
    write(tmp_path / "1.parquet", a=[1], y=[1])
    second = tmp_path / "2.parquet"
    for columns, match in (
        ({"y": [1]}, r"'a' of .*2.parquet is missing.*1.parquet"),
        ({"a": [1], "b": [1], "y": [1]}, r"'b' of .*2.parquet is not in .*1.parquet"),
        ({"a": ["u"], "y": [1]}, r"'a' of .*2.parquet has type string.*int64"),
        ({"a": [1], "y": [1.5]}, r"'y' of .*2.parquet has type double.*int64"),
    ):
        write(second, **columns)
        with pytest.raises(DifferentFilesError, match=match):
            open_dataset(tmp_path, target="y")
    write(second, y=[2], b=["u"], a=[0.5])
    assert values(tmp_path, target="y", features=["a"]) == [[1], [0.5]]


def test_urls():
    system = fsspec.filesystem("memory")
    x = np.arange(6.0).reshape(3, 2)
    for name, save in (("x.npy", np.save), ("x.npz", lambda file, x: np.savez(file, X=x))):
        with fsspec.open(f"memory://urls/{name}", "wb") as file:
            save(file, x)
        assert values(f"memory://urls/{name}") == x.tolist()
    system.pipe("/urls/a/k=1/x.csv", b"v\n1\n")
    system.pipe("/urls/a/k=2/x.csv", b"v\n5\n")
    assert values("memory://urls/a") == values("memory://urls/a/*/x.csv") == [[1, 1], [5, 2]]
    with pytest.raises(NoDataError, match="no file matches"):
        open_dataset("memory://urls/nothing.csv")
    with pytest.raises(NoDataError, match="gopher"):
        open_dataset("gopher://nowhere/a.csv")


def test_missing_packages(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    (tmp_path / "a.h5").write_bytes(b"\x89HDF")
    with pytest.raises(MissingExtraError, match=r"pip install 'h5py>="):
        open_dataset(tmp_path / "a.h5")
    with pytest.raises(MissingExtraError, match=r"pip install 'fsspec>="):
        open_dataset("s3://bucket/a.parquet")


def test_fingerprint_tells_data_apart(tmp_path):
    path = write(tmp_path / "a.parquet", a=[1], b=[1])
    prints = [
        open_dataset(path, **roles).fingerprint() for roles in ({}, {"target": "a"}, {"features": ["b", "a"]})
    ]
    write(path, a=[1], b=[2])
    prints.append(open_dataset(path).fingerprint())
    table = pa.table({"a": np.arange(5000), "y": ["u"] * 5000})
    for other in (table, table.slice(1), table.set_column(1, "y", pa.array(["v"] * 5000))):
        prints += [open_dataset(form, target="y").fingerprint() for form in (other, other.to_pandas())]
    for x in (np.zeros((3, 2)), np.ones((3, 2)), np.zeros((3, 2), np.float32)):
        prints.append(open_dataset(x).fingerprint())
    assert all(one != other for i, one in enumerate(prints) for other in prints[:i])
