"""Forests that were fitted on dask DataFrames and Arrays are those of the same rows in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import pytest
from cluster_cases import CASES, parquet, same, table
from clusters import cluster_of, kill, once_in
from distributed import Client
from sklearn.base import clone

import oldgrowth
import oldgrowth.dask
from oldgrowth.cluster import driver
from oldgrowth.errors import DataError, TextColumnsError

FEATURES = list("abcde")
TORTURE = pytest.mark.torture
SIZES = {"n_estimators": 6, "bucket_size": 400, "top_sample": 500, "random_state": 3}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with cluster_of(3) as client:
        yield client


@pytest.fixture(autouse=True)
def _small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "RANGE_BYTES", 30_000)


def fitted(name: str, rows: tuple[Any, Any, Any], callback: Any = None, **more: Any) -> Any:
    module = oldgrowth.dask if "client" in more else oldgrowth
    forest = getattr(module, CASES[name].estimator)(**(SIZES | CASES[name].params | more))
    return forest.fit(*rows, **({} if callback is None else {"callback": callback}))


def columns_of(name: str, frame: Any) -> tuple[Any, Any, Any]:
    case = CASES[name]
    return frame[FEATURES], frame[case.target], None if case.weight is None else frame[case.weight]


def in_memory(name: str) -> Any:
    return fitted(name, columns_of(name, table()), n_jobs=1)


def lazy_table() -> Any:
    """With an empty partition."""
    frame = table()
    return dd.concat([dd.from_pandas(frame[:0], npartitions=1), dd.from_pandas(frame, npartitions=5)])


@pytest.mark.filterwarnings("ignore:.*seen by every tree")
@pytest.mark.parametrize(
    "name",
    [pytest.param("gini", marks=TORTURE), "entropy, weights", pytest.param("regression", marks=TORTURE)],
)
def test_a_dask_dataframe(client: Client, tmp_path: Path, name: str) -> None:
    spill = tmp_path / "spill"
    found = fitted(name, columns_of(name, lazy_table()), client=client, spill_dir=spill)
    same(found, in_memory(name))
    assert found.feature_names_in_.tolist() == FEATURES
    assert list(spill.iterdir()) == []


@pytest.mark.torture
@pytest.mark.filterwarnings("ignore:.*seen by every tree")
def test_columns_are_named(client: Client) -> None:
    rows = lazy_table()[[*FEATURES, "label", "weight"]], "label", "weight"
    same(fitted("entropy, weights", rows, client=client), in_memory("entropy, weights"))


@pytest.mark.filterwarnings("ignore:.*seen by every tree")
@pytest.mark.parametrize("name", [pytest.param("oob", marks=TORTURE), "extra trees, values"])
def test_a_dask_array(client: Client, name: str) -> None:
    x, y, weights = (None if a is None else a.to_numpy() for a in columns_of(name, table()))
    lazy_x = da.from_array(x, chunks=((0, 1000, 1, 2999, 2000), -1))
    lazy_weights = None if weights is None else da.from_array(weights, chunks=700)
    found = fitted(name, (lazy_x, da.from_array(y, chunks=1500), lazy_weights), client=client)
    same(found, in_memory(name))
    assert not hasattr(found, "feature_names_in_")


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["oldgrowth", "dask"])
def test_files_by_fsspec(client: Client, tmp_path: Path, reader: str) -> None:
    """As on object storage."""
    address = f"simplecache::local://{parquet(tmp_path / 'rows', table())}/*.parquet"
    if reader == "dask":
        lazy = dd.read_parquet(address, split_row_groups=2, filesystem="fsspec")
        found = fitted("gini", (lazy[FEATURES], lazy["label"], None), client=client)
    else:
        found = CASES["gini"].fitted(address, client=client)
    same(found, in_memory("gini"))


@pytest.mark.torture
@pytest.mark.parametrize("stage", ["sample", "top trees", "distribute", "grow"])
def test_rows_of_a_killed_worker_are_computed_again(tmp_path: Path, stage: str) -> None:
    with cluster_of(3) as client:
        callback = once_in(stage, 0.2, lambda: kill(client))
        more = {"client": client, "spill_dir": tmp_path / "spill"}
        found = fitted("gini", columns_of("gini", lazy_table()), callback, **more)
        assert callback.done  # type: ignore[attr-defined]
    same(found, in_memory("gini"))


def test_what_cannot_be_used_is_named(client: Client) -> None:
    frame = lazy_table()
    forest = oldgrowth.dask.RandomForestClassifier(2, client=client)
    with pytest.raises(DataError, match="y is missing"):
        forest.fit(frame[FEATURES])
    numeric = clone(forest).set_params(categorical_features=None, client=client)
    with pytest.raises(TextColumnsError, match="label"):
        numeric.fit(frame[[*FEATURES, "label"]], frame["label"])
    with pytest.raises(DataError, match=r"2 chunks of columns.*rechunk"):
        forest.fit(da.zeros((10, 4), chunks=(5, 2)), da.zeros(10, chunks=5))
