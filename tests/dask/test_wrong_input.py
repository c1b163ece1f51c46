"""What cannot be fitted or predicted is refused at the start, by the names that its user knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pytest
from cluster_cases import parquet, table
from clusters import cluster_of
from distributed import Client

import oldgrowth
from oldgrowth.cluster import client_disk
from oldgrowth.dask import RandomForestClassifier, RandomForestRegressor, SubsetForestClassifier
from oldgrowth.errors import (
    ClientDiskError,
    DataError,
    MissingColumnError,
    MissingLabelError,
    ParameterError,
    UnusableWorkerError,
    WeightError,
    WorkerMemoryError,
)
from oldgrowth.system.limits import DiskSpace

FRAME = table()
FEATURES = list("abcde")
LAZY = dd.from_pandas(FRAME, npartitions=4)
X = LAZY[FEATURES]
ARRAY = da.from_array(FRAME[FEATURES].to_numpy(), chunks=(1000, -1))


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with cluster_of(1) as client:
        yield client


def forest(**more: Any) -> Any:
    return RandomForestClassifier(2, random_state=0, **more)


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "y is an array": (
        lambda: forest().fit(X, FRAME["label"].to_numpy()),
        ParameterError,
        "y must be a dask Series or the name of a column, as X is a dask DataFrame",
    ),
    "weights of pandas": (
        lambda: forest().fit(X, LAZY["label"], FRAME["weight"]),
        ParameterError,
        "sample_weight must be a dask Series or the name of a column",
    ),
    "y has two columns": (
        lambda: forest().fit(X, LAZY[["label", "value"]]),
        ParameterError,
        "y must be a dask",
    ),
    "no such column": (lambda: forest().fit(LAZY, "lable"), MissingColumnError, "dask DataFrame.*'label'"),
    "y of an array is an array": (
        lambda: forest().fit(ARRAY, FRAME["label"].to_numpy()),
        ParameterError,
        "y must be a dask Array of one dimension, as X is a dask Array",
    ),
    "y has two dimensions": (
        lambda: forest().fit(ARRAY, da.zeros((6000, 2), chunks=1000)),
        ParameterError,
        "y must be a dask Array of one dimension",
    ),
    "y is short": (
        lambda: forest().fit(ARRAY, da.zeros(5999, chunks=1000)),
        DataError,
        "X has 6,000 rows and y has 5,999",
    ),
    "three dimensions": (
        lambda: forest().fit(da.zeros((9, 3, 3), chunks=3), da.zeros(9, chunks=3)),
        DataError,
        "X has 3 dimensions: it must have two",
    ),
    "text in a regressor": (
        lambda: RandomForestRegressor(2).fit(X, LAZY["label"]),
        DataError,
        "target 'y of fit' is text",
    ),
    "negative weights": (
        lambda: forest().fit(X, LAZY["label"], LAZY["weight"] - 5),
        WeightError,
        "row [0-9]+, column sample_weight of fit",
    ),
    "missing values": (
        lambda: RandomForestRegressor(2).fit(X, LAZY["d"]),
        MissingLabelError,
        "row [0-9]+, column y of fit",
    ),
    "no rows": (
        lambda: forest().fit(dd.from_pandas(FRAME[:0], npartitions=1), "label"),
        DataError,
        "all partitions are empty",
    ),
    "only weights of zero": (
        lambda: forest().fit(X, LAZY["label"], LAZY["weight"] * 0),
        DataError,
        "all weights are zero",
    ),
    "out-of-bag scores of subsets": (
        lambda: SubsetForestClassifier(2, oob_score=True).fit(X, LAZY["label"]),
        ParameterError,
        "oob_score must be False on a cluster",
    ),
    "little memory": (
        lambda: forest(memory_limit="100MB").fit(X, LAZY["label"]),
        WorkerMemoryError,
        "Worker tcp://.* too little memory: at least .* 100 MB may be used",
    ),
    "no directory for the model": (
        lambda: forest(model_path="/no/such/place/forest.og").fit(X, LAZY["label"]),
        ParameterError,
        "model_path must be a file in a directory that can be written to",
    ),
    "an address": (
        lambda: forest(client="tcp://scheduler:8786").fit(X, LAZY["label"]),
        ParameterError,
        "client must be a distributed.Client",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_input_is_refused(client: Client, what: str) -> None:
    attempt, error, said = WRONG[what]
    with pytest.raises(error, match=said):
        attempt()


def test_columns_that_are_missing_from_a_prediction_are_named_at_once(client: Client) -> None:
    fitted = forest(bucket_size=6000).fit(X, LAZY["label"])
    with pytest.raises(MissingColumnError, match="dask DataFrame has no columns 'd' and 'e'"):
        fitted.predict(LAZY[["a", "b", "c"]])
    again = fitted.predict(LAZY[["weight", *reversed(FEATURES)]]).compute()  # columns are found by name
    assert np.array_equal(again, fitted.predict(FRAME[FEATURES]))


def test_a_client_with_a_small_disk_is_refused_before_rows_are_distributed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_disk, "disk_space", lambda directory: DiskSpace(10**9, 200_000))
    forest(bucket_size=500, top_sample=500).fit(X, LAZY["label"])
    stages: list[str] = []
    scored = forest(bucket_size=500, top_sample=500, oob_score=True)
    with pytest.raises(ClientDiskError, match=r"disk of the client .* for trees and .* for out-of-bag votes"):
        scored.fit(X, LAZY["label"], callback=lambda progress: stages.append(progress.stage))
    assert "sample" in stages and "distribute" not in stages


def test_a_closed_client_is_refused(tmp_path: Path) -> None:
    data = oldgrowth.open_dataset(parquet(tmp_path, FRAME), target="label")
    with cluster_of(1) as client:
        pass
    with pytest.raises(ParameterError, match="that is connected"):
        forest(client=client).fit(data)


def test_two_workers_in_a_process_are_refused() -> None:
    with (
        cluster_of(2, processes=False) as client,
        pytest.raises(UnusableWorkerError, match=r"in the same process.*LocalCluster\(processes=True\)"),
    ):
        forest(client=client).fit(X, LAZY["label"])
