"""What a fit on a cluster does when workers are killed, paused, join late, or are not like the others."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster_cases import CASES, parquet, same, table
from clusters import address_of, cluster_of, folder_of, kill, once_in, process_of

import oldgrowth
from oldgrowth.cluster import driver, handing_out
from oldgrowth.cluster.fleet import Job
from oldgrowth.dask import RandomForestClassifier
from oldgrowth.dask.estimators import OnCluster
from oldgrowth.dask.fleet import DaskFleet
from oldgrowth.errors import NoWorkersError, ParameterError, UnsharedRowsError

CASE = CASES["split again"]


@pytest.fixture(autouse=True)
def _small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "RANGE_BYTES", 20_000)


def recorded(monkeypatch: pytest.MonkeyPatch) -> dict[DaskFleet, dict[str, set[str]]]:
    """The jobs that each worker of a fleet is given."""
    begun: dict[DaskFleet, dict[str, set[str]]] = {}
    start = DaskFleet.start

    def record(fleet: DaskFleet, worker: str, job: Job) -> Any:
        begun.setdefault(fleet, {}).setdefault(worker, set()).add(job.name)
        return start(fleet, worker, job)

    monkeypatch.setattr(DaskFleet, "start", record)
    return begun


@pytest.mark.filterwarnings("ignore:.*seen by every tree")
@pytest.mark.parametrize(
    ("stage", "files_are_lost"),
    [
        ("grow", False),
        pytest.param("grow", True, marks=pytest.mark.torture),
        *(
            pytest.param(stage, lost, marks=pytest.mark.torture)
            for stage in ("sample", "top trees", "distribute")
            for lost in (False, True)
        ),
    ],
)
def test_a_killed_worker_does_not_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, files_are_lost: bool
) -> None:
    monkeypatch.setattr(handing_out, "_REBIRTH_SECONDS", 1.0 if files_are_lost else 60.0)
    fleets = recorded(monkeypatch)
    files, spill = parquet(tmp_path / "rows", table()), tmp_path / "spill"
    one = CASE.fitted(files, store="disk", n_jobs=1)
    with cluster_of(3) as client:
        victim = address_of(client)

        def fail() -> None:
            folder = folder_of(client)
            assert folder is not None and folder.parent == spill
            kill(client)
            if files_are_lost:
                shutil.rmtree(folder)

        callback = once_in(stage, 0.2, fail)
        notes: list[str] = []

        def follow(progress: Any) -> None:
            notes.append(progress.note)
            callback(progress)

        found = CASE.fitted(files, callback=follow, client=client, spill_dir=spill)
        assert callback.done  # type: ignore[attr-defined]
    same(found, one)
    assert list(spill.iterdir()) == []
    ((fleet, begun),) = fleets.items()
    name = next(worker for worker in begun if worker.startswith(f"{victim}#"))
    assert set(fleet.redone) <= begun[name]  # what the victim had made, or was making
    if stage in ("distribute", "grow"):
        assert any("workers" in note and "done again" in note for note in notes)
    if stage == "grow" and not files_are_lost:  # the process that came back has the rows of the buckets
        assert found.fit_report_.redone == 1


@pytest.mark.torture
@pytest.mark.filterwarnings("ignore:.*seen by every tree")
def test_two_kills_one_of_them_while_rows_are_made_again(tmp_path: Path) -> None:
    files = parquet(tmp_path / "rows", table())
    one = CASE.fitted(files, store="disk", n_jobs=1)
    with cluster_of(4) as client:
        kills = [once_in("grow", 0.2, lambda: kill(client)), once_in("grow", 0.21, lambda: kill(client, 1))]

        def callback(progress: Any) -> None:
            for one_of_them in kills:
                one_of_them(progress)

        found = CASE.fitted(files, callback=callback, client=client, spill_dir=tmp_path / "spill")
    same(found, one)


@pytest.mark.torture
@pytest.mark.filterwarnings("ignore:.*seen by every tree")
def test_a_paused_worker_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OnCluster, "_patience", 5.0)
    files = parquet(tmp_path / "rows", table())
    one = CASE.fitted(files, store="disk", n_jobs=1)
    with cluster_of(3) as client:
        paused = process_of(client)
        callback = once_in("grow", 0.1, lambda: os.kill(paused, signal.SIGSTOP))
        try:
            found = CASE.fitted(files, callback=callback, client=client, spill_dir=tmp_path / "spill")
        finally:
            os.kill(paused, signal.SIGCONT)
    same(found, one)


@pytest.mark.torture
def test_a_cluster_without_workers_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OnCluster, "_patience", 2.0)
    files = parquet(tmp_path / "rows", table())
    with cluster_of(1) as client:
        callback = once_in("grow", 0.1, lambda: client.cluster.scale(0))
        with pytest.raises(NoWorkersError, match="no worker for 2 seconds"):
            CASE.fitted(files, callback=callback, client=client, spill_dir=tmp_path / "spill")


@pytest.mark.torture
@pytest.mark.filterwarnings("ignore:.*seen by every tree")
def test_workers_may_join_late(tmp_path: Path) -> None:
    files = parquet(tmp_path / "rows", table())
    one = CASE.fitted(files, store="disk", n_jobs=1)
    with cluster_of(1) as client:
        callback = once_in("distribute", 0.1, lambda: client.cluster.scale(3))
        found = CASE.fitted(files, callback=callback, client=client, spill_dir=tmp_path / "spill")
    same(found, one)


def test_rows_that_workers_cannot_read_are_refused() -> None:
    def batches() -> Any:
        yield np.eye(4), np.arange(4)

    with pytest.raises(UnsharedRowsError, match=r"callable .*cannot be read by the workers"):
        RandomForestClassifier().fit(oldgrowth.open_dataset(batches))
    many = np.zeros((2_000_000, 10))
    with pytest.raises(UnsharedRowsError, match="of 176 MB in memory cannot be read by the workers"):
        RandomForestClassifier().fit(many, np.zeros(len(many)))


def test_a_client_is_needed() -> None:
    with pytest.raises(ParameterError, match="client"):
        RandomForestClassifier(2).fit(np.eye(2), np.arange(2))
