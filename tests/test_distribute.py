"""Stage 3 and the stores: every row is in exactly one bucket of every top tree, with its own values."""

from abc import ABC, abstractmethod

import numpy as np
import pytest

from oldgrowth import _core
from oldgrowth.bucket_store import BucketStore, MemoryStore
from oldgrowth.array_rows import ArrayRows
from oldgrowth.distribute import distribute
from oldgrowth.errors import ChangedDataError
from oldgrowth.plan import Plan
from oldgrowth.sample import Sampled, sample
from oldgrowth.top_tree import grow_top_trees
from stages import PROGRESS, pool, small_data, small_plan


def distributed(data: ArrayRows, plan: Plan):
    with pool() as threads:
        sampled = sample(data, plan, threads, PROGRESS)
        tops = grow_top_trees(data, sampled, plan, threads, PROGRESS)
        return distribute(data, sampled, tops, plan, threads, PROGRESS), tops, sampled


@pytest.mark.parametrize("chunk_size", [1, 64, 5000])
def test_every_row_is_in_its_bucket(chunk_size: int) -> None:
    data = small_data()
    store, tops, _ = distributed(data, small_plan(data, chunk_size=chunk_size))
    x = data.take(np.arange(data.n_rows, dtype=np.uint32))
    for i, top in enumerate(tops):
        expected = _core.route(top.nodes, x)
        for bucket in range(top.n_buckets):
            np.testing.assert_array_equal(store.rows(i, bucket), np.flatnonzero(expected == bucket))
            assert store.load(i, bucket).rows == store.sizes(i)[bucket]
        assert store.sizes(i).sum() == data.n_rows


def test_subsets_are_buckets_of_their_own() -> None:
    data = small_data()
    store, tops, sampled = distributed(data, small_plan(data, subsets=True))
    assert len(tops) == 6
    for i, rows in enumerate(sampled.top_samples):
        np.testing.assert_array_equal(store.rows(i, 0), rows)


def test_data_that_changes_between_the_passes_is_refused() -> None:
    data = small_data()
    plan = small_plan(data, chunk_size=100)
    with pool() as threads:
        sampled = sample(data, plan, threads, PROGRESS)
        tops = grow_top_trees(data, sampled, plan, threads, PROGRESS)
        data._x[1503, 1] = 77.0  # a whole-numbered feature that had no such value
        with pytest.raises(ChangedDataError, match="rows 1500 to 1599"):
            distribute(data, sampled, tops, plan, threads, PROGRESS)


class StoreSuite(ABC):
    """What every store must do; each kind of store is a subclass."""

    @abstractmethod
    def make(self, data: ArrayRows, sampled: Sampled, n_tops: int, plan: Plan) -> BucketStore: ...

    def filled(self, order: list[int]) -> tuple[BucketStore, ArrayRows, np.ndarray]:
        data = small_data(600)
        plan = small_plan(data)
        with pool() as threads:
            sampled = sample(data, plan, threads, PROGRESS)
        store = self.make(data, sampled, 1, plan)
        chunks = list(data.chunks(100))
        buckets = np.random.default_rng(0).integers(0, 5, 600).astype(np.uint32)
        for i in order:
            store.put(chunks[i].first_row, chunks[i].x, [buckets[chunks[i].first_row : chunks[i].end]])
        store.seal(0, 5)
        return store, data, buckets

    @pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [5, 2, 0, 4, 1, 3]])
    def test_chunks_may_come_in_any_order(self, order: list[int]) -> None:
        store, _, buckets = self.filled(order)
        np.testing.assert_array_equal(store.sizes(0), np.bincount(buckets))
        for bucket in range(5):
            np.testing.assert_array_equal(store.rows(0, bucket), np.flatnonzero(buckets == bucket))

    def test_a_bucket_grows_as_the_same_rows_elsewhere(self) -> None:
        store, data, buckets = self.filled([3, 1, 0, 2, 5, 4])
        plan = small_plan(data)
        bootstrap = _core.Bootstrap(True, 1.0, 0)
        rows = np.flatnonzero(buckets == 2).astype(np.uint32)
        alone = ArrayRows(data.take(rows), data.targets[rows], 3)
        with pool() as threads:
            sampled = sample(alone, plan, threads, PROGRESS)
            whole = distribute(alone, sampled, [], small_plan(alone, subsets=True), threads, PROGRESS)
        whole.use_sample(0, np.arange(len(rows), dtype=np.uint32))
        trees = [
            _core.grow_bottom(bucket, plan.bottom_rules(), bootstrap, 0, 2, 0, [], None, None)
            for bucket in (store.load(0, 2), whole.load(0, 0))
        ]
        np.testing.assert_array_equal(trees[0][0], trees[1][0])


class TestMemoryStore(StoreSuite):
    def make(self, data: ArrayRows, sampled: Sampled, n_tops: int, plan: Plan) -> BucketStore:
        return MemoryStore(data, sampled.codec, n_tops, plan)
