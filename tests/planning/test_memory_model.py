"""The memory model without a fit: structures that it did not count in the past."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldgrowth
from oldgrowth.errors import MemoryLimitError
from oldgrowth.planning import execution as means
from oldgrowth.planning.execution import refuse_at_start
from oldgrowth.planning.memory_model import MemoryModel
from oldgrowth.planning.planner import Planner
from oldgrowth.planning.sizes import Sizes, Widths
from oldgrowth.rows.array_rows import ArrayRows
from oldgrowth.rows.streamed_rows import StreamedRows
from oldgrowth.system.limits import limits_of

N = 1_000_000


def array_rows(n: int = N, weights: bool = False) -> ArrayRows:
    """Values are not used: a single row represents all."""
    x = np.broadcast_to(np.zeros((1, 2), dtype=np.uint8), (n, 2))
    ones = np.broadcast_to(np.ones(1), n)
    return ArrayRows(x, np.broadcast_to(np.zeros(1), n), 3, ones if weights else None)


def planned(rows: ArrayRows, **given: Any) -> MemoryModel:
    params = oldgrowth.RandomForestClassifier(**{"n_estimators": 4, "random_state": 0} | given).get_params()
    plan = Planner(params, False, True).expect(rows.n_rows, rows.n_features, rows.n_classes)
    sizes = Sizes.of(plan, rows, rows.n_rows, Widths.narrowest(rows.n_features))
    return MemoryModel(plan, sizes, limits_of(params))


def named(rows: Any, **given: Any) -> int:
    """The limit named before the first pass if the given one is tiny, in a process of 100 MB."""
    params = oldgrowth.RandomForestClassifier(
        **{"memory_limit": 1000, "random_state": 0} | given
    ).get_params()
    with pytest.raises(MemoryLimitError) as refused:
        refuse_at_start(Planner(params, False, True), rows, replace(limits_of(params), resident=10**8))
    return refused.value.least


def test_threads_do_not_raise_the_least_limit_in_memory_and_shallow_trees_are_small() -> None:
    few, many = (planned(array_rows(), n_jobs=jobs, max_depth=10) for jobs in (1, 32))
    assert many.in_memory() - few.in_memory() < 10**7  # what threads take themselves
    assert many.in_memory(workers=32) > many.in_memory() + 10**7
    deep = planned(array_rows(), n_jobs=1, max_depth=None)
    assert deep.trees_in_memory > 10 * few.trees_in_memory
    assert few.trees_in_memory < 10**6


def test_a_store_in_memory_leaves_room_for_what_is_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    model = planned(array_rows(), oob_score=True, memory_limit="2GB")
    monkeypatch.setattr(means, "resident_memory", lambda: 10**9)
    on_disk, in_memory = (means.GrowingRoom.now(model, in_memory=flag).room for flag in (False, True))
    assert on_disk - in_memory == model.grown_in_memory > model.votes > N * 8 * 3


def test_weights_are_counted_before_the_first_pass() -> None:
    without, weighted = (named(array_rows(weights=flag), bucket_size=500_000) for flag in (False, True))
    assert weighted - without > 500_000 * 8


def test_lines_of_a_csv_tell_about_how_many_rows_there_are(tmp_path: Path) -> None:
    limits = []
    for lines in (200, 50_000):
        path = tmp_path / f"{lines}.csv"
        path.write_text("a,y\n" + "0.25,1\n" * lines)
        rows = StreamedRows(oldgrowth.open_dataset(path, target="y"), classification=True)
        assert rows.n_rows is None and lines <= (rows.expected_rows or 0) < 1.3 * lines
        limits.append(named(rows, bucket_size=100, top_sample=40_000))
    assert limits[1] - limits[0] > 40_000 * 60


@pytest.mark.parametrize("n", [2**31, 2**33, 10**12])
def test_more_rows_than_32_bits_number_are_planned(n: int) -> None:
    model = planned(array_rows(n), store="disk", oob_score=True, memory_limit="4GB")
    assert model.sizes.n_rows == n and model.plan.top_sample == 500_000
    assert model.sizes.row - planned(array_rows(10**6), store="disk", oob_score=True).sizes.row == (
        4 if n > 2**32 else 0
    )
