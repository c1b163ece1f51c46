"""Few tasks, whatever the number of buckets; each costs little."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cluster_cases import CASES, ROWS, parquet, table
from clusters import cluster_of
from distributed import Client
from distributed.utils import key_split

from oldgrowth.cluster.fleet import Job
from oldgrowth.cluster.handing_out import run
from oldgrowth.cluster.values import Settings
from oldgrowth.dask.fleet import DaskFleet, on_workers

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from cluster_model import Rates


def without_equal_rows() -> pd.DataFrame:
    return table().assign(e=np.arange(ROWS) / 7.0)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with cluster_of(2) as client:
        yield client


def tasks_of(
    client: Client, files: str, monkeypatch: pytest.MonkeyPatch, **sizes: int
) -> tuple[list[str], int]:
    """The names of the tasks of a fit, and its buckets."""
    keys: list[str] = []
    start = DaskFleet.start

    def counted(fleet: DaskFleet, worker: str, job: Job) -> Any:
        keys.append(job.name)
        return start(fleet, worker, job)

    monkeypatch.setattr(DaskFleet, "start", counted)
    found = CASES["gini"].fitted(files, client=client, **sizes)
    return keys, found.fit_report_.buckets


def test_tasks_do_not_depend_on_buckets(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = parquet(tmp_path / "rows", without_equal_rows())
    few, fewer_buckets = tasks_of(client, files, monkeypatch, bucket_size=3000, top_sample=2000)
    monkeypatch.undo()
    many, more_buckets = tasks_of(client, files, monkeypatch, bucket_size=250, top_sample=2000)
    assert more_buckets > 5 * fewer_buckets

    def counts(names: list[str]) -> dict[str, int]:  # without large buckets that are split again
        kinds = [key_split(f"oldgrowth-{name}-0a1b2c3d") for name in names if not name.startswith("split")]
        return {kind: kinds.count(kind) for kind in kinds}

    assert counts(few) == counts(many)
    assert set(counts(few)) == {f"oldgrowth-{kind}" for kind in ("learn", "top-tree", "route", "grow")}


def test_tasks_of_splitting_do_not_depend_on_buckets(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = parquet(tmp_path / "rows", without_equal_rows())
    names, buckets = tasks_of(client, files, monkeypatch, top_sample=300, bucket_size=40, trees_per_top=3)
    assert buckets > 200
    steps, groups = 4, 3  # at most, for each of two top trees: buckets have about 200 rows before
    assert 4 <= sum(name.startswith("split") for name in names) <= 2 * 2 * steps * groups


def _nothing(node: Any) -> None:
    pass


@pytest.mark.torture
def test_a_task_costs_about_what_the_model_says(client: Client) -> None:
    """Processor time of this process, with client and scheduler: wall time depends on what else runs."""
    settings = Settings(uuid.uuid4().hex, client.id, "auto", None, "auto", None)
    n = 5000
    with on_workers(client, settings, 60.0, False) as fleet:
        fleet.workers()
        started = time.process_time()
        run(fleet, [Job(f"nothing-{i}", _nothing, tuple) for i in range(n)], lambda *_: None)
        spent = time.process_time() - started
    assert spent / n < 2 * Rates(1, 1, 1, 1).task
