"""Neither the partitions of the rows, nor the workers, nor the kind of source show in the forest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from cluster_cases import same, table
from clusters import cluster_of
from distributed import Client

import oldgrowth
import oldgrowth.dask
from oldgrowth.cluster import driver

FEATURES = list("abcde")
SIZES = {"n_estimators": 4, "bucket_size": 1200, "top_sample": 900, "random_state": 3, "oob_score": True}
pytestmark = [pytest.mark.torture, pytest.mark.filterwarnings("ignore:.*seen by every tree")]


def pieces(frame: pd.DataFrame, n: int) -> list[pd.DataFrame]:
    """Of different lengths; if there are several, one has no rows."""
    edges = [0, *sorted(np.random.default_rng(n).integers(1, len(frame), max(0, n - 2))), len(frame)]
    parts = [frame[a:b] for a, b in pairwise(edges)]
    return parts if n == 1 else [*parts[:1], frame[:0], *parts[1:]]


def files(folder: Path, parts: list[pd.DataFrame], ending: str) -> tuple[Any, ...]:
    for i, part in enumerate(parts):
        write = part.to_parquet if ending == "parquet" else part.to_csv
        write(folder / f"{i:02}.{ending}", index=False)
    return (oldgrowth.open_dataset(f"{folder}/*.{ending}", features=FEATURES, target="label"),)


def frames(folder: Path, parts: list[pd.DataFrame]) -> tuple[Any, ...]:
    lazy = dd.concat([dd.from_pandas(part, npartitions=1) for part in parts])
    return lazy[FEATURES], lazy["label"]


def arrays(folder: Path, parts: list[pd.DataFrame]) -> tuple[Any, ...]:
    whole, chunks = pd.concat(parts), tuple(len(part) for part in parts)
    labels = whole["label"].to_numpy(dtype="U3")
    return da.from_array(whole[FEATURES].to_numpy(), chunks=(chunks, -1)), da.from_array(labels, chunks=500)


SOURCES: dict[str, Callable[[Path, list[pd.DataFrame]], tuple[Any, ...]]] = {
    "parquet": lambda folder, parts: files(folder, parts, "parquet"),
    "csv": lambda folder, parts: files(folder, parts, "csv"),
    "dask DataFrame": frames,
    "dask Array": arrays,
}


@pytest.fixture(scope="module", params=[1, 2, 4])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    with cluster_of(request.param) as client:
        yield client


@pytest.fixture(scope="module")
def one() -> Any:
    frame = table()
    return oldgrowth.RandomForestClassifier(**SIZES, n_jobs=1).fit(frame[FEATURES], frame["label"])


@pytest.mark.parametrize("n", [1, 4, 17])
@pytest.mark.parametrize("source", SOURCES)
def test_the_same_forest(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one: Any, source: str, n: int
) -> None:
    monkeypatch.setattr(driver, "RANGE_BYTES", 30_000)
    rows = SOURCES[source](tmp_path, pieces(table(), n))
    same(oldgrowth.dask.RandomForestClassifier(**SIZES, client=client).fit(*rows), one)
