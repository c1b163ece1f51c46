"""Buckets in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from .. import _core
from ..plan import Plan
from ..rows.records import decoded, encode
from ..rows.training_rows import Chunk
from .bucket_store import BucketStore, Router, different_from_first
from .leaf_buckets import RowPart
from .sampled import Sampled

# Rows looked at at a time.
_ROWS_AT_A_TIME = 65_536


class MemoryStore(BucketStore):
    """One record for each row, whatever the number of top trees; a bucket is a list of row numbers."""

    def __init__(self, sampled: Sampled, n_buckets: dict[int, int], plan: Plan) -> None:
        super().__init__(plan)
        n = sampled.summary.n_rows
        self.codec = sampled.codec
        self._classification = plan.classification
        self.group_rows = n
        self._records = np.empty((n, self.codec.record_bytes), dtype=np.uint8)
        self._keys = np.empty(n, dtype=np.uint64)
        # Arrays that the caller has need no copy.
        targets, weights = sampled.rows.whole_targets()
        self._copied = targets is None
        self._targets = np.empty(n) if targets is None else targets
        self._weights = weights
        if self._copied and sampled.summary.weighted:
            self._weights = np.empty(n)
        self._all_rows = _core.Rows(
            self._records, self._keys, self._targets, self._weights, plan.target_scale
        )
        self._n_buckets = n_buckets
        self._buckets = {top: np.empty(n, dtype=np.uint32) for top in n_buckets}
        self._order: dict[int, npt.NDArray[np.uint32 | np.uint64]] = {}
        self._start: dict[int, npt.NDArray[np.uint64]] = {}

    def begin_group(self) -> None:
        pass

    def put(self, group: None, at: int, chunk: Chunk, buckets: list[npt.NDArray[np.uint32]]) -> None:
        part = slice(chunk.first_row, chunk.end)
        encode(
            self.codec,
            chunk.x,
            chunk.targets,
            chunk.first_row,
            self._records[part],
            self._keys[part],
            chunk.where,
        )
        if self._copied:
            self._targets[part] = chunk.targets
            if self._weights is not None and chunk.weights is not None:
                self._weights[part] = chunk.weights
        for mine, given in zip(self._buckets.values(), buckets, strict=True):
            mine[part] = given

    def end_group(self, group: None, rows: int) -> None:
        pass

    def seal(self, top: int) -> None:
        buckets = self._buckets.pop(top)
        self._order[top], self._start[top] = _core.group_by_bucket(buckets, self._n_buckets[top])

    def sizes(self, top: int) -> npt.NDArray[np.int64]:
        start = self._start[top].astype(np.int64)
        return start[1:] - start[:-1]

    def numbers(self, top: int, bucket: int) -> npt.NDArray[np.uint32 | np.uint64]:
        start = self._start[top]
        return self._order[top][int(start[bucket]) : int(start[bucket + 1])]

    def load(self, top: int, bucket: int, places: npt.NDArray[np.uint64] | None = None) -> _core.Bucket:
        rows = self.numbers(top, bucket)
        if places is not None:
            rows = rows[places]
        return _core.make_bucket(self.codec, self._all_rows, rows, self._classification)

    def parts(self, top: int, bucket: int) -> Iterator[RowPart]:
        rows = self.numbers(top, bucket)
        for at in range(0, len(rows), _ROWS_AT_A_TIME):
            part = rows[at : at + _ROWS_AT_A_TIME]
            weights = None if self._weights is None else self._weights[part]
            yield RowPart(self._keys[part], self._targets[part], weights, part)

    def different_rows(self, top: int, bucket: int, most: int) -> npt.NDArray[np.uint64]:
        rows = self.numbers(top, bucket)
        starts = range(0, len(rows), _ROWS_AT_A_TIME)
        return different_from_first((self._records[rows[at : at + _ROWS_AT_A_TIME]] for at in starts), most)

    def split(self, top: int, bucket: int, route: Router, n_parts: int) -> None:
        rows = self.numbers(top, bucket)
        parts = np.concatenate([route(x) for x in decoded(self.codec, self._records, rows)])
        start = self._start[top]
        order, ends = _core.group_by_bucket(parts, n_parts)
        rows[:] = rows[order]
        inside = start[bucket] + ends[1:-1]
        self._start[top] = np.concatenate([start[: bucket + 1], inside, start[bucket + 1 :]])

    def drop(self, top: int) -> None:
        self._order.pop(top)
