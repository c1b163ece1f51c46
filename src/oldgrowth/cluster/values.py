"""What travels between the driver and the workers of a fit: plain values, which can be pickled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..datasets.base import Dataset, Partition
from ..plan import Plan
from ..rows.class_codes import LabelCoder
from ..rows.data_summary import DataSummary
from ..rows.training_rows import Place, Trail
from ..storage.grown_trees import BottomTree
from ..storage.votes import Votes


@dataclass(frozen=True)
class Settings:
    """What workers are told when a fit begins."""

    fit: str  # tells fits apart
    client: str  # who waits for it
    memory_limit: int | float | str
    spill_dir: Path | None
    spill_limit: int | float | str
    n_jobs: int | None


@dataclass(frozen=True)
class Shared:
    """Stands for a value that a worker was sent before."""

    number: int


@dataclass(frozen=True)
class WorkerFacts:
    """What a worker tells of itself."""

    version: str
    digest: str  # of a tiny forest that it has grown
    threads: int
    memory: int
    disk: int  # bytes that the fit may take of it
    resident: int  # bytes of memory that its process had before the fit
    held: tuple[str, ...] = ()  # what it has of this fit, by the names of the jobs that made it


@dataclass(frozen=True)
class Outcome:
    """The result of a job, and what it took: bytes of rows from other workers, and written to disk."""

    result: Any
    received: int = 0
    written: int = 0


@dataclass(frozen=True)
class RowPart:
    """A partition of the rows, and where it begins for a pass over all rows."""

    number: int
    partition: Partition
    start: Place
    home: str | None = None  # the only worker that can read it, if not all can


@dataclass(frozen=True)
class Roles:
    """The columns of rows that workers are given, and what they are for; no features mean all others."""

    features: tuple[str, ...] | None
    target: str | None
    weight: str | None


@dataclass(frozen=True)
class SpilledRows:
    """Rows that a worker has written to its disk: how to read them there, how many there are, and how many of
    them have a weight."""

    dataset: Dataset | None  # None without rows
    rows: int
    used: int


@dataclass(frozen=True)
class PartEnd:
    """What the first pass found of a partition, which later passes are compared with."""

    end: Place
    trail: Trail
    class_rows: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Known:
    """What all workers know after the first pass."""

    plan: Plan
    summary: DataSummary
    codec: _core.RowCodec
    labels: LabelCoder | None
    classification: bool
    schema: Dataset  # of all rows: what their features are

    def with_jobs(self, n_jobs: int) -> Known:
        return replace(self, plan=replace(self.plan, n_jobs=n_jobs))


@dataclass(frozen=True)
class Held:
    """Where rows are: what a worker has made of a partition, or of a bucket that it has split."""

    name: str
    worker: str


@dataclass(frozen=True)
class Routed:
    """A partition whose rows are in their buckets, and the rows of each bucket of each top tree."""

    held: Held
    sizes: dict[int, npt.NDArray[np.uint32]]


@dataclass(frozen=True)
class CandidatePart:
    """The candidates of a partition, and the numbers that their classes have in the whole data."""

    held: Held
    codes: npt.NDArray[np.int64] | None


@dataclass(frozen=True)
class BucketRange:
    """Consecutive buckets of a top tree, and where their rows are, in the order of the rows."""

    top: int
    first: int
    owners: npt.NDArray[np.int64]  # of these buckets
    of: int  # buckets of the top tree
    runs: tuple[Held, ...]
    grown: npt.NDArray[np.bool_] | None = None  # the trees of these buckets that are, if some are

    @property
    def places(self) -> slice:
        """Of these buckets among those of the top tree."""
        return slice(self.first, self.first + len(self.owners))

    def owners_of_all(self) -> npt.NDArray[np.int64]:
        """The owner of each bucket of the top tree; that of all others has no rows."""
        owners = np.full(self.of, self.owners.max() + 1)
        owners[self.places] = self.owners
        return owners


@dataclass(frozen=True)
class GrownBucket:
    """The trees of a bucket, from number `first_tree` of its top tree on, and their votes."""

    bucket: int
    first_tree: int
    rows: int
    trees: tuple[BottomTree, ...]
    votes: tuple[Votes, ...]
