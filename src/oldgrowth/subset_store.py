"""The baseline's buckets: each tree has one, of the rows of its own sample. Nothing is distributed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from . import _core
from .leaf_buckets import RowPart
from .plan import Plan
from .sample import Sampled
from .top_tree import SampleRows


class SubsetStore:
    """As much of a store as growing needs."""

    def __init__(self, sampled: Sampled, plan: Plan) -> None:
        self._sampled = sampled
        self._plan = plan

    def sizes(self, top: int) -> npt.NDArray[np.int64]:
        return np.array([min(self._plan.top_sample, self._sampled.facts.n_rows)])

    def numbers(self, top: int, bucket: int) -> npt.NDArray[np.uint64]:
        return self._sampled.top_sample(self._plan, top)

    def load(self, top: int, bucket: int) -> _core.Bucket:
        return SampleRows.of(self._sampled, self._plan, top).bucket(None, self._plan.bootstrap)

    def only_leaf(self, top: int, bucket: int, rows: int) -> bool:
        return False

    def parts(self, top: int, bucket: int) -> Iterator[RowPart]:
        rows = SampleRows.of(self._sampled, self._plan, top)
        yield RowPart(rows.keys, rows.targets, rows.weights, None)

    def expect(self, top: int, bucket: int) -> None:
        """Rows are taken as they are needed."""

    def drop(self, top: int) -> None:
        """Nothing is held."""
