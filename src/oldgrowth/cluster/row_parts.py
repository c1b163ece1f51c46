"""The partitions of the rows, as the driver sees them.

They are of files that all workers can read, or each is on the disk of a worker that was given its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ..datasets.base import Dataset, Partition, numbered
from ..datasets.levels import FeatureLevels
from ..errors import ChangedSourceError, DataError
from ..reporting.report import Recorder
from ..rows.training_rows import Place
from . import work
from .fleet import Fleet, Job
from .handing_out import run
from .job_progress import JobProgress
from .journal import Cut, Journal
from .values import Roles, RowPart, SpilledRows

# Partitions for each worker: what a lost worker was doing is a small part of all.
_PARTS_PER_WORKER = 8


@dataclass(frozen=True)
class GivenRows:
    """Rows that workers are given: for each partition, a function that makes what stands for its rows in the
    arguments of a job; what its columns are for; and what tells these rows from others."""

    loaders: list[Callable[[], Any]]
    roles: Roles
    fingerprint: dict[str, Any]


@dataclass
class RowParts:
    """The partitions, in the order of the rows; `used` rows of all have a weight."""

    fleet: Fleet
    given: GivenRows | None = None
    parts: list[RowPart] = field(default_factory=list)
    used: int = 0
    levels: FeatureLevels | None = None  # of the categorical features, once they are learned
    _loaders: list[int] = field(default_factory=list)  # of each partition that was given

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, number: int) -> RowPart:
        part = self.parts[number]
        if self.levels is None:
            return part
        coded = part.partition.dataset.coded_by(self.levels, strictly=True)
        return replace(part, partition=replace(part.partition, dataset=coded))

    def number(self, dataset: Dataset, recorder: Recorder, journal: Journal) -> None:
        """Cut the rows into partitions, and count them."""
        if self.given is None:
            self._number_files(dataset, recorder, journal)
        else:
            self._number_given(recorder)
        if not self.parts:
            raise DataError("There is no row to train on: all partitions are empty.")
        if self.used == 0:
            raise DataError("There is no row to train on: all weights are zero.")

    def _number_files(self, dataset: Dataset, recorder: Recorder, journal: Journal) -> None:
        cut = journal.cut()
        wanted = _PARTS_PER_WORKER * max(1, len(self.fleet.workers())) if cut is None else cut.wanted
        partitions = dataset.uncounted_partitions(wanted)
        if cut is None or len(cut.rows) != len(partitions):
            cut = Cut(wanted, *self._counts(partitions, dataset.weight is not None, recorder))
            journal.save_cut(cut)
        used = np.cumsum([0, *cut.used]).tolist()
        for i, partition in enumerate(numbered(partitions, cut.rows)):
            self.parts.append(RowPart(i, partition, Place(used[i], partition.first_row or 0)))
        self.used = used[-1]

    def _counts(
        self, partitions: list[Partition], weighted: bool, recorder: Recorder
    ) -> tuple[list[int], list[int]]:
        """The rows of each partition, and those that have a weight."""
        counts = {i: (p.n_rows or 0, p.n_rows or 0) for i, p in enumerate(partitions)}
        if weighted or any(partition.n_rows is None for partition in partitions):
            jobs = [
                Job(f"count-{i}", work.count_rows, partial(_given, partition))
                for i, partition in enumerate(partitions)
            ]
            with recorder.stage("count", None):
                run(self.fleet, jobs, lambda job, found, worker: counts.update({number_of(job): found}))
        rows, used = zip(*(counts[i] for i in range(len(partitions))), strict=True)
        return list(rows), list(used)

    def _number_given(self, recorder: Recorder) -> None:
        assert self.given is not None
        found: dict[int, tuple[SpilledRows, str]] = {}

        def done(job: Job, result: SpilledRows, worker: str) -> None:
            found[number_of(job)] = result, worker
            progress.advance(result.rows)

        with recorder.stage("spill", None) as progress:
            run(self.fleet, [self._spilling(i) for i in range(len(self.given.loaders))], done)
        source = 0
        for loader in range(len(found)):
            spilled, worker = found[loader]
            if spilled.dataset is None:  # it has no rows
                continue
            self._loaders.append(loader)
            partition = Partition(spilled.dataset, source, spilled.rows)
            self.parts.append(RowPart(len(self.parts), partition, Place(self.used, source), worker))
            source, self.used = source + spilled.rows, self.used + spilled.used

    def _spilling(self, loader: int) -> Job:
        assert self.given is not None
        name, load, roles = f"spill-{loader}", self.given.loaders[loader], self.given.roles

        def arguments() -> tuple[Any, ...]:
            spilled = self.fleet.holder(name) in self.fleet.workers()
            return loader, None if spilled else load(), roles

        return Job(name, work.spill_rows, arguments)

    def home(self, number: int) -> Callable[[], str | None]:
        """Asks for the only worker that can read a partition, if not all can."""
        return lambda: self.parts[number].home

    def run(
        self,
        jobs: list[Job],
        done: Callable[[Job, Any, str], None],
        restore: Callable[[set[str]], list[Job]] = lambda workers: [],
        progress: JobProgress | None = None,
    ) -> None:
        """Run jobs; rows that were on the disk of a lost worker alone are given to another one first."""

        def done_with(job: Job, result: Any, worker: str) -> None:
            if job.name.startswith("spill-"):
                self._move(self._loaders.index(number_of(job)), result, worker)
            else:
                done(job, result, worker)

        def lost(workers: set[str]) -> list[Job]:
            gone = [part.number for part in self.parts if part.home is not None and part.home not in workers]
            return [self._spilling(self._loaders[number]) for number in gone] or restore(workers)

        run(self.fleet, jobs, done_with, lost, progress)

    def _move(self, number: int, spilled: SpilledRows, worker: str) -> None:
        """A partition is on another worker now."""
        part = self.parts[number]
        if spilled.dataset is None or spilled.rows != part.partition.n_rows:
            what = f"partition {number} had {part.partition.n_rows} rows and now has {spilled.rows}"
            raise ChangedSourceError("the data", what)
        partition = replace(part.partition, dataset=spilled.dataset)
        self.parts[number] = replace(part, partition=partition, home=worker)


def number_of(job: Job) -> int:
    """The number at the end of a job's name."""
    return int(job.name.rpartition("-")[2])


def _given(*arguments: Any) -> tuple[Any, ...]:
    return arguments
