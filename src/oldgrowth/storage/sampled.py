"""The result of the first pass, and the rows of the top samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..plan import Plan
from ..rows.data_summary import DataSummary
from ..rows.records import floats_at_a_time
from ..rows.training_rows import Place, Taken, Trail, TrainingRows
from .candidate_rows import CandidateRows


@dataclass(frozen=True)
class Sampled:
    """What the first pass found: the summary, a codec for all rows, and where it ended."""

    rows: TrainingRows
    summary: DataSummary
    codec: _core.RowCodec
    # Rows that may be in a top sample, if the source does not give access to single rows later.
    candidates: CandidateRows | None
    end: Place
    trail: Trail  # of the first pass

    @cached_property
    def checksum(self) -> int:
        """A checksum of all results of the first pass that later stages use; it does not depend on how rows
        were read."""
        facts = [np.asarray(value).tolist() for value in vars(self.summary).values()]
        crc = self.codec.checksum
        for text in (str([*map(int, vars(self.end).values())]), str(facts), *map(repr, self._classes())):
            crc = _core.crc32c(np.frombuffer(text.encode(errors="surrogatepass"), dtype=np.uint8), crc)
        return crc

    def _classes(self) -> list[Any]:
        return [] if self.rows.classes is None else self.rows.classes.tolist()

    def top_sample(self, plan: Plan, top: int) -> npt.NDArray[np.uint64]:
        """The numbers of the rows that a top tree, or a tree on a subset, is grown on."""
        number = plan.first_top + top
        if self.candidates is not None:
            return self.candidates.draw(plan, number, self.summary.n_rows)
        return _core.draw_sample(plan.top_sample, plan.seed, number, self.summary.n_rows)

    def take(self, rows: npt.NDArray[np.uint64]) -> Iterator[Taken]:
        """Some rows of a top sample at a time."""
        if self.candidates is not None:
            yield from self.candidates.take(rows)
            return
        step = floats_at_a_time(self.rows.n_features)
        for first in range(0, len(rows), step):
            yield self.rows.take(rows[first : first + step])
