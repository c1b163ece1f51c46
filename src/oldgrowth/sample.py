"""Stage 1, one pass over all rows: count, learn how few bytes hold each feature, keep the top samples."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from .checkpoint import Checkpoint
from .datasets.base import FloatsOrBytes
from .errors import ChangedDataError, DataError
from .facts import FactFinder, Facts
from .id_columns import IdFinder
from .kept_rows import KeptRows
from .plan import Plan
from .progress import StageProgress
from .sample_memory import check_memory
from .space import Space
from .training_rows import Chunk, Pass, Place, Taken, Trail, TrainingRows, read_ahead

_STATE = "sample"
_SAVE_EVERY_SECONDS = 5.0
_LOOK_EVERY_CHUNKS = 64
# Values that are made floats at a time.
_FLOATS_AT_A_TIME = 2**20


def floats_at_a_time(n_features: int) -> int:
    """Rows of so many features that are made floats at a time."""
    return max(64, min(65_536, _FLOATS_AT_A_TIME // n_features))


@dataclass(frozen=True)
class Sampled:
    """What the first pass found: the facts, a codec for all rows, and where it ended."""

    rows: TrainingRows
    facts: Facts
    codec: _core.RowCodec
    kept: KeptRows | None  # rows that may be in a top sample, if the source cannot be asked for them again
    end: Place
    trail: Trail  # of the first pass

    def top_sample(self, plan: Plan, top: int) -> npt.NDArray[np.uint64]:
        """The numbers of the rows that a top tree, or a tree on a subset, is grown on."""
        return _core.draw_sample(plan.top_sample, plan.seed, top, self.facts.n_rows)

    def take(self, rows: npt.NDArray[np.uint64]) -> Iterator[Taken]:
        """Some rows of a top sample at a time."""
        if self.kept is not None:
            yield from self.kept.take(rows)
            return
        step = floats_at_a_time(self.rows.n_features)
        for first in range(0, len(rows), step):
            yield self.rows.take(rows[first : first + step])


def sample(
    rows: TrainingRows,
    plan: Plan,
    pool: Executor,
    progress: StageProgress,
    space: Space | None = None,
    kept_bytes: int = 2**62,
    look: Look | None = None,
) -> Sampled:
    """`plan` knows no more than what can be known before; its top sample is the largest there may be.

    Sampled rows beyond `kept_bytes` go to the space. `look` is told now and then what is certain already.
    """
    space = space or Space()
    checkpoint = space.checkpoint()
    found = _Found(rows, plan, None if rows.random_access else KeptRows(rows.n_features, space, kept_bytes))
    reading = Pass(rows, found.resume(checkpoint), found.trail)
    progress.skip(reading.place.row)
    choose = _chooser(rows, plan) if found.kept is not None else None
    saved_at = time.monotonic()
    if not found.complete:
        with closing(read_ahead(reading.chunks(plan.chunk_size))) as chunks:
            for number, (chunk, place) in enumerate(chunks):
                found.add(chunk, choose, pool)
                if look is not None and (number & (number + 1) == 0 or number % _LOOK_EVERY_CHUNKS == 0):
                    found.tell(look)
                progress.advance(chunk.rows)
                if checkpoint.active and time.monotonic() - saved_at > _SAVE_EVERY_SECONDS:
                    found.save(checkpoint, place, complete=False)
                    saved_at = time.monotonic()
        found.save(checkpoint, reading.place, complete=True)
    return found.finish(reading.place)


class _Found:
    """What is found so far."""

    def __init__(self, rows: TrainingRows, plan: Plan, kept: KeptRows | None) -> None:
        self._rows = rows
        self.kept = kept
        self.complete = False
        self.trail = Trail()
        self._profile = _core.Profile(rows.n_features)
        self._finder = FactFinder(rows.n_features, plan.classification)
        self._ids = IdFinder(rows.n_features, rows.names)
        edges = np.linspace(0, rows.n_features, plan.n_jobs + 1).astype(int).tolist()
        self._columns = [(a, b) for a, b in pairwise(edges) if a < b]

    def add(self, chunk: Chunk, choose: _Chooser | None, pool: Executor) -> None:
        work = [pool.submit(self._profile.add, chunk.x, first, last) for first, last in self._columns]
        self._ids.add(chunk.x)
        if chunk.rows:
            self._finder.add(chunk.targets, chunk.weights)
        if choose is not None and self.kept is not None:
            self.kept.add(chunk, choose(chunk))
        for task in work:
            task.result()

    def tell(self, look: Look) -> None:
        if self._finder.n_rows:
            look(self._finder.n_rows, self._finder.n_classes, self._profile, self._finder.weighted)

    def save(self, checkpoint: Checkpoint, place: Place, complete: bool) -> None:
        if not checkpoint.active:
            return
        arrays = {} if self.kept is None else {f"kept_{k}": v for k, v in self.kept.state().items()}
        flags = []
        for f in range(self._rows.n_features):
            wide, missing, arrays[f"values_{f}"] = self._profile.state(f)
            flags.append((wide, missing))
        values = {
            "place": vars(place),
            "trail": self.trail.state(),
            "complete": complete,
            "features": flags,
            "facts": self._finder.state(),
            "labels": self._rows.label_state(),
        }
        checkpoint.save(_STATE, arrays, values)

    def resume(self, checkpoint: Checkpoint) -> Place:
        """Take up what was saved; where the pass goes on."""
        saved = checkpoint.saved(_STATE)
        if saved is not None:
            with checkpoint.believed(_STATE):
                if (place := self._restored(*saved)) is not None:
                    return place
        if self.kept is not None and checkpoint.active:  # rows of no memory, or not all of one
            self.kept.forget()
        return Place()

    def _restored(self, arrays: dict[str, npt.NDArray[Any]], values: dict[str, Any]) -> Place | None:
        """None if rows that were kept are lost: then the pass is made again."""
        place, classes = Place(**values["place"]), len(values["labels"].get("labels", []))
        check_memory(values, place, self._rows)
        if self.kept is not None:
            parts = {k.removeprefix("kept_"): v for k, v in arrays.items() if k.startswith("kept_")}
            if not self.kept.restore(parts, classes, place.row):
                return None
        for f, (wide, missing) in enumerate(values["features"]):
            known = arrays[f"values_{f}"]
            if known.dtype != np.float32 or not np.isfinite(known).all():
                raise ValueError(f"values of feature {f}")
            self._profile.restore(f, bool(wide), bool(missing), known)
        self._finder.restore(values["facts"])
        self._rows.restore_labels(values["labels"])
        self.complete = bool(values["complete"])
        self.trail = Trail.restored(values["trail"])
        return place

    def finish(self, end: Place) -> Sampled:
        if self._finder.n_rows == 0:
            raise DataError("There is no row to train on: all weights are zero.")
        self._ids.finish()
        final = self._rows.finish_first_pass()
        if final is not None:
            self._finder.recode(final)
        if self.kept is not None:
            self.kept.recode(final)
        codec = _core.RowCodec(self._profile)
        facts = self._finder.facts(self._rows.n_classes, codec.record_bytes)
        return Sampled(self._rows, facts, codec, self.kept, end, self.trail)


# Called with how many rows and classes there are at least, what is known of values, if there are weights.
Look = Callable[[int, int, _core.Profile, bool], None]
_Chooser = Callable[[Chunk], npt.NDArray[np.uint64]]


def _chooser(rows: TrainingRows, plan: Plan) -> _Chooser:
    """Which rows of a chunk may be in a top sample: fewer as there turn out to be more, unless their number
    is known."""
    n = rows.n_rows
    no_tops = n is not None and not (plan.subsets or plan.needs_top_trees(n))
    n_tops = 0 if no_tops else len(plan.trees_of_tops(2**62 if n is None else n))

    def choose(chunk: Chunk) -> npt.NDArray[np.uint64]:
        of = chunk.end if n is None else n
        return _core.candidate_rows(plan.top_sample, plan.seed, n_tops, chunk.first_row, chunk.rows, of)

    return choose


def encode(
    codec: _core.RowCodec,
    x: FloatsOrBytes,
    targets: npt.NDArray[np.float64],
    first_row: int,
    records: npt.NDArray[np.uint8] | None = None,
    keys: npt.NDArray[np.uint64] | None = None,
    where: str = "the data",
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64]]:
    """Rows as records, with a key for each that hashes its content; into the given arrays, or new ones."""
    if records is None:
        records = np.empty((len(x), codec.record_bytes), dtype=np.uint8)
    if keys is None:
        keys = np.empty(len(x), dtype=np.uint64)
    if not codec.encode(x, (targets + 0.0).view(np.uint64), records, keys):
        raise ChangedDataError(first_row, first_row + len(x) - 1, where)
    return records, keys


def decoded(
    codec: _core.RowCodec, records: npt.NDArray[np.uint8], places: npt.NDArray[np.uint32 | np.uint64]
) -> Iterator[npt.NDArray[np.float32]]:
    """The values of the records at these places, some rows at a time."""
    step = floats_at_a_time(len(codec.widths))
    for first in range(0, len(places), step):
        part = places[first : first + step]
        x = np.empty((len(part), len(codec.widths)), dtype=np.float32)
        codec.decode(records, part, x)
        yield x
