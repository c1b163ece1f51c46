"""The stage before the first pass, only for data with categorical features: which levels they have.

It reads these features alone. After it the rows hold numbers, the codes of levels, for all that follows.
"""

from __future__ import annotations

import time

from ..datasets.level_counts import LearnedLevels, LevelLimit
from ..rows.streamed_rows import StreamedRows
from ..rows.training_rows import TrainingRows
from ..storage.checkpoint import Checkpoint
from .context import FitContext

_STATE = "levels"
_SAVE_EVERY_SECONDS = 5.0


def learn_levels(rows: TrainingRows, context: FitContext, limit: LevelLimit) -> None:
    """Learn the levels of rows that do not know them yet."""
    if not isinstance(rows, StreamedRows) or not rows.categorical:
        return  # arrays have codes
    learned = LearnedLevels(rows.dataset, rows.categorical)
    learned.limit = limit
    checkpoint = context.checkpoint
    complete, begin = _resumed(learned, checkpoint), learned.end
    saved_at = time.monotonic()
    with context.recorder.stage("levels", rows.dataset.n_rows) as progress:
        progress.skip(begin - rows.dataset.first_row)
        for part in () if complete else learned.learn(rows.dataset):
            progress.advance(part.end - part.first_row)
            if checkpoint.active and time.monotonic() - saved_at > _SAVE_EVERY_SECONDS:
                checkpoint.save(_STATE, {}, learned.state() | {"complete": False})
                saved_at = time.monotonic()
        if not complete:
            checkpoint.save(_STATE, {}, learned.state() | {"complete": True})
    rows.use_levels(learned.finish(rows.n_features))


def _resumed(learned: LearnedLevels, checkpoint: Checkpoint) -> bool:
    """Take up what was saved; whether that is all."""
    saved = checkpoint.saved(_STATE)
    if saved is None:
        return False
    with checkpoint.validating(_STATE):
        learned.restore(saved[1])
        return bool(saved[1]["complete"])
