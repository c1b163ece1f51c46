"""What the first pass learns of consecutive rows, as a value that can be pickled.

The values of two consecutive parts merge into the value of both, so that the result does not depend on how
rows are cut into partitions.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .. import _core
from ..errors import DataError
from ..plan import Plan
from ..rows.data_summary import SummaryBuilder
from ..rows.id_columns import IdFinder
from ..rows.training_rows import Chunk, Place, Trail, TrainingRows
from ..storage.candidate_rows import CandidateRows
from ..storage.sampled import Sampled
from .engine import Engine


class Learned:
    """What is known of the rows from `start` to `end`.

    The checksums of its places are those of a pass that began at `start`. `candidates` is None where rows can
    be asked for later.
    """

    def __init__(self, rows: TrainingRows, start: Place, candidates: CandidateRows | None) -> None:
        self.start = self.end = start
        self.labels = rows.labels
        self.summary = SummaryBuilder(rows.n_features, rows.classification)
        self.profile = _core.Profile(rows.n_features)
        self.candidates = candidates
        self.ids = IdFinder(rows.n_features, rows.names, start.row, rows.categorical)
        self.trail = Trail()
        self.n_features = rows.n_features
        self._row_bytes = 4 * rows.n_features, 8 + 8 * rows.weighted  # that checksums see

    def add(self, chunk: Chunk, end: Place, plan: Plan, n_tops: int, of: int | None, engine: Engine) -> None:
        """Learn from a chunk that ends at `end`. It may contain rows of the samples of `n_tops` top trees,
        drawn from `of` rows in total, if their number is known."""
        edges = np.linspace(0, self.n_features, plan.n_jobs + 1).astype(int).tolist()
        work = [engine.submit(self.profile.add, chunk.x, a, b) for a, b in pairwise(edges) if a < b]
        self.ids.add(chunk.x)
        if chunk.rows:
            self.summary.add(chunk.targets, chunk.weights)
        if self.candidates is not None:
            drawn_from, tops = chunk.end if of is None else of, (plan.first_top, n_tops)
            chosen = _core.candidate_rows(
                plan.top_sample, plan.seed, tops, chunk.first_row, chunk.rows, drawn_from
            )
            self.candidates.add(chunk, chosen)
        for task in work:
            task.result()
        self.end = end

    def merge(self, following: Learned) -> None:
        """Add what was learned of the rows that follow."""
        if following.start.unread != self.end.unread:
            raise ValueError(f"rows from {following.start} on do not follow {self.end}")
        codes = None
        if self.labels is not None and following.labels is not None:
            codes = self.labels.merge(following.labels, following.end.source_row)
        self.summary.merge(following.summary, codes)
        self.profile.merge(following.profile)
        if self.candidates is not None and following.candidates is not None:
            self.candidates.merge(following.candidates, codes)
        self.ids.merge(following.ids)
        self.trail.merge(following.trail.behind(self.end, following.start, self._row_bytes))
        self.end = following.end.behind(self.end, following.start, self._row_bytes)

    def finish(self, rows: TrainingRows) -> Sampled:
        """Number the classes, once all rows were learned from, and warn of features that look like an id."""
        if self.summary.n_rows == 0:
            raise DataError("There is no row to train on: all weights are zero.")
        self.ids.finish()
        if self.labels is not None:
            final = self.labels.finish()
            rows.use_labels(self.labels)
            self.summary.recode(final)
            if self.candidates is not None:
                self.candidates.recode(final)
        codec = _core.RowCodec(self.profile)
        summary = self.summary.summary(rows.n_classes, codec.record_bytes)
        return Sampled(rows, summary, codec, self.candidates, self.end, self.trail)
