"""Few results of jobs are here at a time, and a worker that stops while it sends one is given up."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from clusters import cluster_of
from distributed import Client, get_worker

from oldgrowth.cluster.fleet import Job
from oldgrowth.cluster.handing_out import run
from oldgrowth.cluster.values import Settings
from oldgrowth.dask.fleet import DaskFleet, on_workers


@contextmanager
def fleet_of(client: Client, patience: float) -> Iterator[DaskFleet]:
    settings = Settings(uuid.uuid4().hex, client.id, "auto", None, "auto", None)
    with on_workers(client, settings, patience, False) as fleet:
        fleet.workers()
        yield fleet


@pytest.mark.slow
def test_a_worker_that_stops_while_it_sends_a_result_is_given_up(tmp_path: Path) -> None:
    stopped = tmp_path / "stopped"

    def number(node: Any) -> Any:
        class Stops:
            def __reduce__(self) -> Any:  # called when the result is sent
                if not stopped.exists():
                    stopped.write_text(f"{os.getpid()} {get_worker_address()}")
                    os.kill(os.getpid(), signal.SIGSTOP)
                return int, (7,)

            def __sizeof__(self) -> int:
                return 100

        def get_worker_address() -> str:
            return address

        address = get_worker().address
        return Stops()

    found = []
    with cluster_of(2) as client, fleet_of(client, 4.0) as fleet:
        run(fleet, [Job("number", number, tuple)], lambda job, result, worker: found.append((result, worker)))
        process, address = stopped.read_text().split()
        os.kill(int(process), signal.SIGCONT)
    ((result, worker),) = found
    assert result == 7 and not worker.startswith(address)
    assert fleet.redone == ["number"]


def test_few_results_are_here_at_a_time() -> None:
    most = []
    with cluster_of(4) as client, fleet_of(client, 30.0) as fleet:

        def use(job: Job, result: Any, worker: str) -> None:
            time.sleep(0.2)  # others are finished meanwhile
            most.append(len(fleet._here))

        run(fleet, [Job(f"bytes-{i}", lambda node: bytes(10), tuple) for i in range(8)], use)
        assert not fleet._here or wait_until_none(fleet)
    assert max(most) <= 2


def wait_until_none(fleet: DaskFleet) -> bool:
    deadline = time.monotonic() + 10
    while fleet._here and time.monotonic() < deadline:
        time.sleep(0.05)
    return not fleet._here
