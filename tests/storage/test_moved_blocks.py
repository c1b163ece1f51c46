"""Blocks that move to another store are the same rows in the same order, in messages of any size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from oldgrowth.fitting.distribute import Distributing, Part, distribute
from oldgrowth.storage.disk_store import DiskStore
from oldgrowth.storage.row_forms import RecordForm
from oldgrowth.storage.top_file import Blocks
from oldgrowth.storage.workspace import Workspace, spill_workspace
from stages import PROGRESS, pool, small_data, small_plan, through_top_trees


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with spill_workspace(tmp_path) as workspace:
        yield workspace


@pytest.mark.parametrize("most_bytes", [1, 2000, 2**30])
def test_a_range_of_buckets_moves_to_another_store(workspace: Workspace, most_bytes: int) -> None:
    data = small_data()
    plan = small_plan(data, oob_score=True, chunk_size=130)
    with pool() as threads:
        sampled, tops = through_top_trees(data, plan, threads)
        form = RecordForm(sampled, plan)
        n_buckets = {i: top.n_buckets for i, top in tops.items()}
        store = DiskStore(form, n_buckets, plan, workspace, 400)
        distribute(tops, store, Part.whole(sampled), Distributing(plan, threads, PROGRESS))
    store.seal(1)
    first, stop = 2, n_buckets[1] - 1
    wanted = np.arange(first, stop)

    def messages() -> Iterator[tuple[int, Blocks]]:
        start, place = 0, 0
        found = []
        while start >= 0:
            blocks, start = store.blocks(1, wanted, start, most_bytes)
            found.append((place, blocks))
            place += 1
        assert len(found) > 1 or most_bytes > 2000
        yield from reversed(found)  # in any order

    moved = DiskStore(form, {1: n_buckets[1]}, plan, workspace, 1, "range-0-")
    moved.take_in(1, messages(), np.arange(n_buckets[1]))
    sizes = store.sizes(1)
    np.testing.assert_array_equal(moved.sizes(1)[first:stop], sizes[first:stop])
    assert moved.sizes(1)[:first].sum() == moved.sizes(1)[stop:].sum() == 0
    for bucket in range(first, stop):
        np.testing.assert_array_equal(moved.numbers(1, bucket), store.numbers(1, bucket))
        assert moved.load(1, bucket).rows == sizes[bucket]
    moved.drop_all()
    assert not (workspace.path / "range-0-top-00001.rows").exists()


def test_nothing_is_handed_over_of_owners_without_rows(workspace: Workspace) -> None:
    data = small_data(300)
    plan = small_plan(data, chunk_size=50)
    with pool() as threads:
        sampled, tops = through_top_trees(data, plan, threads)
        store = DiskStore(RecordForm(sampled, plan), {0: tops[0].n_buckets}, plan, workspace, 100)
        distribute({0: tops[0]}, store, Part.whole(sampled), Distributing(plan, threads, PROGRESS))
    store.seal(0)
    blocks, following = store.blocks(0, np.array([10**6]), 0, 2**20)
    assert (len(blocks.data), len(blocks.rows), following) == (0, 0, -1)
