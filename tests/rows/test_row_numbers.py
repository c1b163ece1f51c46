"""Row numbers beyond 2**32, without as many rows: samples, kept rows, buckets on disk, out-of-bag votes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from oldgrowth import _core
from oldgrowth.fitting.sample import sample
from oldgrowth.rows.training_rows import Chunk, Place
from oldgrowth.storage.candidate_rows import CandidateRows
from oldgrowth.storage.disk_store import DiskStore
from oldgrowth.storage.fit_workspace import FitWorkspace
from oldgrowth.storage.row_forms import RecordForm
from oldgrowth.storage.votes import OobOnDisk, Votes
from oldgrowth.storage.workspace import spill_workspace
from stages import PROGRESS, context, pool, small_data, small_plan

FIRST = 2**33
# Numbers of a chunk's first row: all of its rows have the low bits of other rows, or some of them have.
FIRSTS = [0, 2**32 - 300, FIRST]


def chunk_of(first: int, n: int = 600) -> Chunk:
    x = np.arange(2.0 * n, dtype=np.float32).reshape(n, 2)
    return Chunk(first, x, np.arange(n) % 3 * 1.0, np.arange(1.0, n + 1), first + n)


def test_samples_are_drawn_from_rows_beyond_32_bits() -> None:
    n, tops = 50_000, 3
    candidates = _core.candidate_rows(400, 1, (0, tops), FIRST, n, n)
    assert candidates.dtype == np.uint64
    assert candidates.min() >= FIRST and candidates.max() < FIRST + n
    samples = [_core.draw_from_candidates(400, 1, top, n, candidates) for top in range(tops)]
    for rows in samples:
        assert len(np.unique(rows)) == 400 and np.isin(rows, candidates).all()
    low = [_core.draw_sample(400, 1, top, n) for top in range(tops)]
    for rows, others in zip(samples, low, strict=True):
        assert not np.array_equal(rows - np.uint64(FIRST), others)


@pytest.mark.parametrize(("size", "n"), [(1, 1), (1, 9), (5, 4), (30, 1000), (999, 1000), (5000, 100_000)])
def test_a_sample_of_the_candidates_is_that_of_all_rows(size: int, n: int) -> None:
    candidates = _core.candidate_rows(size, 3, (0, 2), 0, n, n)
    for top in range(2):
        found = _core.draw_from_candidates(size, 3, top, n, candidates)
        np.testing.assert_array_equal(found, _core.draw_sample(size, 3, top, n))
    with pytest.raises(ValueError, match="too few candidate rows"):
        _core.draw_from_candidates(size, 3, 0, n, candidates[:0])


@pytest.mark.parametrize("first", FIRSTS)
def test_kept_rows_have_their_numbers(first: int, tmp_path: Path) -> None:
    chunks = [chunk_of(first), chunk_of(first + 600)]
    numbers = first + np.arange(0, 1200, 7, dtype=np.uint64)
    with FitWorkspace(tmp_path) as workspace:
        kept = CandidateRows(2, workspace, most_bytes=2**20)
        for chunk in chunks:
            kept.add(chunk, numbers[(numbers >= chunk.first_row) & (numbers < chunk.end)])
        again = CandidateRows(2, workspace, most_bytes=2**20)
        assert again.restore(kept.state(), 3, first + 1200)
        wanted = numbers[3::5]
        for rows in (kept, again):
            taken = list(rows.take(wanted))
            values = np.concatenate([part.x[:, 0] for part in taken])
            places = (wanted - np.uint64(first)).astype(np.float32)
            np.testing.assert_array_equal(values, np.where(places < 600, 2 * places, 2 * (places - 600)))


@pytest.mark.parametrize("first", FIRSTS)
def test_buckets_on_disk_have_the_numbers_of_their_rows(first: int, tmp_path: Path) -> None:
    data = small_data(600)
    plan = small_plan(data, oob_score=True)
    with pool() as threads:
        sampled = sample(data, plan, context(threads), PROGRESS)
    many = replace(sampled, summary=replace(sampled.summary, n_rows=first + 600))
    buckets = np.random.default_rng(0).integers(0, 5, 600).astype(np.uint32)
    with spill_workspace(tmp_path) as workspace:
        store = DiskStore(RecordForm(many, plan), {0: 5}, plan, workspace, 600)
        group = store.begin_group()
        for chunk in data.chunks(100, Place()):
            part = slice(chunk.first_row, chunk.end)
            shifted = replace(chunk, first_row=first + chunk.first_row)
            store.put(group, chunk.first_row, shifted, [buckets[part]])
        store.end_group(group, 600)
        store.seal(0)
        for bucket in range(5):
            expected = first + np.flatnonzero(buckets == bucket)
            np.testing.assert_array_equal(store.numbers(0, bucket), expected)
            np.testing.assert_array_equal(store.load(0, bucket).targets(1), data.targets[buckets == bucket])


def test_rows_on_disk_take_more_bytes_only_where_numbers_need_them() -> None:
    data = small_data()
    with_numbers, without = small_plan(data, oob_score=True), small_plan(data)
    sizes = [without.row_layout(n, 12, False).row_bytes for n in (100, 2**32, 2**32 + 1)]
    assert sizes == [sizes[0]] * 3
    numbered = [with_numbers.row_layout(n, 12, False).row_bytes for n in (100, 2**32, 2**32 + 1)]
    assert numbered == [sizes[0] + 4, sizes[0] + 4, sizes[0] + 8]


@pytest.mark.parametrize("first", FIRSTS)
def test_votes_have_the_numbers_of_their_rows(first: int, tmp_path: Path) -> None:
    data = small_data()
    plan = small_plan(data, oob_score=True)
    numbers = first + np.arange(100, dtype=np.uint64)
    with spill_workspace(tmp_path) as workspace:
        oob = OobOnDisk(first + 100, plan, workspace, 2**20)
        votes = Votes.none(numbers, np.arange(100.0), plan)
        votes.sums[:], votes.trees[:] = np.arange(300).reshape(100, 3), np.arange(100) % 2
        oob.add(0, 0, range(2), 100, [votes])
        (entry,) = oob._entries
        oob._checked(entry)
        (read,) = oob._rows_before(entry, 10, first + 60)
        np.testing.assert_array_equal(read["number"], numbers[10:60])
        np.testing.assert_array_equal(read["sums"], votes.sums[10:60])
        np.testing.assert_array_equal(read["trees"], votes.trees[10:60])


def test_a_bucket_is_made_of_row_numbers_of_either_width() -> None:
    data = small_data(600)
    plan = small_plan(data)
    with pool() as threads:
        sampled = sample(data, plan, context(threads), PROGRESS)
    records = np.empty((600, sampled.codec.record_bytes), dtype=np.uint8)
    keys = np.empty(600, dtype=np.uint64)
    x = data.take(np.arange(600, dtype=np.uint64)).x
    assert sampled.codec.encode(x, data.targets.view(np.uint64), records, keys)
    rows = _core.Rows(records, keys, data.targets, None, 1.0)
    grown = []
    for dtype in (np.uint32, np.uint64):
        bucket = _core.make_bucket(sampled.codec, rows, np.arange(3, 600, 2, dtype=dtype), True)
        bootstrap = _core.Bootstrap(True, 1.0, 5)
        grown.append(_core.grow_bottom(bucket, plan.bottom_rules(), bootstrap, 1, 2, 0, [], False)[0])
    np.testing.assert_array_equal(*grown)
    with pytest.raises(ValueError, match="out of range"):
        _core.make_bucket(sampled.codec, rows, np.array([600], dtype=np.uint64), True)
    with pytest.raises(ValueError, match="neither uint32 nor uint64"):
        _core.make_bucket(sampled.codec, rows, np.array([6.0]), True)
