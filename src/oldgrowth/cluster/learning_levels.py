"""The levels of categorical features, learned of the partitions on workers before the first pass."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..datasets.level_counts import LearnedLevels, LevelLimit
from ..planning.memory_model import FIRST_PASS_SHARE
from ..reporting.report import Recorder
from ..rows.streamed_rows import StreamedRows
from ..system.limits import Limits
from . import work
from .fleet import Job
from .row_parts import RowParts, number_of


def learn_levels(rows: StreamedRows, parts: RowParts, recorder: Recorder, limits: Limits) -> None:
    """Learn the levels of all partitions, merged in the order of the rows, and code the rows by them."""
    features = rows.categorical
    if not features:
        return
    found: dict[int, LearnedLevels] = {}

    def done(job: Job, learned: LearnedLevels, worker: str) -> None:
        number = number_of(job)
        found[number] = learned
        progress.advance(learned.end - (parts[number].partition.first_row or 0))

    def arguments(number: int) -> tuple[Any, ...]:
        return parts[number], features

    jobs = [
        Job(f"levels-{i}", work.learn_levels, partial(arguments, i), only=parts.home(i))
        for i in range(len(parts))
    ]
    with recorder.stage("levels", sum(part.partition.n_rows or 0 for part in parts.parts)) as progress:
        parts.run(jobs, done)
    whole = LearnedLevels(rows.dataset, features)
    whole.limit = LevelLimit((limits.memory - limits.resident) // FIRST_PASS_SHARE, limits.memory)
    for number in range(len(parts)):
        whole.merge(found[number])
    parts.levels = whole.finish(rows.n_features)
    rows.use_levels(parts.levels)
