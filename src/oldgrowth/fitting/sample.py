"""Stage 1, one pass over all rows: count them, find the narrowest encoding of each feature, draw the top
samples.

Partitions of a dataset can be learned from separately, in any process; here the whole is one partition.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing

from .. import _core
from ..plan import Plan
from ..reporting.progress import StageProgress
from ..rows.read_ahead import read_ahead
from ..rows.streamed_rows import StreamedRows
from ..rows.training_rows import Chunk, Pass, Place, TrainingRows
from ..storage.candidate_rows import CandidateRows
from ..storage.checkpoint import Checkpoint
from ..storage.sampled import Sampled
from ..system.threads import workers
from .context import FitContext
from .engine import Engine
from .learned import Learned
from .sample_state import restore, state_of

_STATE = "sample"
_SAVE_EVERY_SECONDS = 5.0
_CHECK_EVERY_CHUNKS = 64

# Called with how many rows and classes there are at least, what is known of values, if there are weights.
CheckSoFar = Callable[[int, int, _core.Profile, bool], None]


def sample(
    rows: TrainingRows,
    plan: Plan,
    context: FitContext,
    progress: StageProgress,
    candidate_bytes: int = 2**62,
    check: CheckSoFar | None = None,
) -> Sampled:
    """The first pass. `plan` is preliminary, with the largest possible top sample.

    Candidates beyond `candidate_bytes` go to the workspace. `check` is called from time to time with what is
    known so far.
    """
    workspace, checkpoint = context.workspace, context.checkpoint
    candidates = None if rows.random_access else CandidateRows(rows.n_features, workspace, candidate_bytes)
    learned = Learned(rows, Place(), candidates)
    complete = resumed(learned, rows, checkpoint, _STATE, rows.n_rows)
    progress.skip(learned.end.row)
    saved_at = time.monotonic()
    if not complete:
        for number, chunk in enumerate(_learning(learned, rows, plan, rows.n_rows, context.engine)):
            if learned.ids.knows:
                learned.ids.finish()
            if check is not None and (number & (number + 1) == 0 or number % _CHECK_EVERY_CHUNKS == 0):
                _call(check, learned)
            progress.advance(chunk.rows)
            if checkpoint.active and time.monotonic() - saved_at > _SAVE_EVERY_SECONDS:
                remember(learned, checkpoint, _STATE, complete=False)
                saved_at = time.monotonic()
        remember(learned, checkpoint, _STATE)
    return learned.finish(rows)


def learn(
    rows: StreamedRows,
    plan: Plan,
    start: Place,
    of: int | None,
    candidates: CandidateRows | None = None,
    progress: StageProgress | None = None,
) -> Learned:
    """What the first pass learns of the rows of a partition that begins at `start`.

    `of` is the number of rows with a weight in all partitions, if it is known. Needs nothing else of its
    process.
    """
    learned = Learned(rows, start, candidates or CandidateRows(rows.n_features))
    with workers(plan.n_jobs) as engine:
        for chunk in _learning(learned, rows, plan, of, engine):
            if progress is not None:
                progress.advance(chunk.rows)
    return learned


def _learning(
    learned: Learned, rows: TrainingRows, plan: Plan, of: int | None, engine: Engine
) -> Iterator[Chunk]:
    """Read all rows from where `learned` ends on; each chunk when it is learned."""
    no_tops = of is not None and not plan.needs_samples(of)
    n_tops = 0 if no_tops else len(plan.trees_of_tops(2**62 if of is None else of))
    reading = Pass(rows, learned.end, learned.trail)
    with closing(read_ahead(reading.chunks(plan.chunk_size))) as chunks:
        for chunk, place in chunks:
            learned.add(chunk, place, plan, n_tops, of, engine)
            yield chunk


def _call(check: CheckSoFar, learned: Learned) -> None:
    summary = learned.summary
    if summary.n_rows:
        check(summary.n_rows, summary.n_classes, learned.profile, summary.weighted)


def remember(learned: Learned, checkpoint: Checkpoint, name: str, complete: bool = True) -> None:
    """Save what was learned, so that `resumed` takes it up."""
    if checkpoint.active:
        arrays, values = state_of(learned)
        checkpoint.save(name, arrays, values | {"complete": complete})


def resumed(learned: Learned, rows: TrainingRows, checkpoint: Checkpoint, name: str, of: int | None) -> bool:
    """Restore the saved state; returns whether the pass was complete. There are `of` rows, if known."""
    saved = checkpoint.saved(name)
    if saved is not None:
        with checkpoint.validating(name):
            if restore(learned, rows, *saved, of):
                return bool(saved[1]["complete"])
    if learned.candidates is not None and checkpoint.active:  # rows of no memory, or not all of one
        learned.candidates.clear()
    return False
