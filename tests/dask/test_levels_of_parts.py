"""Text columns on a cluster: levels are learned by partition, and the forest is that of one machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from cluster_cases import same, table
from clusters import cluster_of
from distributed import Client

import oldgrowth.dask
from oldgrowth import RandomForestClassifier, open_dataset

SIZES = {"n_estimators": 6, "bucket_size": 400, "top_sample": 500, "random_state": 3}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with cluster_of(2) as client:
        yield client


def with_text() -> pd.DataFrame:
    """Text of few levels, and of many of which each part of the rows has others."""
    frame = table().drop(columns=["value", "weight"])
    rng = np.random.default_rng(1)
    frame["city"] = rng.choice(["rome", "oslo", "bonn", None], len(frame))
    frame["zone"] = [f"zone {i // 50 + rng.integers(0, 9)}" for i in range(len(frame))]
    return frame


def test_levels_of_partitions_of_files(client: Client, tmp_path: Path) -> None:
    frame = with_text()
    for i, first in enumerate(range(0, len(frame), 2500)):
        frame.iloc[first : first + 2500].to_parquet(tmp_path / f"{i}.parquet", row_group_size=700)
    data = open_dataset(tmp_path, target="label")
    one = RandomForestClassifier(**SIZES).fit(data)
    found = oldgrowth.dask.RandomForestClassifier(client=client, **SIZES).fit(data)
    same(found, one)
    assert found.levels_ == one.levels_
    assert list(found.levels_["zone"]) == list(dict.fromkeys(frame["zone"]))
    assert [stage.name for stage in found.fit_report_.stages][:2] == ["levels", "sample"]


@pytest.mark.parametrize("kind", ["string", "category"])
def test_levels_of_a_dask_frame(client: Client, kind: str) -> None:
    frame = with_text()
    frame = frame.astype({"city": kind, "zone": kind})
    one = RandomForestClassifier(**SIZES).fit(frame.drop(columns="label"), frame["label"])
    lazy = dd.from_pandas(frame, npartitions=5)
    found = oldgrowth.dask.RandomForestClassifier(client=client, **SIZES).fit(lazy, "label")
    assert found.forest_.digest() == one.forest_.digest() and found.levels_ == one.levels_
    predicted = found.predict(lazy.drop(columns="label"))
    assert (predicted.compute().to_numpy() == one.predict(frame.drop(columns="label"))).all()
