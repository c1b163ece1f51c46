"""Real clusters of processes on this machine."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster

from oldgrowth.cluster.node import NODES


@contextmanager
def cluster_of(workers: int, **options: Any) -> Iterator[Client]:
    usual: dict[str, Any] = {"protocol": "tcp", "dashboard_address": None, "processes": True}
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, **(usual | options)) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextmanager
def further_worker(
    client: Client, environment: Mapping[str, str] | None = None, before: str = ""
) -> Iterator[str]:
    """A further worker; with `before`, among mounts of its own that this command makes. Its address."""
    present = set(client.scheduler_info()["workers"])
    command = [sys.executable, "-m", "distributed.cli.dask_worker", client.scheduler.address]
    command += ["--no-nanny", "--nthreads", "1", "--no-dashboard"]
    if before:
        command = ["unshare", "-m", "sh", "-c", f"{before} && exec {shlex.join(command)}"]
    process = subprocess.Popen(command, env={**os.environ, **(environment or {})})
    try:
        client.wait_for_workers(len(present) + 1, timeout=60)
        yield next(iter(set(client.scheduler_info()["workers"]) - present))
    finally:
        process.kill()
        process.wait()


def process_of(client: Client, number: int = 0) -> int:
    """The process of a worker."""
    return list(client.cluster.workers.values())[number].pid


def address_of(client: Client, number: int = 0) -> str:
    worker: str = list(client.cluster.workers.values())[number].worker_address
    return worker


def folder_of(client: Client, number: int = 0) -> Path | None:
    """Where a worker has its files of a fit."""
    worker = address_of(client, number)
    return client.run(_folder, workers=[worker])[worker]


def _folder() -> Path | None:
    return next((node.workspace.get().path for node in NODES._nodes.values()), None)


def once_in(stage: str, share: float, action: Callable[[], None]) -> Callable[[Any], None]:
    """A callback of a fit that does something once, when a stage has come so far."""
    done = []

    def callback(progress: Any) -> None:
        if progress.stage == stage and progress.rows > share * (progress.total_rows or 1e18) and not done:
            done.append(True)
            action()

    callback.done = done  # type: ignore[attr-defined]
    return callback


def kill(client: Client, number: int = 0) -> None:
    os.kill(process_of(client, number), signal.SIGKILL)
