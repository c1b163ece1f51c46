"""The interface of stores, which keep the rows of the buckets between distribution and growth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .. import _core
from ..plan import Plan
from ..rows.training_rows import Chunk
from .leaf_buckets import RowPart

Router = Callable[[npt.NDArray[np.float32]], npt.NDArray[np.uint32]]


def different_from_first(parts: Iterable[npt.NDArray[np.uint8]], most: int) -> npt.NDArray[np.uint64]:
    """The places of the first record and of at most `most` records that differ from it, ascending."""
    found, first, at = [np.zeros(1, dtype=np.uint64)], None, 0
    for records in parts:
        first = records[0] if first is None else first
        found.append((at + np.flatnonzero((records != first).any(axis=1))[:most]).astype(np.uint64))
        at, most = at + len(records), most - len(found[-1])
        if most == 0:
            break
    return np.concatenate(found)


class Buckets(Protocol):
    """The part of a store's interface that growing needs."""

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
    codec: _core.RowCodec

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._depths: dict[int, npt.NDArray[np.uint32]] = {}

    @abstractmethod
    def begin_group(self) -> Any:
        """Memory for a group of rows."""

    @abstractmethod
    def put(self, group: Any, at: int, chunk: Chunk, buckets: list[npt.NDArray[np.uint32]]) -> None:
        """Write a chunk into a group, from place `at` on. For each top tree, `buckets` has the bucket of each
        row."""

    @abstractmethod
    def end_group(self, group: Any, rows: int) -> None:
        """Called when all rows of a group were put; in the order of the groups."""

    def sync(self) -> dict[int, int]:
        """Make sure that what was written outlives the process. Returns the size of each top tree's file."""
        return {}

    def reopen(
        self, sizes: dict[int, int], n_rows: int, owners: dict[int, npt.NDArray[np.int64]] | None = None
    ) -> bool:
        """Resume from files that another process synced at these sizes, with this number of rows for each top
        tree; sizes of 0 start anew. Returns False if that is impossible. `owners` has the owner of each
        bucket's blocks."""
        return not any(sizes.values())

    def owners(self, top: int) -> npt.NDArray[np.int64]:
        """For each bucket, the owner of its blocks."""
        return np.arange(len(self.sizes(top)))

    @abstractmethod
    def seal(self, top: int) -> None:
        """Make the buckets of a top tree ready, after all rows were put."""

    @abstractmethod
    def sizes(self, top: int) -> npt.NDArray[np.int64]:
        """The number of rows in each bucket."""

    @abstractmethod
    def numbers(self, top: int, bucket: int) -> npt.NDArray[np.uint32 | np.uint64]:
        """The numbers of a bucket's rows, ascending."""

    @abstractmethod
    def load(self, top: int, bucket: int, places: npt.NDArray[np.uint64] | None = None) -> _core.Bucket:
        """A bucket ready to grow on, or only its rows at these places, ascending."""

    @abstractmethod
    def parts(self, top: int, bucket: int) -> Iterator[RowPart]:
        """All rows of a bucket, without their features, some at a time."""

    def set_depths(self, top: int, depths: npt.NDArray[np.uint32]) -> None:
        """Set the depth of each bucket, when no more are split."""
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
        """The place of a bucket's first row, and of at most `most` rows that a tree could distinguish from
        it."""

    @abstractmethod
    def split(self, top: int, bucket: int, route: Router, n_parts: int) -> None:
        """Split a bucket into n_parts, by the part that `route` gives for each row. The numbers of later
        buckets grow."""

    def expect(self, top: int, bucket: int) -> None:  # noqa: B027 - not every store can do better
        """A bucket will be loaded soon."""

    def drop(self, top: int) -> None:  # noqa: B027 - not every store can free a part
        """Free the buckets of a top tree, which are all grown."""
