"""Which runs have the rows of buckets that were split again, and what is made again when workers are lost."""

from __future__ import annotations

import numpy as np
import pytest

from oldgrowth.cluster.fleet import Job
from oldgrowth.cluster.split_runs import SplitRuns
from oldgrowth.cluster.values import Held


def owners(*numbers: int) -> np.ndarray:
    return np.array(numbers)


def job(name: str) -> Job:
    return Job(name, print, tuple)


@pytest.fixture
def runs() -> SplitRuns:
    """Of ten buckets, 2 and 5 are split into 10 to 14, then 8 into 15 to 17, then 12 and 16 into 18 to 21."""
    runs = SplitRuns.of(10)
    for name, parts, split in (("a", 5, owners(2, 5)), ("b", 3, owners(8)), ("c", 4, owners(12, 16))):
        runs.add(job(name), parts, split)
        runs.made(name, Held(name, f"worker {name}"))
    return runs


def test_the_runs_with_rows_of_owners(runs: SplitRuns) -> None:
    def found(*numbers: int) -> list[str]:
        return [held.name for held in runs.held(owners(*numbers))]

    assert runs.next_owner == 22
    assert found(0, 9) == []
    assert found(1, 10) == found(14) == ["a"]
    assert found(15, 17) == ["b"]
    assert found(18) == found(21) == ["c"]
    assert found(21, 3, 11, 15) == ["a", "b", "c"]


def test_what_lost_workers_had_is_made_again_parents_first(runs: SplitRuns) -> None:
    def again(*workers: str) -> list[str]:
        return [job.name for job in runs.to_restore({f"worker {name}" for name in workers})]

    assert again("a", "b", "c") == []
    assert again("a", "b") == ["c"]
    assert again("b", "c") == ["a"]
    assert again("b") == ["a"]  # c is made of it
    assert again() == ["a", "b"]


def test_what_was_not_made_yet_is_not_made_again(runs: SplitRuns) -> None:
    runs.add(job("d"), 2, owners(0))
    assert "d" not in [job.name for job in runs.to_restore(set())]
