"""Where the rows of the buckets live between distribution and growth."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from . import _core
from .datasets import ArrayDataset
from .errors import ChangedDataError
from .plan import Plan


def encode(
    codec: _core.RowCodec,
    x: npt.NDArray[np.float32],
    targets: npt.NDArray[np.float64],
    first_row: int,
    records: npt.NDArray[np.uint8] | None = None,
    keys: npt.NDArray[np.uint64] | None = None,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64]]:
    """Rows as records, with a key for each that hashes its content; into the given arrays, or new ones."""
    if records is None:
        records = np.empty((len(x), codec.record_bytes), dtype=np.uint8)
    if keys is None:
        keys = np.empty(len(x), dtype=np.uint64)
    if not codec.encode(x, (targets + 0.0).view(np.uint64), records, keys):
        raise ChangedDataError(first_row, first_row + len(x) - 1)
    return records, keys


class BucketStore(ABC):
    """Takes routed rows in any order of chunks, then hands out buckets with their rows in order."""

    @abstractmethod
    def put(self, first_row: int, x: npt.NDArray[np.float32], buckets: list[npt.NDArray[np.uint32]]) -> None:
        """Store a chunk; `buckets` has, for each top tree, the bucket of each of its rows."""

    @abstractmethod
    def seal(self, top: int, n_buckets: int) -> None:
        """All rows are in: make the buckets of a top tree ready."""

    @abstractmethod
    def sizes(self, top: int) -> npt.NDArray[np.int64]:
        """The number of rows in each bucket."""

    @abstractmethod
    def rows(self, top: int, bucket: int) -> npt.NDArray[np.uint32]:
        """The numbers of a bucket's rows, ascending."""

    @abstractmethod
    def load(self, top: int, bucket: int, places: npt.NDArray[np.uint32] | None = None) -> _core.Bucket:
        """A bucket ready to grow on, or just the rows at these places in it."""

    @abstractmethod
    def values(self, top: int, bucket: int, first: int, last: int) -> npt.NDArray[np.float32]:
        """The features of a bucket's rows from place `first` to before `last`."""

    @abstractmethod
    def split(self, top: int, bucket: int, parts: npt.NDArray[np.uint32], n_parts: int) -> None:
        """Make n_parts buckets of one; `parts` has the part of each of its rows. Later buckets move up."""


class MemoryStore(BucketStore):
    """One record for each row, whatever the number of top trees; a bucket is a list of row numbers."""

    def __init__(self, data: ArrayDataset, codec: _core.RowCodec, n_tops: int, plan: Plan) -> None:
        self._codec = codec
        self._classification = plan.classification
        self._records = np.empty((data.n_rows, codec.record_bytes), dtype=np.uint8)
        self._keys = np.empty(data.n_rows, dtype=np.uint64)
        self._targets = data.targets
        self._all_rows = _core.Rows(self._records, self._keys, data.targets, data.weights, plan.target_scale)
        self._buckets: list[npt.NDArray[np.uint32] | None] = [
            np.empty(data.n_rows, dtype=np.uint32) for _ in range(n_tops)
        ]
        self._order: dict[int, npt.NDArray[np.uint32]] = {}
        self._start: dict[int, npt.NDArray[np.uint64]] = {}

    def put(self, first_row: int, x: npt.NDArray[np.float32], buckets: list[npt.NDArray[np.uint32]]) -> None:
        part = slice(first_row, first_row + len(x))
        encode(self._codec, x, self._targets[part], first_row, self._records[part], self._keys[part])
        for mine, given in zip(self._buckets, buckets, strict=True):
            assert mine is not None
            mine[part] = given

    def seal(self, top: int, n_buckets: int) -> None:
        buckets = self._buckets[top]
        assert buckets is not None
        self._order[top], self._start[top] = _core.group_by_bucket(buckets, n_buckets)
        self._buckets[top] = None

    def use_sample(self, top: int, rows: npt.NDArray[np.uint32]) -> None:
        """One bucket with just these rows."""
        self._order[top] = rows
        self._start[top] = np.array([0, len(rows)], dtype=np.uint64)

    def sizes(self, top: int) -> npt.NDArray[np.int64]:
        start = self._start[top].astype(np.int64)
        return start[1:] - start[:-1]

    def rows(self, top: int, bucket: int) -> npt.NDArray[np.uint32]:
        start = self._start[top]
        return self._order[top][int(start[bucket]) : int(start[bucket + 1])]

    def load(self, top: int, bucket: int, places: npt.NDArray[np.uint32] | None = None) -> _core.Bucket:
        rows = self.rows(top, bucket)
        if places is not None:
            rows = rows[places]
        return _core.make_bucket(self._codec, self._all_rows, rows, self._classification)

    def values(self, top: int, bucket: int, first: int, last: int) -> npt.NDArray[np.float32]:
        rows = self.rows(top, bucket)[first:last]
        x = np.empty((len(rows), len(self._codec.widths)), dtype=np.float32)
        self._codec.decode(self._records, rows, x)
        return x

    def split(self, top: int, bucket: int, parts: npt.NDArray[np.uint32], n_parts: int) -> None:
        start = self._start[top]
        order, ends = _core.group_by_bucket(parts, n_parts)
        self.rows(top, bucket)[:] = self.rows(top, bucket)[order]
        inside = start[bucket] + ends[1:-1]
        self._start[top] = np.concatenate([start[: bucket + 1], inside, start[bucket + 1 :]])
