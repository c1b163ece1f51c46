"""Text columns on a cluster: levels are learned by partition, and the forest is that of one machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from cluster_cases import SOURCES, same, table
from clusters import cluster_of, kill, once_in
from distributed import Client

import oldgrowth.dask
from oldgrowth import RandomForestClassifier, open_dataset
from oldgrowth.errors import DifferentLevelKindsError

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


def with_own_categories(frame: pd.DataFrame, kinds: tuple[str, ...]) -> list[pd.DataFrame]:
    """A partition of each kind, with categories of its own."""
    parts = []
    for kind, places in zip(kinds, np.array_split(np.arange(len(frame)), len(kinds)), strict=True):
        part = frame.iloc[places].copy()
        if kind == "missing":
            part[["city", "zone"]] = np.nan
        if kind == "text":
            part[["city", "zone"]] = part[["city", "zone"]].astype(object)
        elif kind == "none":
            part = part[:0]
            part[["city", "zone"]] = part[["city", "zone"]].astype("category")
        else:  # of the values that are in it, in another order than they occur, and one that is not
            for name in ("city", "zone"):
                levels = sorted(part[name].dropna().unique(), reverse=True)
                part[name] = pd.Categorical(part[name], [*levels, "nowhere"] if kind == "more" else levels)
        parts.append(part)
    return parts


@pytest.mark.parametrize(
    "kinds", [("own", "more", "own"), ("missing", "own", "none", "text", "missing", "more")], ids=str
)
def test_partitions_with_categories_of_their_own(client: Client, kinds: tuple[str, ...]) -> None:
    parts = with_own_categories(with_text(), kinds)
    lazy = dd.from_map(lambda part: part, parts, meta=parts[kinds.index("own")][:0])
    frame = pd.concat([part.astype({"city": object, "zone": object}) for part in parts])
    one = RandomForestClassifier(**SIZES).fit(frame.drop(columns="label"), frame["label"])
    found = oldgrowth.dask.RandomForestClassifier(client=client, **SIZES).fit(lazy, "label")
    same(found, one)
    assert found.levels_ == one.levels_


def test_partitions_with_categories_of_two_kinds_are_refused(client: Client) -> None:
    frame = with_text()
    frame["city"] = pd.Categorical(np.where(np.arange(len(frame)) < 3000, 1, 2))
    texts = frame[3000:].assign(city=pd.Categorical(["rome"] * 3000))
    lazy = dd.from_map(lambda part: part, [frame[:3000], texts], meta=frame[:0])
    with pytest.raises(DifferentLevelKindsError, match="city"):
        oldgrowth.dask.RandomForestClassifier(client=client, **SIZES).fit(lazy, "label")


@pytest.mark.torture
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("given", ["files", "frame"])
def test_a_killed_worker_does_not_show_in_levels(tmp_path: Path, source: str, given: str) -> None:
    frame = with_text()
    data = open_dataset(SOURCES[source](tmp_path / "rows", frame), target="label")
    rows = (data,) if given == "files" else (dd.from_pandas(frame, npartitions=9), "label")
    one = RandomForestClassifier(**SIZES).fit(data)
    with cluster_of(3) as client:
        callback = once_in("levels", 0.1, lambda: kill(client))
        forest = oldgrowth.dask.RandomForestClassifier(client=client, spill_dir=tmp_path / "spill", **SIZES)
        found = forest.fit(*rows, callback=callback)
        assert callback.done  # type: ignore[attr-defined]
    same(found, one)
    assert found.levels_ == one.levels_
