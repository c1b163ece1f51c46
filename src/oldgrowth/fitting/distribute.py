"""Stage 3, one pass over all rows: route each through the top trees and put it into its buckets.

Reading, routing and writing overlap: chunks are read ahead, workers route them and write them into the
store's current group, each into its own part, and one thread writes a complete group to disk while the next
one is collected.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..errors import ChangedSourceError
from ..plan import Plan
from ..reporting.progress import StageProgress
from ..rows.read_ahead import read_ahead
from ..rows.training_rows import Chunk, Pass, Place, Trail, TrainingRows
from ..storage.bucket_store import BucketStore
from ..storage.sampled import Sampled
from ..system.threads import cancelled_by_errors
from .engine import Engine
from .top_trees import TopTree


@dataclass(frozen=True)
class Reached:
    """The progress of a distribution: a place in the rows, and the number of rows of each class before it."""

    place: Place = field(default_factory=Place)
    class_rows: tuple[int, ...] = ()


@dataclass(frozen=True)
class Distributing:
    """What all parts have in common: the plan, the engine, and the progress to report to."""

    plan: Plan
    engine: Engine
    progress: StageProgress


@dataclass(frozen=True)
class Part:
    """Consecutive rows that are distributed together: all rows of the data, or those of a partition.

    The first pass over them began at `first` and ended at `end`, recorded the places of `trail`, and counted
    `class_rows`.
    """

    rows: TrainingRows
    first: Place
    end: Place
    trail: Trail
    class_rows: npt.NDArray[np.int64]

    @staticmethod
    def whole(sampled: Sampled) -> Part:
        return Part(sampled.rows, Place(), sampled.end, sampled.trail, sampled.summary.class_rows)


@dataclass(frozen=True)
class Resumable:
    """Where a distribution starts, and a function to call when all rows up to a place are in the store."""

    start: Reached = field(default_factory=Reached)
    written: Callable[[Reached], None] = lambda reached: None


def distribute(
    tops: dict[int, TopTree],
    store: BucketStore,
    part: Part,
    context: Distributing,
    resumable: Resumable | None = None,
) -> None:
    """Bring all rows of a part, or those that remain, into the store, for these top trees."""
    plan, engine, progress = context.plan, context.engine, context.progress
    resumable = resumable or Resumable(Reached(part.first))
    start = resumable.start
    reading = Pass(part.rows, start.place, part.trail)
    counts = np.zeros(plan.n_classes, dtype=np.int64)
    counts[: len(start.class_rows)] = start.class_rows
    progress.skip(start.place.row - part.first.row)

    def put(group: object, at: int, chunk: Chunk) -> None:
        store.put(group, at, chunk, [top.route(chunk.x, plan.levels) for top in tops.values()])

    def end(group: object, rows: int, reached: Reached) -> None:
        store.end_group(group, rows)
        resumable.written(reached)

    with (
        closing(read_ahead(reading.chunks(plan.chunk_size))) as chunks,
        ThreadPoolExecutor(1) as writer,
        cancelled_by_errors(engine),
    ):
        writing: Future[None] | None = None
        for group_chunks in _groups(chunks, store.group_rows, plan.chunk_size):
            group = store.begin_group()
            rows = 0
            waiting: deque[Future[None]] = deque()
            place = start.place
            for chunk, behind in group_chunks:
                place = behind
                if len(waiting) > engine.workers:
                    waiting.popleft().result()
                waiting.append(engine.submit(put, group, rows, chunk))
                rows += chunk.rows
                if plan.classification:
                    counts += np.bincount(chunk.targets.astype(np.intp), minlength=plan.n_classes)
                progress.advance(chunk.rows)
            for task in waiting:
                task.result()
            if writing is not None:
                writing.result()
            writing = writer.submit(end, group, rows, Reached(place, tuple(counts.tolist())))
        if writing is not None:
            writing.result()
    if part.rows.checked:
        reading.compare(part.end)
        if plan.classification and not np.array_equal(counts, part.class_rows):
            raise ChangedSourceError("the data", "the labels of the second pass are not those of the first")


def _groups(
    chunks: Iterator[tuple[Chunk, Place]], group_rows: int, chunk_rows: int
) -> Iterator[Iterator[tuple[Chunk, Place]]]:
    """Chunks in groups: as many as certainly fit into `group_rows` rows."""
    per_group = max(1, group_rows // chunk_rows)
    for first in chunks:

        def group(first: tuple[Chunk, Place] = first) -> Iterator[tuple[Chunk, Place]]:
            yield first
            for _ in range(per_group - 1):
                if (more := next(chunks, None)) is None:
                    return
                yield more

        yield group()
