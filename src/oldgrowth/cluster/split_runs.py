"""The runs that were made by splitting large buckets again: which worker has which, and how they are made."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .fleet import Job
from .values import Held


@dataclass
class _Made:
    """A run: the first of the owners of its blocks, which follow each other, and the runs it was made of."""

    job: Job
    first_owner: int
    parents: frozenset[str]
    held: Held | None = None


@dataclass
class SplitRuns:
    """The split runs of one top tree. Owners below `first` are those of its partitions."""

    first: int
    next_owner: int
    _runs: list[_Made] = field(default_factory=list)  # by their first owners
    _by_name: dict[str, _Made] = field(default_factory=dict)

    @staticmethod
    def of(n_buckets: int) -> SplitRuns:
        return SplitRuns(n_buckets, n_buckets)

    def add(self, job: Job, n_owners: int, split: npt.NDArray[np.int64]) -> None:
        """A run that this job makes of the rows of the owners `split`, with so many owners of its own."""
        parents = frozenset(self._runs[i].job.name for i in self._with(split))
        made = _Made(job, self.next_owner, parents)
        self._runs.append(made)
        self._by_name[job.name] = made
        self.next_owner += n_owners

    def made(self, name: str, held: Held) -> None:
        """Note where a run is."""
        self._by_name[name].held = held

    def held(self, owners: npt.NDArray[np.int64]) -> list[Held]:
        """The runs that have rows of these owners."""
        runs = (self._runs[i] for i in self._with(owners))
        return [run.held for run in runs if run.held is not None]

    def to_restore(self, workers: set[str]) -> list[Job]:
        """The jobs that make again what is on none of these workers, and can be done now."""
        gone = {run.job.name: run for run in self._runs if run.held and run.held.worker not in workers}
        return [run.job for run in gone.values() if run.parents.isdisjoint(gone)]

    def _with(self, owners: npt.NDArray[np.int64]) -> list[int]:
        firsts = np.array([run.first_owner for run in self._runs], dtype=np.int64)
        places = np.searchsorted(firsts, owners[owners >= self.first], side="right") - 1
        found: list[int] = np.unique(places).tolist()
        return found
