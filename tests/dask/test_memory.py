"""Workers stay within the memory that Dask gives them, and the client does not grow with the rows."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from clusters import cluster_of, process_of
from distributed import Client

import oldgrowth
from oldgrowth.cluster.values import Settings
from oldgrowth.dask import RandomForestClassifier
from oldgrowth.dask.fleet import on_workers

LIMIT = 600_000_000
FEATURES = 75


def write_rows(folder: Path, files: int, rows: int) -> str:
    """Files of so many rows of single precision, with 40,000 values in each column."""
    folder.mkdir()
    for i in range(files):
        rng = np.random.default_rng(i)
        x = rng.integers(0, 40_000, (FEATURES, rows)).astype(np.float32)
        label = (x[0] > x[1]).astype(np.uint8) + (x[2] > 30_000)
        columns = {f"f{j}": column for j, column in enumerate(x)} | {"label": label}
        pq.write_table(pa.table(columns), folder / f"{i:02}.parquet", row_group_size=50_000)
    return str(folder)


def peak(process: int | str) -> int:
    """The most memory that a process has had, in bytes."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def forget_peak(process: int | str = "self") -> None:
    Path(f"/proc/{process}/clear_refs").write_text("5")


def fitted(client: Client, files: str, spill: Path) -> Any:
    """Few trees, whose leaves are many."""
    forest = RandomForestClassifier(2, trees_per_top=1, random_state=0, client=client, spill_dir=spill)
    return forest.fit(oldgrowth.open_dataset(files, target="label"))


def test_workers_do_not_load_scikit_learn() -> None:
    """It would take a third of the memory of a small worker."""
    code = "import sys, oldgrowth.dask.on_worker, oldgrowth.cluster.work; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.fixture
def clients(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Client]:
    workers, limit = request.param
    with cluster_of(workers, memory_limit=limit, local_directory=str(tmp_path / "dask")) as client:
        yield client


def resident_of_workers(client: Client) -> dict[str, int]:
    """The memory that each worker says it had before a fit begins."""
    settings = Settings(uuid.uuid4().hex, client.id, "auto", None, "auto", None)
    with on_workers(client, settings, 60.0, False) as fleet:
        fleet.workers()
        return {worker: facts.resident for worker, facts in fleet.facts().items()}


@pytest.mark.slow
@pytest.mark.parametrize("clients", [(2, 2 * LIMIT)], indirect=True)
def test_workers_give_back_what_a_fit_took(clients: Client, tmp_path: Path) -> None:
    """So that none is refused since it has served other fits."""
    files = write_rows(tmp_path / "rows", 4, 50_000)
    fitted(clients, files, tmp_path / "spill")  # loads what all fits need
    before = resident_of_workers(clients)
    for _ in range(3):
        fitted(clients, files, tmp_path / "spill")
    after = resident_of_workers(clients)
    assert all(after[worker] < before[worker] + 15_000_000 for worker in before)


@pytest.mark.slow
@pytest.mark.parametrize("clients", [(2, 2 * LIMIT)], indirect=True)
def test_the_client_and_the_scheduler_do_not_grow_with_the_rows(clients: Client, tmp_path: Path) -> None:
    """They are this process."""
    peaks = []
    for files in (1, 1, 10):  # the first fit loads what all need
        folder = write_rows(tmp_path / f"rows-{len(peaks)}", files, 50_000)
        forget_peak()
        before = peak("self")
        fitted(clients, folder, tmp_path / "spill")
        peaks.append(peak("self") - before)
    assert peaks[2] < peaks[1] + 24_000_000  # with 135 MB more rows, in 150 MB more of buckets


@pytest.mark.slow
@pytest.mark.parametrize("clients", [(2, 2 * LIMIT)], indirect=True)
def test_a_forest_may_be_larger_than_what_the_client_has(clients: Client, tmp_path: Path) -> None:
    """Of labels that are noise, so that trees have many nodes."""
    rng = np.random.default_rng(0)
    files = tmp_path / "rows.parquet"
    columns = {f"f{i}": rng.random(200_000).astype(np.float32) for i in range(4)}
    pq.write_table(pa.table(columns | {"label": rng.integers(0, 2, 200_000)}), files, row_group_size=50_000)
    model, grown = tmp_path / "forest.og", []
    for trees in (1, 240):  # the first fit loads what all need
        forest = RandomForestClassifier(
            trees, random_state=0, client=clients, spill_dir=tmp_path, model_path=model
        )
        forget_peak()
        before = peak("self")
        forest.fit(oldgrowth.open_dataset(files, target="label"))
        grown.append(peak("self") - before)
    assert oldgrowth.load(model).forest_.digest() == forest.forest_.digest()
    assert model.stat().st_size > 130_000_000
    assert grown[1] < model.stat().st_size / 2


@pytest.mark.torture
@pytest.mark.parametrize("clients", [(4, LIMIT)], indirect=True)
def test_workers_have_five_times_their_memory_of_rows(clients: Client, tmp_path: Path) -> None:
    files = write_rows(tmp_path / "rows", 20, 500_000)  # 3 GB
    processes = [process_of(clients, i) for i in range(4)]
    forget_peak()
    before = peak("self")
    fitted(clients, files, tmp_path / "spill")
    assert [process_of(clients, i) for i in range(4)] == processes  # none was restarted
    peaks = [peak(process) / LIMIT for process in processes]
    print("peaks of workers:", peaks, "client and scheduler:", peak("self") - before)
    assert max(peaks) < 0.75
    said = [entry for entries in clients.get_worker_logs().values() for entry in entries]
    warnings = [line for level, line in said if level != "INFO"]  # each worker tells its memory as it starts
    assert not [line for line in warnings if "memory" in line.lower()]
    assert peak("self") - before < 150_000_000
