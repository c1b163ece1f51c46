"""Stage 3 and the stores: every row is in exactly one bucket of every top tree, with its own values."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from oldgrowth import _core
from oldgrowth.errors import ChangedDataError, ChangedSourceError
from oldgrowth.fitting.distribute import Distributing, Part, distribute
from oldgrowth.fitting.resplit import StoreSplitter, split_large_buckets
from oldgrowth.fitting.sample import sample
from oldgrowth.plan import Plan
from oldgrowth.rows.array_rows import ArrayRows
from oldgrowth.storage.bucket_store import BucketStore
from oldgrowth.storage.disk_store import DiskStore
from oldgrowth.storage.memory_store import MemoryStore
from oldgrowth.storage.row_forms import RecordForm
from oldgrowth.storage.sampled import Sampled
from oldgrowth.storage.workspace import Workspace, spill_workspace
from stages import PROGRESS, all_values, context, pool, small_data, small_plan, through_top_trees


def test_data_that_changes_between_the_passes_is_refused() -> None:
    data = small_data()
    plan = small_plan(data, chunk_size=100)
    with pool() as threads:
        sampled, tops = through_top_trees(data, plan, threads)
        store = MemoryStore(sampled, {i: top.n_buckets for i, top in tops.items()}, plan)
        data._x[1503, 1] = 77.0  # a whole-numbered feature that had no such value
        with pytest.raises(ChangedDataError, match="rows 1500 to 1599 of the data"):
            distribute(tops, store, Part.whole(sampled), Distributing(plan, threads, PROGRESS))


class Checked(ArrayRows):
    """Arrays whose passes are compared, as those of a source that others may write to."""

    checked = True


@pytest.mark.parametrize("change", ["value", "label", "fewer rows"])
def test_a_source_that_changes_unnoticed_by_its_files_is_refused(change: str) -> None:
    data = small_data()
    data = Checked(all_values(data), data.targets.copy(), 3)
    plan = small_plan(data, chunk_size=100)
    with pool() as threads:
        sampled, tops = through_top_trees(data, plan, threads)
        store = MemoryStore(sampled, {i: top.n_buckets for i, top in tops.items()}, plan)
        if change == "value":
            data._x[7, 1] = data._x[data._x[:, 1] != data._x[7, 1], 1][0]  # one that occurs elsewhere
        elif change == "label":
            data.targets[3] = (data.targets[3] + 1) % 3
        else:
            data._x, data.targets = data._x[:-1], data.targets[:-1]
        said = {
            "value": "the values in rows 0 to 99 differ from those of the first pass",
            "label": "the labels or weights in rows 0 to 99 differ from those of the first pass",
            "fewer rows": "the second pass read 1,999 rows, the first 2,000",
        }
        with pytest.raises(ChangedSourceError, match=said[change]):
            distribute(tops, store, Part.whole(sampled), Distributing(plan, threads, PROGRESS))


class StoreSuite(ABC):
    """Tests that every store must pass; each kind of store is a subclass."""

    @abstractmethod
    def make(
        self, sampled: Sampled, n_buckets: dict[int, int], plan: Plan, workspace: Workspace
    ) -> BucketStore: ...

    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Iterator[Workspace]:
        with spill_workspace(tmp_path) as workspace:
            yield workspace

    @pytest.mark.parametrize("chunk_size", [1, 64, 5000])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_every_row_is_in_its_bucket(self, chunk_size: int, weighted: bool, workspace: Workspace) -> None:
        data = small_data(weights=np.arange(1.0, 2001.0) if weighted else None)
        plan = small_plan(data, chunk_size=chunk_size, oob_score=True)
        with pool() as threads:
            sampled, tops = through_top_trees(data, plan, threads)
            store = self.make(sampled, {i: top.n_buckets for i, top in tops.items()}, plan, workspace)
            distribute(tops, store, Part.whole(sampled), Distributing(plan, threads, PROGRESS))
        for i, top in tops.items():
            store.seal(i)
            expected = top.route(all_values(data), ())
            for bucket in range(top.n_buckets):
                np.testing.assert_array_equal(store.numbers(i, bucket), np.flatnonzero(expected == bucket))
            np.testing.assert_array_equal(store.sizes(i), np.bincount(expected, minlength=top.n_buckets))

    def filled(self, order: list[int], workspace: Workspace) -> tuple[BucketStore, ArrayRows, np.ndarray]:
        data = small_data(600)
        plan = small_plan(data, oob_score=True)
        with pool() as threads:
            sampled = sample(data, plan, context(threads), PROGRESS)
        store = self.make(sampled, {0: 5}, plan, workspace)
        chunks = [chunk for chunk, _ in _passed(data, 100)]
        buckets = np.random.default_rng(0).integers(0, 5, 600).astype(np.uint32)
        group = store.begin_group()
        for i in order:
            part = slice(chunks[i].first_row, chunks[i].end)
            store.put(group, chunks[i].first_row, chunks[i], [buckets[part]])
        store.end_group(group, 600)
        store.seal(0)
        return store, data, buckets

    @pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [5, 2, 0, 4, 1, 3]])
    def test_chunks_may_come_in_any_order(self, order: list[int], workspace: Workspace) -> None:
        store, _, buckets = self.filled(order, workspace)
        np.testing.assert_array_equal(store.sizes(0), np.bincount(buckets))
        for bucket in range(5):
            np.testing.assert_array_equal(store.numbers(0, bucket), np.flatnonzero(buckets == bucket))

    @pytest.mark.parametrize("places", [None, [0, 3, 50]])
    def test_a_bucket_grows_as_the_same_rows_elsewhere(
        self, places: list[int] | None, workspace: Workspace
    ) -> None:
        store, data, buckets = self.filled([3, 1, 0, 2, 5, 4], workspace)
        plan = small_plan(data)
        rows = np.flatnonzero(buckets == 2).astype(np.uint32)
        chosen = None if places is None else np.array(places, dtype=np.uint32)
        if chosen is not None:
            rows = rows[chosen]
        alone = ArrayRows(data.take(rows).x, data.targets[rows], 3)
        with pool() as threads:
            sampled = replace(sample(alone, plan, context(threads), PROGRESS), codec=store.codec)
            whole = MemoryStore(sampled, {0: 1}, plan)
            for chunk, _ in _passed(alone, 1000):
                whole.put(None, 0, chunk, [np.zeros(len(rows), dtype=np.uint32)])
            whole.seal(0)
        bootstrap = _core.Bootstrap(True, 1.0, 0)
        trees = [
            _core.grow_bottom(bucket, plan.bottom_rules(), bootstrap, 0, 2, 0, [], False)
            for bucket in (store.load(0, 2, chosen), whole.load(0, 0))
        ]
        np.testing.assert_array_equal(trees[0][0], trees[1][0])

    def test_split_buckets_hold_the_rows_that_the_tree_leads_there(self, workspace: Workspace) -> None:
        data = small_data(20_000)
        plan = small_plan(data, bucket_size=50, top_sample=40, oob_score=True)
        with pool() as threads:
            sampled, tops = through_top_trees(data, plan, threads)
            store = self.make(sampled, {i: top.n_buckets for i, top in tops.items()}, plan, workspace)
            distribute(tops, store, Part.whole(sampled), Distributing(plan, threads, PROGRESS))
            for i, top in tops.items():
                store.seal(i)
                tree, n_split = split_large_buckets(StoreSplitter(store, plan, threads), i, top, plan)
                assert n_split > 3
                reached = tree.route(all_values(data), ())
                np.testing.assert_array_equal(store.sizes(i), np.bincount(reached, minlength=tree.n_buckets))
                for bucket in range(0, tree.n_buckets, 7):
                    rows = np.flatnonzero(reached == bucket)
                    np.testing.assert_array_equal(store.numbers(i, bucket), rows)


def _passed(data: ArrayRows, rows: int):
    from oldgrowth.rows.training_rows import Pass, Place, Trail

    return Pass(data, Place(), Trail()).chunks(rows)


class TestMemoryStore(StoreSuite):
    def make(
        self, sampled: Sampled, n_buckets: dict[int, int], plan: Plan, workspace: Workspace
    ) -> BucketStore:
        return MemoryStore(sampled, n_buckets, plan)


class TestDiskStore(StoreSuite):
    def make(
        self, sampled: Sampled, n_buckets: dict[int, int], plan: Plan, workspace: Workspace
    ) -> BucketStore:
        return DiskStore(
            RecordForm(sampled, plan), n_buckets, plan, workspace, group_rows=max(600, plan.chunk_size)
        )


class TestDiskStoreInTinyBlocks(TestDiskStore):
    """Blocks of a few rows, so that buckets consist of many."""

    @pytest.fixture(autouse=True)
    def tiny(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("oldgrowth.storage.top_file._WRITE_BYTES", 200)
