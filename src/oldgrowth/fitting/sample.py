"""Stage 1, one pass over all rows: count, learn how few bytes hold each feature, keep the top samples."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import closing
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import DataError
from ..plan import Plan
from ..reporting.progress import StageProgress
from ..rows.data_summary import SummaryBuilder
from ..rows.id_columns import IdFinder
from ..rows.read_ahead import read_ahead
from ..rows.training_rows import Chunk, Pass, Place, Trail, TrainingRows
from ..storage.candidate_rows import CandidateRows
from ..storage.checkpoint import Checkpoint
from ..storage.fit_workspace import FitWorkspace
from ..storage.sampled import Sampled
from .sample_state import check_memory

_STATE = "sample"
_SAVE_EVERY_SECONDS = 5.0
_LOOK_EVERY_CHUNKS = 64


def sample(
    rows: TrainingRows,
    plan: Plan,
    pool: Executor,
    progress: StageProgress,
    workspace: FitWorkspace | None = None,
    candidate_bytes: int = 2**62,
    look: Look | None = None,
) -> Sampled:
    """`plan` knows no more than what can be known before; its top sample is the largest there may be.

    Candidates beyond `candidate_bytes` go to the workspace. `look` is told now and then what is certain
    already.
    """
    workspace = workspace or FitWorkspace()
    checkpoint = workspace.checkpoint()
    found = _Found(
        rows, plan, None if rows.random_access else CandidateRows(rows.n_features, workspace, candidate_bytes)
    )
    reading = Pass(rows, found.resume(checkpoint), found.trail)
    progress.skip(reading.place.row)
    choose = _chooser(rows, plan) if found.candidates is not None else None
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

    def __init__(self, rows: TrainingRows, plan: Plan, candidates: CandidateRows | None) -> None:
        self._rows = rows
        self.candidates = candidates
        self.complete = False
        self.trail = Trail()
        self._profile = _core.Profile(rows.n_features)
        self._finder = SummaryBuilder(rows.n_features, plan.classification)
        self._ids = IdFinder(rows.n_features, rows.names)
        edges = np.linspace(0, rows.n_features, plan.n_jobs + 1).astype(int).tolist()
        self._columns = [(a, b) for a, b in pairwise(edges) if a < b]

    def add(self, chunk: Chunk, choose: _Chooser | None, pool: Executor) -> None:
        work = [pool.submit(self._profile.add, chunk.x, first, last) for first, last in self._columns]
        self._ids.add(chunk.x)
        if chunk.rows:
            self._finder.add(chunk.targets, chunk.weights)
        if choose is not None and self.candidates is not None:
            self.candidates.add(chunk, choose(chunk))
        for task in work:
            task.result()

    def tell(self, look: Look) -> None:
        if self._finder.n_rows:
            look(self._finder.n_rows, self._finder.n_classes, self._profile, self._finder.weighted)

    def save(self, checkpoint: Checkpoint, place: Place, complete: bool) -> None:
        if not checkpoint.active:
            return
        arrays = (
            {} if self.candidates is None else {f"kept_{k}": v for k, v in self.candidates.state().items()}
        )
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
        if self.candidates is not None and checkpoint.active:  # rows of no memory, or not all of one
            self.candidates.forget()
        return Place()

    def _restored(self, arrays: dict[str, npt.NDArray[Any]], values: dict[str, Any]) -> Place | None:
        """None if rows that were kept are lost: then the pass is made again."""
        place, classes = Place(**values["place"]), len(values["labels"].get("labels", []))
        check_memory(values, place, self._rows)
        if self.candidates is not None:
            parts = {k.removeprefix("kept_"): v for k, v in arrays.items() if k.startswith("kept_")}
            if not self.candidates.restore(parts, classes, place.row):
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
        if self.candidates is not None:
            self.candidates.recode(final)
        codec = _core.RowCodec(self._profile)
        summary = self._finder.summary(self._rows.n_classes, codec.record_bytes)
        return Sampled(self._rows, summary, codec, self.candidates, end, self.trail)


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
