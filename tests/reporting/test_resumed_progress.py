"""Progress of a resumed fit: all rows are counted, but only those of this run enter the time left."""

from __future__ import annotations

import numpy as np
import pytest

import oldgrowth.fitting.grow
import oldgrowth.reporting.progress
from interrupted_fits import DATA, Stopped, forest, interrupted
from oldgrowth.plot.trees import _of_rows
from oldgrowth.reporting.progress import FollowedStage, Machine
from oldgrowth.reporting.report import FitReport


def test_the_time_left_is_that_of_the_rows_done_now(monkeypatch) -> None:
    now = [100.0]
    monkeypatch.setattr(oldgrowth.reporting.progress.time, "perf_counter", lambda: now[0])
    stage = FollowedStage("grow", 1_000_000, 8_000_000, Machine(10**9))
    stage.skip(900_000)
    now[0] += 10
    stage.advance(10_000)
    words = " ".join(stage.words())
    assert "910,000 of 1,000,000 rows" in words and "1,000 rows/s" in words and "1:30 left" in words
    assert stage.as_progress().bytes_read == 80_000


def test_a_resumed_fit_counts_the_rows_of_the_whole_fit(tmp_path, monkeypatch) -> None:
    whole = forest(tmp_path).fit(*DATA).fit_report_
    interrupted(monkeypatch, tmp_path, *DATA)
    told = []
    resumed = forest(tmp_path).fit(*DATA, callback=told.append).fit_report_
    assert [(s.name, s.rows) for s in resumed.stages] == [(s.name, s.rows) for s in whole.stages]
    totals = {p.stage: (p.rows, p.total_rows) for p in told if p.finished}
    assert all(rows == total for rows, total in totals.values()), totals


def test_a_fit_resumed_while_trees_grow_counts_all_trees(tmp_path, monkeypatch) -> None:
    whole = forest(tmp_path).fit(*DATA).fit_report_
    grow_task = oldgrowth.fitting.grow.grow_task
    left = [8]

    def stopping(*args):
        left[0] -= 1
        if left[0] < 0:
            raise Stopped
        return grow_task(*args)

    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(oldgrowth.fitting.grow, "grow_task", stopping)
        forest(tmp_path, n_jobs=1).fit(*DATA)
    resumed = forest(tmp_path).fit(*DATA).fit_report_
    rows = [{s.name: s.rows for s in report.stages} for report in (whole, resumed)]
    assert rows[0] == rows[1]


def test_report_and_plot_give_the_same_median() -> None:
    rng = np.random.default_rng(0)
    for n in (2, 3, 10, 11):
        rows = rng.integers(1, 1000, n)
        report = FitReport()
        report.count_buckets([rows])
        median = report.bucket_rows["50%"]
        assert f"median {median:,}" in _of_rows(rows)
        assert f"median {median:,}" in str(report)
