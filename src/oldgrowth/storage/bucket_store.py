"""Where the rows of the buckets live between distribution and growth: the interface, and memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .. import _core
from ..plan import Plan
from ..rows.records import decoded, encode
from ..rows.training_rows import Chunk
from .leaf_buckets import RowPart
from .sampled import Sampled

# Rows looked at at a time.
_ROWS_AT_A_TIME = 65_536

Router = Callable[[npt.NDArray[np.float32]], npt.NDArray[np.uint32]]


def different_from_first(parts: Iterable[npt.NDArray[np.uint8]], most: int) -> npt.NDArray[np.uint64]:
    """The places of the first record and of those that differ from it, at most `most`, ascending."""
    found, first, at = [np.zeros(1, dtype=np.uint64)], None, 0
    for records in parts:
        first = records[0] if first is None else first
        found.append((at + np.flatnonzero((records != first).any(axis=1))[:most]).astype(np.uint64))
        at, most = at + len(records), most - len(found[-1])
        if most == 0:
            break
    return np.concatenate(found)


class Buckets(Protocol):
    """What growing asks of a store."""

    def sizes(self, top: int) -> npt.NDArray[np.int64]: ...
    def numbers(self, top: int, bucket: int) -> npt.NDArray[np.uint32 | np.uint64]: ...
    def load(self, top: int, bucket: int) -> _core.Bucket: ...
    def is_single_leaf(self, top: int, bucket: int, rows: int) -> bool: ...
    def parts(self, top: int, bucket: int) -> Iterator[RowPart]: ...
    def expect(self, top: int, bucket: int) -> None: ...
    def drop(self, top: int) -> None: ...


class BucketStore(ABC):
    """Takes routed rows group by group, then hands out buckets with their rows in order.

    A group is begun and ended by one thread; its chunks may be put by any, in any order. Top trees have the
    numbers they have in the forest.
    """

    group_rows: int  # as many rows as a group may have

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._depths: dict[int, npt.NDArray[np.uint32]] = {}

    @abstractmethod
    def begin_group(self) -> Any:
        """Room for a group of rows."""

    @abstractmethod
    def put(self, group: Any, at: int, chunk: Chunk, buckets: list[npt.NDArray[np.uint32]]) -> None:
        """A chunk, to be the group's rows from place `at` on; `buckets` has, for each top tree, the bucket
        of each of its rows."""

    @abstractmethod
    def end_group(self, group: Any, rows: int) -> None:
        """All rows of a group are there. Groups end in the order of their rows."""

    def sync(self) -> dict[int, int]:
        """Make what was written outlive the process; the size of each top tree's file."""
        return {}

    def reopen(
        self, sizes: dict[int, int], n_rows: int, owners: dict[int, npt.NDArray[np.int64]] | None = None
    ) -> bool:
        """Resume from what another process synced at these sizes, with so many rows for each top tree, or
        start again; False if that is not there. `owners` has whose blocks are the rows of each bucket."""
        return not any(sizes.values())

    def owners(self, top: int) -> npt.NDArray[np.int64]:
        """For each bucket, whose blocks are its rows."""
        return np.arange(len(self.sizes(top)))

    @abstractmethod
    def seal(self, top: int) -> None:
        """All rows are in: make the buckets of a top tree ready."""

    @abstractmethod
    def sizes(self, top: int) -> npt.NDArray[np.int64]:
        """The number of rows in each bucket."""

    @abstractmethod
    def numbers(self, top: int, bucket: int) -> npt.NDArray[np.uint32 | np.uint64]:
        """The numbers of a bucket's rows, ascending."""

    @abstractmethod
    def load(self, top: int, bucket: int, places: npt.NDArray[np.uint64] | None = None) -> _core.Bucket:
        """A bucket ready to grow on, or just the rows at these places in it, ascending."""

    @abstractmethod
    def parts(self, top: int, bucket: int) -> Iterator[RowPart]:
        """All rows of a bucket, without their features, some at a time."""

    def set_depths(self, top: int, depths: npt.NDArray[np.uint32]) -> None:
        """How deep the buckets are, when they will not be split any more."""
        self._depths[top] = depths

    def is_single_leaf(self, top: int, bucket: int, rows: int) -> bool:
        """Whether trees cannot split a bucket of `rows` rows; asked of buckets that turned out too large."""
        if rows <= self._plan.bucket_size:
            return False
        most = self._plan.max_depth
        deepest = most is not None and top in self._depths and bool(self._depths[top][bucket] >= most)
        return deepest or len(self.different_rows(top, bucket, 1)) == 1

    @abstractmethod
    def different_rows(self, top: int, bucket: int, most: int) -> npt.NDArray[np.uint64]:
        """The place of a bucket's first row, and of the next rows, at most so many, that a tree could tell
        from it."""

    @abstractmethod
    def split(self, top: int, bucket: int, route: Router, n_parts: int) -> None:
        """Make n_parts buckets of one, by where `route` leads its rows. Later buckets move up."""

    def expect(self, top: int, bucket: int) -> None:  # noqa: B027 - not every store can do better
        """A bucket will be loaded soon."""

    def drop(self, top: int) -> None:  # noqa: B027 - not every store can free a part
        """All buckets of a top tree are grown."""


class MemoryStore(BucketStore):
    """One record for each row, whatever the number of top trees; a bucket is a list of row numbers."""

    def __init__(self, sampled: Sampled, n_buckets: dict[int, int], plan: Plan) -> None:
        super().__init__(plan)
        n = sampled.summary.n_rows
        self._codec = sampled.codec
        self._classification = plan.classification
        self.group_rows = n
        self._records = np.empty((n, self._codec.record_bytes), dtype=np.uint8)
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
            self._codec,
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
        return _core.make_bucket(self._codec, self._all_rows, rows, self._classification)

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
        parts = np.concatenate([route(x) for x in decoded(self._codec, self._records, rows)])
        start = self._start[top]
        order, ends = _core.group_by_bucket(parts, n_parts)
        rows[:] = rows[order]
        inside = start[bucket] + ends[1:-1]
        self._start[top] = np.concatenate([start[: bucket + 1], inside, start[bucket + 1 :]])

    def drop(self, top: int) -> None:
        self._order.pop(top)
