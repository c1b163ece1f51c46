"""Rows travel once for each top tree, from the workers that have them to the one that grows their bucket."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from clusters import cluster_of

import oldgrowth
import oldgrowth.dask
from oldgrowth.cluster import driver


@pytest.mark.parametrize("workers", [2, pytest.param(4, marks=pytest.mark.torture)])
def test_bytes_between_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.setattr(driver, "RANGE_BYTES", 500_000)
    rng = np.random.default_rng(0)
    rows, features, tops = 200_000, 40, 3
    frame = pd.DataFrame(rng.integers(0, 200, (rows, features)).astype(np.uint8)).add_prefix("f")
    frame["y"] = (frame["f0"] > frame["f1"]).astype(int)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=5000)
    data = oldgrowth.open_dataset(tmp_path / "rows.parquet", target="y")
    sizes = {"n_estimators": tops, "trees_per_top": 1, "bucket_size": 50_000, "max_depth": 3}
    with cluster_of(workers) as client:
        forest = oldgrowth.dask.RandomForestClassifier(**sizes, random_state=0, client=client).fit(data)
    row = features + 1 + 8  # values, class, key
    report = forest.fit_report_
    stages = {stage.name: stage for stage in report.stages}
    has, grows = (stages[name].written for name in ("distribute", "grow"))  # bytes of rows, by worker
    of_all = tops * row * rows
    assert sum(has.values()) == pytest.approx(of_all, rel=0.05)
    # 1 - 1 / workers, if they are equally fast
    travel = sum(grows.get(worker, 0) * (1 - has[worker] / sum(has.values())) for worker in has)
    assert report.moved == pytest.approx(of_all * travel / sum(grows.values()), rel=0.05)
    assert report.moved == pytest.approx(of_all * (1 - 1 / workers), rel=0.2)
    assert "moved between workers" in str(report)
