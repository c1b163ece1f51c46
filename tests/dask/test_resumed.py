"""A client is killed, and fit is called again: it goes on with what workers and the checkpoint have."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_cases import CASES, parquet, same, table
from clusters import cluster_of, folder_of
from distributed import Client

from oldgrowth.cluster import driver
from oldgrowth.errors import CheckpointError

HERE = Path(__file__).parent
RANGE_BYTES = 20_000
pytestmark = pytest.mark.filterwarnings("ignore:.*seen by every tree")


@pytest.fixture(autouse=True)
def _small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "RANGE_BYTES", RANGE_BYTES)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with cluster_of(2) as client:
        yield client


def interrupted(
    client: Client, files: str, stage: str, more: dict[str, Any], case: str = "split again"
) -> None:
    """A fit whose client kills itself in a stage."""
    wanted = {"scheduler": client.scheduler.address, "case": case, "files": files, "stage": stage}
    wanted |= {"share": 0.3, "range_bytes": RANGE_BYTES, "more": more}
    done = subprocess.run([sys.executable, HERE / "killed_client.py", json.dumps(wanted)], cwd=HERE)
    assert done.returncode == -signal.SIGKILL


def resumed(client: Client, files: str, more: dict[str, Any], case: str = "split again") -> Any:
    spill = Path(more["spill_dir"])
    found = CASES[case].fitted(files, client=client, **more)
    sizes = {name: value for name, value in more.items() if name == "bucket_size"}
    same(found, CASES[case].fitted(files, store="disk", n_jobs=1, **sizes))
    assert list(spill.iterdir()) == []
    assert not (Path(more["checkpoint_dir"]) / "oldgrowth-fit").exists()
    return found


def stage_of(found: Any, name: str) -> Any:
    return next(stage for stage in found.fit_report_.stages if stage.name == name)


@pytest.mark.parametrize(
    ("stage", "case"),
    [
        ("grow", "oob"),
        *(
            pytest.param(s, "split again", marks=pytest.mark.torture)
            for s in ("sample", "distribute", "grow")
        ),
    ],
)
def test_a_killed_client_goes_on(client: Client, tmp_path: Path, stage: str, case: str) -> None:
    files = parquet(tmp_path / "rows", table())
    more: dict[str, Any] = {"spill_dir": str(tmp_path / "spill"), "checkpoint_dir": str(tmp_path / "fit")}
    if case == "oob":
        more["bucket_size"] = 2000  # so that none is split
    interrupted(client, files, stage, more, case)
    found = resumed(client, files, more, case)
    if case == "oob":  # workers have the rows of all buckets
        assert sum(stage_of(found, "distribute").written.values()) == 0
        assert found.fit_report_.redone == 0


@pytest.mark.torture
@pytest.mark.parametrize("case", ["balanced_subsample", "regression", "baseline"])
@pytest.mark.parametrize("stage", ["top trees", "grow"])
def test_workers_that_were_restarted_do_all_again_but_trees(tmp_path: Path, stage: str, case: str) -> None:
    if (stage, case) == ("top trees", "baseline"):
        return  # it has none
    files = parquet(tmp_path / "rows", table())
    more = {"spill_dir": str(tmp_path / "spill"), "checkpoint_dir": str(tmp_path / "fit")}
    with cluster_of(3) as client:
        interrupted(client, files, stage, more, case)
    with cluster_of(2) as client:
        resumed(client, files, more, case)


def test_another_fit_is_refused_and_files_of_a_lost_client_are_removed(
    client: Client, tmp_path: Path
) -> None:
    files = parquet(tmp_path / "rows", table())
    more = {"spill_dir": str(tmp_path / "spill"), "checkpoint_dir": str(tmp_path / "fit")}
    interrupted(client, files, "distribute", more, "gini")
    with pytest.raises(CheckpointError, match=r"cannot be resumed: parameters differ: criterion was 'gini'"):
        CASES["gini"].fitted(files, client=client, criterion="entropy", **more)
    with pytest.raises(CheckpointError, match="cannot be resumed: engine was 'cluster' and is None"):
        CASES["gini"].fitted(files, **more)
    assert folder_of(client) is not None
    CASES["gini"].fitted(files, client=client, spill_dir=more["spill_dir"])
    assert list(Path(more["spill_dir"]).iterdir()) == []
    resumed(client, files, more, "gini")
