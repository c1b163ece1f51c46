# ruff: noqa: E501 - a table of cases
"""Some of the fits of tests/torture/memory_grid.py, on less data; `make torture-memory` has all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from torture.memory_grid import Case, Data, judge

OOB, DISK = {"oob_score": True}, {"store": "disk"}

# A store each, a source that is mapped, and a limit that is refused.
QUICK = ("threads", "balanced", "mapped", "too little")
CASES = [
    Case("many classes", Data(60_000, 10, classes=200), 300, params={**OOB, **DISK, "bucket_size": 20_000}),
    Case("threads", Data(120_000, 12, "floats", 9), 320, params={**OOB, "n_jobs": 32}),
    Case("many trees", Data(120_000, 8), 280, params={**DISK, "n_estimators": 60, "max_depth": 3}),
    Case("nodata", Data(500_000, 4, "nodata"), 280, params={**OOB, **DISK, "n_estimators": 2}),
    Case("shallow", Data(500_000, 4), 280, params={**OOB, "max_depth": 1, "n_estimators": 2}),
    Case(
        "regression", Data(300_000, 4, "floats", classes=0), 280, "RandomForestRegressor",
        {**OOB, "max_depth": 2, "n_estimators": 2},
    ),
    Case("balanced", Data(150_000, 8, weights=True), 280, params={**DISK, "class_weight": "balanced_subsample"}),
    Case("long chunks", Data(300_000, 8), 280, params={**DISK, "chunk_size": 1_000_000, "max_depth": 6}),
    Case("metric", Data(300_000, 4), 280, params={**DISK, "oob_score": "metric", "n_estimators": 2, "max_depth": 5}),
    Case("tiny buckets", Data(60_000, 4), 280, params={**DISK, "bucket_size": 100, "n_estimators": 6, "trees_per_top": 1}),
    Case("mapped", Data(400_000, 20, "words", source="memmap"), 280, params={"max_depth": 6, "n_estimators": 2}),
    Case("text columns", Data(200_000, 10, "words", 9, text_columns=5), 300, params={**DISK, "n_estimators": 2}),
    Case("a scene of bytes", Data(200_000, 9, "nodata", source="scene"), 280, params={"n_estimators": 2}),
    Case("too little", Data(60_000, 60, "floats", 9), 260, params=OOB),
]  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=() if case.name in QUICK else pytest.mark.slow)
        for case in CASES
    ],
)
def test_peaks_refusals_and_limits_that_are_named(case: Case, tmp_path: Path) -> None:
    case.data.write(tmp_path / "data")
    verdict = judge(case, tmp_path / "data")
    assert not verdict.wrong, str(verdict)
