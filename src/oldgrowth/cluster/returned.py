"""Trees and votes that a task returns, instead of storing them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from ..storage.grown_trees import BottomTree, GrownTrees, TreeSizes
from ..storage.votes import AllVotes, OobRows, OutOfBag, Votes
from .values import BucketRange, GrownBucket

_Place = tuple[int, int]  # bucket, and number of the first tree


class ReturnedVotes(OutOfBag):
    def __init__(self) -> None:
        self.votes: dict[_Place, tuple[int, tuple[Votes, ...]]] = {}

    def add(self, top: int, bucket: int, trees: range, n_rows: int, votes: Iterable[Votes]) -> None:
        self.votes[bucket, trees.start] = n_rows, tuple(votes)

    def begin_with(self, earlier: AllVotes) -> None:
        raise NotImplementedError

    def kept(self, data: tuple[int, bool]) -> AllVotes:
        raise NotImplementedError

    def means(self, keep: bool = False) -> Iterator[OobRows]:
        raise NotImplementedError


class ReturnedTrees(GrownTrees):
    """Trees of buckets of one top tree."""

    def __init__(self, buckets: BucketRange | None = None) -> None:
        self._buckets = buckets  # some of whose trees are grown already
        self._trees: dict[_Place, tuple[BottomTree, ...]] = {}

    def add(self, top: int, bucket: int, first_tree: int, trees: list[BottomTree]) -> None:
        self._trees[bucket, first_tree] = tuple(trees)

    def grown(self, top: int, n_buckets: int, n_trees: int) -> npt.NDArray[np.bool_]:
        found = np.zeros((n_buckets, n_trees), dtype=np.bool_)
        if self._buckets is not None and self._buckets.grown is not None:
            found[self._buckets.places] = self._buckets.grown
        return found

    def sizes(self, top: int, n_buckets: int, n_trees: int) -> TreeSizes:
        raise NotImplementedError

    def pop_all(self, top: int, n_buckets: int, n_trees: int) -> Iterator[BottomTree]:
        raise NotImplementedError

    def returned(self, votes: ReturnedVotes | None) -> list[GrownBucket]:
        """All that was grown, by bucket and tree."""
        result = []
        for (bucket, first), trees in sorted(self._trees.items(), key=lambda item: item[0]):
            rows, of_bucket = (0, ()) if votes is None else votes.votes[bucket, first]
            result.append(GrownBucket(bucket, first, rows, trees, of_bucket))
        return result
