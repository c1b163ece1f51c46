"""Predictions of arrays and datasets in batches, within a memory limit.

Everything that predicts rows does it here: the estimators, the command line, plots and the demo.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..datasets.base import Dataset, shortened
from ..datasets.batches import Batch
from ..datasets.matrix import MatrixDataset
from ..errors import DataError, MemoryLimitError
from ..messages.log import warn
from ..messages.text import counted
from ..messages.warnings import FeatureNamesWarning
from ..rows.read_ahead import read_ahead
from ..system.memory import READING_BYTES, memory_limit_of, resident_memory
from ..system.threads import workers
from .forest import Forest

# The default batch has enough rows for one pass of each thread through the forest. A forest that does not fit
# in memory is read once per batch, so that more rows are better.
_FEWEST_ROWS, _USUAL_ROWS, _MOST_ROWS = 64, 131_072, 2**24
# Preparing trees with categories costs more, so that more rows share it.
_USUAL_ROWS_BY_CATEGORIES = 2 * _USUAL_ROWS
# With fewer rows at a time threads are idle: then pages of the forest are evicted instead.
_WORTHWHILE_ROWS = 16_384
# Up to this size of its results, an array is predicted without asking for the memory limit.
_ALWAYS_FITS = 32 * 2**20
_LARGE_RESULTS = 32 * 2**20
# Memory of Python and libraries that is not counted, and by how much a process may vary.
_SLACK_BYTES, _SLACK_SHARE = 8 * 2**20, 0.02
# The size of the process varies: errors suggest a limit slightly above the lowest one.
_ROUNDED_UP = 1.02
# Bytes of a row: its label, weight and position; and of a value of a carried column.
_ROW_BYTES, _CARRIED_BYTES = 48, 64
# Batches that are being read, waiting, being predicted (rows with missing values twice) and just predicted;
# results of the last two.
_BATCHES_AT_ONCE, _RESULTS_AT_ONCE = 4.25, 2

refuses = True  # turned off by tests that check whether a refusal was right


@dataclass(frozen=True)
class Needs:
    """Memory of predictions beside the forest, in bytes.

    A row takes `result` in the result of the kernel and `row` in what is made of it. `held` is taken all the
    time, and `held_batch` for each batch until all `n_rows` rows are done.
    """

    result: int
    row: int = 0
    held: int = 0
    held_batch: int = 0
    n_rows: int | None = None

    def with_reading(self, dataset: Dataset, n_carried: int = 0) -> Needs:
        """These needs and those of reading the dataset."""
        row_bytes = 4 * dataset.n_features + _ROW_BYTES + n_carried * _CARRIED_BYTES
        read_row = math.ceil(_BATCHES_AT_ONCE * row_bytes)
        reading = dataset.reading_bytes
        if not isinstance(dataset, MatrixDataset):  # which is read without a library
            reading += READING_BYTES
        return replace(self, row=self.row + read_row, held=self.held + reading, n_rows=dataset.n_rows)


@dataclass(frozen=True)
class BatchPlan:
    """Rows of a batch, whether to evict pages of a mapped forest after use, and the number of threads."""

    rows: int
    evict: bool
    n_jobs: int


@dataclass(frozen=True)
class _Memory:
    """Memory of batches, by their number of rows."""

    fixed: int
    row: int
    batch: int  # of each batch, until all are done
    n_rows: int  # of all batches

    @property
    def least_rows(self) -> int:
        """Rows of a batch for which memory is lowest."""
        return max(_FEWEST_ROWS, math.isqrt(self.batch * self.n_rows // self.row))

    def of(self, rows: int) -> int:
        """The memory limit that batches of `rows` rows need."""
        batches = -(-self.n_rows // rows)
        taken = self.fixed + rows * self.row + batches * self.batch
        return math.ceil(taken / (1 - _SLACK_SHARE))

    def most_rows(self, limit: int) -> int:
        """The most rows of a batch within this limit, but at least `least_rows`."""
        room = int(limit * (1 - _SLACK_SHARE)) - self.fixed
        held = self.batch * self.n_rows  # solves rows * row + held / rows = room
        root = room * room - 4 * self.row * held
        if room <= 0 or root < 0:
            return self.least_rows
        return max(self.least_rows, (room + math.isqrt(root)) // (2 * self.row))


def plan_batches(
    forest: Forest, limit: int, n_jobs: int, needs: Needs, rows: int | None = None, refuse: bool = True
) -> BatchPlan:
    """Choose the rows of a batch, unless `rows` are given, and use up to `n_jobs` threads.

    Raises MemoryLimitError if the limit is too low for a single thread.
    """
    fewest = min(rows or _WORTHWHILE_ROWS, _WORTHWHILE_ROWS)
    evict = forest.mapped and _memory(forest, n_jobs, needs, False).of(fewest) > limit
    memory = _memory(forest, n_jobs, needs, evict)
    while n_jobs > 1 and memory.of(rows or memory.least_rows) > limit:
        n_jobs //= 2
        memory = _memory(forest, n_jobs, needs, evict)
    least = memory.of(rows or memory.least_rows)
    if refuse and refuses and limit < least:
        way = "" if rows is None else "Smaller batches need less."
        raise MemoryLimitError(limit, int(least * _ROUNDED_UP), way)
    most = memory.most_rows(limit)
    usual = _USUAL_ROWS_BY_CATEGORIES if forest.levels else _USUAL_ROWS
    return BatchPlan(rows or min(most, _MOST_ROWS if evict else usual), evict, n_jobs)


def _memory(forest: Forest, n_jobs: int, needs: Needs, evict: bool) -> _Memory:
    row, thread = forest.prediction_bytes(evict)
    fixed = resident_memory() + _SLACK_BYTES + n_jobs * thread + needs.held
    if forest.mapped and not evict:
        fixed += forest.nbytes
    row += needs.row + _RESULTS_AT_ONCE * needs.result
    return _Memory(fixed, row, needs.held_batch, needs.n_rows or 0)


# Computes results for rows: (x, n_jobs, names of the features for errors, evict) to an array.
Kernel = Callable[[npt.NDArray[np.generic], int, "npt.NDArray[np.object_] | None", bool], npt.NDArray[Any]]


@dataclass(frozen=True)
class BatchPredictor:
    """Predicts rows batch by batch, as planned."""

    kernel: Kernel
    plan: BatchPlan
    names: npt.NDArray[np.object_] | None = None

    def of_array(self, x: npt.NDArray[np.generic]) -> Iterator[npt.NDArray[Any]]:
        """The rows of an array, batch by batch."""
        for first in range(0, len(x), self.plan.rows):
            yield self.kernel(
                x[first : first + self.plan.rows], self.plan.n_jobs, self.names, self.plan.evict
            )

    def of_batches(self, batches: Iterable[Batch]) -> Iterator[tuple[Batch, npt.NDArray[Any]]]:
        for batch in batches:
            yield batch, self.kernel(batch.x, self.plan.n_jobs, None, self.plan.evict)

    def of_dataset(self, dataset: Dataset) -> Iterator[tuple[Batch, npt.NDArray[Any]]]:
        """The batches of a dataset; the next one is read meanwhile.

        Threads have batches of their own, so that none waits for the others, unless each batch would read all
        of a forest on disk.
        """
        jobs = 1 if self.plan.evict else self.plan.n_jobs
        rows = -(-self.plan.rows // jobs)
        with closing(read_ahead(dataset.batches(rows), depth=jobs)) as batches:
            yield from self.of_batches(batches) if jobs == 1 else self._side_by_side(batches, jobs)

    def _side_by_side(self, batches: Iterable[Batch], jobs: int) -> Iterator[tuple[Batch, npt.NDArray[Any]]]:
        """Batches in their order, each predicted by one thread."""
        with workers(jobs) as pool:
            begun: deque[tuple[Batch, Future[npt.NDArray[Any]]]] = deque()
            for batch in batches:
                begun.append((batch, pool.submit(self.kernel, batch.x, 1, None, False)))
                if len(begun) > jobs:
                    first, made = begun.popleft()
                    yield first, made.result()
            while begun:
                first, made = begun.popleft()
                yield first, made.result()


def plan_array(forest: Forest, n_rows: int, memory_limit: Any, n_jobs: int, needs: Needs) -> BatchPlan:
    """Plan the batches of an array. Its rows are in memory already, so that the limit is refused only if the
    results are large."""
    if not forest.mapped and n_rows * (needs.result + forest.n_outputs) < _ALWAYS_FITS:
        return BatchPlan(n_rows, False, n_jobs)  # single rows must be fast
    limit = _limit_lately(memory_limit, int(time.monotonic()))
    if forest.nbytes + n_rows * (needs.result + forest.n_outputs) < min(_ALWAYS_FITS, limit // 4):
        return BatchPlan(n_rows, False, n_jobs)
    return plan_batches(forest, limit, n_jobs, needs, refuse=needs.held >= _LARGE_RESULTS)


def gathered(parts: Iterable[npt.NDArray[Any]], n_rows: int | None) -> npt.NDArray[Any]:
    """All parts in one array, without a second copy if the number of rows is known."""
    found: list[npt.NDArray[Any]] = []
    out, at = None, 0
    for part in parts:
        if n_rows is None or len(part) == n_rows:
            found.append(part)
            continue
        if out is None:
            out = np.empty((n_rows, *part.shape[1:]), dtype=part.dtype)
        out[at : at + len(part)] = part
        at += len(part)
    if out is not None:
        return out
    return found[0] if len(found) == 1 else np.concatenate(found)


@lru_cache(maxsize=16, typed=True)
def _limit_lately(memory_limit: Any, second: int) -> int:
    """The limit, cached for a second: asking the system takes longer than predicting a row."""
    return memory_limit_of(memory_limit)


def columns_for(dataset: Dataset, n_features: int, names: npt.NDArray[np.object_] | None) -> Dataset:
    """The dataset with the features of the forest, selected by name if both have names."""
    if names is not None and dataset.feature_names is not None:
        wanted = [str(name) for name in names]
        return dataset if list(dataset.feature_names) == wanted else dataset.select(wanted)
    known = None if names is None else list(names)
    warn_of_names(dataset.feature_names, known, "Make sure that they are in the order of training.")
    if dataset.n_features != n_features:
        raise DataError(
            f"The dataset has {counted(dataset.n_features, 'feature')}, but the forest was trained on "
            f"{n_features:,}."
        )
    return dataset


def warn_of_names(found: Sequence[str] | None, known: Sequence[str] | None, way: str) -> None:
    """Warn that columns are used in order, if only the data or only the forest has feature names."""
    if (found is None) == (known is None):
        return
    what = "The data has no feature names, but the forest was fitted with them"
    if found is not None:
        what = f"The data has feature names ({shortened(found)}), but the forest was fitted without"
    warn(f"{what}: columns are used in order. {way}", FeatureNamesWarning, stacklevel=4)
