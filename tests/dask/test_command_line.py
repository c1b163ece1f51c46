"""oldgrowth fit --scheduler: the same forest as without."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from cluster_cases import parquet, table
from clusters import cluster_of

import oldgrowth
from oldgrowth.cli.main import cli


def fit(*options: str) -> str:
    done = CliRunner().invoke(cli, ["fit", *options])
    return "" if done.exit_code == 0 else f"{done.output} {done.exception}"


@pytest.mark.slow
def test_a_forest_is_fitted_on_a_cluster(tmp_path: Path) -> None:
    files = parquet(tmp_path / "rows", table())
    options = (files, "--target", "label", "--features", "a,b,c", "--trees", "4", "--seed", "1", "-q")
    assert fit(*options, "-o", str(tmp_path / "one.og")) == ""
    with cluster_of(2) as client:
        scheduler = ("--scheduler", client.scheduler.address, "-o", str(tmp_path / "other.og"))
        assert fit(*options, *scheduler) == ""
    one, other = (oldgrowth.load(tmp_path / f"{name}.og") for name in ("one", "other"))
    assert one.forest_.digest() == other.forest_.digest()


def test_a_scheduler_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oldgrowth.dask.connection._SECONDS", 1)
    files = parquet(tmp_path / "rows", table())
    out = str(tmp_path / "forest.og")
    said = fit(files, "--target", "label", "-o", out, "--scheduler", "tcp://127.0.0.1:9")
    assert "No scheduler of Dask answers at 'tcp://127.0.0.1:9'" in said
