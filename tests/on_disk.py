"""Forces fits through the disk store with everything tiny, and compares them with fits in memory."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldgrowth.estimators.base
import oldgrowth.fitting.pipeline
import oldgrowth.planning.execution
import oldgrowth.storage.disk_store
import oldgrowth.storage.votes
from oldgrowth.estimators.oob_scores import OobScorer
from oldgrowth.fitting.pipeline import Fitted, fit_forest
from oldgrowth.planning.planner import Planner
from oldgrowth.reporting.progress import Observers
from oldgrowth.rows.training_rows import TrainingRows
from oldgrowth.storage.votes import OobRows
from oldgrowth.system.limits import Limits

UseOob = Callable[[Iterator[OobRows]], Any]


def make_all_tiny(monkeypatch: pytest.MonkeyPatch, tops_per_round: int = 2) -> None:
    """Groups and blocks of a few rows, rounds of a few top trees, votes added up in small ranges."""
    monkeypatch.setattr(oldgrowth.planning.execution, "_LARGEST_GROUP", 4096)
    monkeypatch.setattr(
        oldgrowth.planning.execution,
        "_tops_per_round",
        lambda plan, sizes, *_: min(sizes.n_tops, tops_per_round),
    )
    monkeypatch.setattr(oldgrowth.storage.top_file, "_WRITE_BYTES", 300)
    monkeypatch.setattr(oldgrowth.storage.votes, "_FEWEST_ROWS", 100)
    choose = oldgrowth.planning.execution.choose_execution

    def with_votes_on_disk(*args: Any) -> Any:
        execution, model = choose(*args)
        return replace(execution, oob_bytes=0), model

    monkeypatch.setattr(oldgrowth.fitting.pipeline, "choose_execution", with_votes_on_disk)


def force_to_disk(monkeypatch: pytest.MonkeyPatch, spill_dir: Path) -> None:
    def fit_twice(
        rows: TrainingRows,
        planner: Planner,
        limits: Limits,
        observers: Observers,
        use_oob: UseOob,
        keep: bool,
    ) -> Fitted:
        memory = _in_memory(rows, planner, limits, observers, use_oob)
        tight, planned = _tight(limits, spill_dir), _in_small_chunks(planner)
        with monkeypatch.context() as patch:
            make_all_tiny(patch)
            disk = fit_forest(rows, planned, tight, observers, use_oob, keep)
        assert list(spill_dir.glob("oldgrowth-spill-*")) == []
        _compare(memory, disk)
        return disk

    monkeypatch.setattr(oldgrowth.estimators.base, "fit_forest", fit_twice)


def _in_memory(
    rows: TrainingRows, planner: Planner, limits: Limits, observers: Observers, use_oob: UseOob
) -> Fitted:
    """A fit that leaves rows and scorer unchanged, without warnings, which the other fit repeats."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        limits = replace(limits, store="memory", checkpoint_dir=None)
        # Rows of arrays have no state, but may be mapped from a file.
        rows = copy.copy(rows) if rows.random_access else copy.deepcopy(rows)
        use_oob = copy.copy(use_oob)
        if isinstance(use_oob, OobScorer):
            use_oob._classes = lambda: rows.classes  # of the rows that are read here
        return fit_forest(rows, planner, limits, observers, use_oob)


def _in_small_chunks(planner: Planner) -> Planner:
    """Chunks of 7 to 64 rows, of a size that differs from fit to fit."""
    small = copy.copy(planner)
    small._params = planner._params | {"chunk_size": 7 + planner.seed % 58}
    return small


def _tight(limits: Limits, spill_dir: Path) -> Limits:
    """As little memory as the disk store needs."""
    return replace(
        limits, store="disk", memory=0, memory_given=False, spill_dir=spill_dir, checkpoint_dir=None
    )


def _compare(memory: Fitted, disk: Fitted) -> None:
    assert disk.forest.digest() == memory.forest.digest()
    np.testing.assert_array_equal(disk.importances, memory.importances)
    if memory.oob is not None:
        np.testing.assert_equal(disk.oob.score, memory.oob.score)
        np.testing.assert_array_equal(disk.oob.rows, memory.oob.rows)
