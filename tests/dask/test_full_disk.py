"""A worker with a small disk: its spill directory is a file system of its own, seen by its process alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
from cluster_cases import CASES, parquet, same, table
from clusters import cluster_of, further_worker, once_in
from distributed import Client

from oldgrowth.errors import FullWorkerError, WorkerDiskError

SIZES = {"bucket_size": 3000, "n_estimators": 24, "trees_per_top": 1}
pytestmark = [
    pytest.mark.torture,
    pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can mount"),
]


@contextmanager
def small_disk(client: Client, spill: Path, size: str) -> Iterator[str]:
    """A further worker; its address."""
    with further_worker(client, before=f"mount -t tmpfs -o size={size} none {spill}") as address:
        yield address


@pytest.fixture
def files(tmp_path: Path) -> str:
    (tmp_path / "spill").mkdir()
    return parquet(tmp_path / "rows", pd.concat([table(i) for i in range(8)]))


def test_a_disk_that_is_too_small_is_found_before_rows_are_distributed(tmp_path: Path, files: str) -> None:
    spill = tmp_path / "spill"
    stages: list[str] = []
    with (
        cluster_of(1) as client,
        small_disk(client, spill, "700k") as address,
        pytest.raises(WorkerDiskError, match=f"disk of worker {address}.* too small: .* are needed"),
    ):
        CASES["gini"].fitted(files, lambda p: stages.append(p.stage), client=client, spill_dir=spill, **SIZES)
    assert "sample" in stages and "distribute" not in stages


def test_a_small_disk_means_more_rounds_and_a_full_one_is_named(tmp_path: Path, files: str) -> None:
    spill, checkpoint = tmp_path / "spill", tmp_path / "fit"
    one = CASES["gini"].fitted(files, store="disk", n_jobs=1, **SIZES)
    more = SIZES | {"spill_dir": spill, "checkpoint_dir": checkpoint}
    with cluster_of(1) as client, small_disk(client, spill, "12m") as address:

        def fill() -> None:
            client.run(write_all, str(spill / "other.bin"), workers=[address])

        def write_all(path: str) -> None:  # in the worker, which does not have this module
            try:
                with open(path, "wb", buffering=0) as file:
                    while file.write(bytes(2**16)):
                        pass
            except OSError:
                pass

        with pytest.raises(FullWorkerError, match=f"Worker {address}.*disk .* full"):
            CASES["gini"].fitted(files, once_in("distribute", 0.1, fill), client=client, **more)
        client.run(os.remove, str(spill / "other.bin"), workers=[address])
        found = CASES["gini"].fitted(files, client=client, **more)
    same(found, one)
    assert found.fit_report_.rounds > 1
