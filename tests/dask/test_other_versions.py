"""Workers that would grow another forest are refused by name: a real process, with a changed package."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cluster_cases import CASES, parquet, same, table
from clusters import cluster_of, further_worker
from distributed import Client

import oldgrowth
from oldgrowth.dask.estimators import OnCluster
from oldgrowth.errors import DifferentWorkerError, NoWorkersError

pytestmark = pytest.mark.torture


@contextmanager
def other_worker(client: Client, folder: Path, file: str, old: str, new: str) -> Iterator[str]:
    """A worker whose package has another text in a file; its address."""
    package = folder / "oldgrowth"
    shutil.copytree(Path(oldgrowth.__file__).parent, package)
    text = (package / file).read_text()
    assert old in text
    (package / file).write_text(text.replace(old, new))
    with further_worker(client, {"PYTHONPATH": str(folder)}) as address:
        yield address


CHANGES = {
    "version": ("_version.py", 'version("oldgrowth")', '"0.0.7"', r"it has oldgrowth 0\.0\.7"),
    "digest": ("cluster/handshake.py", "7919 * i", "7907 * i", "a tiny tree that it grew is another one"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_worker_that_differs_is_refused(tmp_path: Path, what: str) -> None:
    *change, said = CHANGES[what]
    files = parquet(tmp_path / "rows", table())
    with (
        cluster_of(1) as client,
        other_worker(client, tmp_path / "other", *change) as address,
        pytest.raises(DifferentWorkerError, match=f"Worker {address}#.* {said}"),
    ):
        CASES["gini"].fitted(files, client=client)


def test_a_worker_that_differs_and_joins_late_is_not_used(tmp_path: Path) -> None:
    *change, said = CHANGES["version"]
    files = parquet(tmp_path / "rows", table())
    one = CASES["gini"].fitted(files, store="disk", n_jobs=1)
    joined: list[str] = []
    with cluster_of(1) as client:
        context = other_worker(client, tmp_path / "other", *change)

        def join(progress: object) -> None:
            if not joined:
                joined.append(context.__enter__())

        with pytest.warns(UserWarning, match=said):
            found = CASES["gini"].fitted(files, callback=join, client=client)
        context.__exit__(None, None, None)
    same(found, one)


def test_a_cluster_that_never_had_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OnCluster, "_patience", 1.0)
    files = parquet(tmp_path / "rows", table())
    with cluster_of(0) as client, pytest.raises(NoWorkersError, match="no worker for 1 second"):
        CASES["gini"].fitted(files, client=client)
