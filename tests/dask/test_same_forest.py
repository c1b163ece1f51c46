"""A forest that was fitted on a cluster is the one of a single machine, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_cases import CASES, SOURCES, same, table
from clusters import cluster_of
from distributed import Client

from oldgrowth.cluster import driver

TORTURE = pytest.mark.torture
SHORT = {"parquet": ("balanced_subsample", "extra trees, values", "split again"), "csv": ("baseline",)}
CASES_BY_SOURCE = [
    pytest.param(source, name, marks=() if name in SHORT[source] else TORTURE)
    for source in SOURCES
    for name in CASES
]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with cluster_of(4) as client:
        yield client


@pytest.mark.filterwarnings("ignore:.*seen by every tree")
@pytest.mark.parametrize(("source", "name"), CASES_BY_SOURCE)
def test_the_forest_is_that_of_one_machine(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, name: str
) -> None:
    monkeypatch.setattr(driver, "RANGE_BYTES", 10_000)
    case, files = CASES[name], SOURCES[source](tmp_path / "rows", table())
    one = case.fitted(files, store="disk", n_jobs=1)
    spill = tmp_path / "spill"
    found = case.fitted(files, client=client, spill_dir=spill)
    same(found, one)
    assert found.fit_report_.buckets == one.fit_report_.buckets
    assert found.fit_report_.buckets_split == one.fit_report_.buckets_split
    assert list(spill.iterdir()) == []
