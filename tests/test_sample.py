"""Stage 1: uniform samples in one pass, and the narrowest records."""

import numpy as np
import pytest

from oldgrowth import _core
from oldgrowth.array_rows import ArrayRows
from oldgrowth.errors import InfiniteValueError
from oldgrowth.sample import sample
from stages import PROGRESS, pool, small_data, small_plan


def test_each_top_tree_has_a_sample_of_its_own() -> None:
    data = small_data()
    with pool() as threads:
        sampled = sample(data, small_plan(data), threads, PROGRESS)
    assert len(sampled.top_samples) == 2  # 6 trees as 4 and 2
    for rows in sampled.top_samples:
        assert len(np.unique(rows)) == 500 and rows.max() < 2000
    assert len(np.intersect1d(*sampled.top_samples)) < 250


def test_samples_do_not_depend_on_chunks() -> None:
    data = small_data()
    with pool() as threads:
        found = [
            sample(data, small_plan(data, chunk_size=c), threads, PROGRESS).top_samples
            for c in (7, 500, 9999)
        ]
    for samples in found[1:]:
        np.testing.assert_array_equal(samples, found[0])


def test_samples_are_uniform() -> None:
    hits = np.zeros(50)
    for top in range(2000):
        draw = _core.TopSample(10, 1, top)
        draw.add(0, 50)
        hits[draw.rows()] += 1
    assert np.abs(hits - 400).max() < 5 * np.sqrt(400 * 0.8)


def test_no_top_tree_needs_no_sample() -> None:
    data = small_data()
    with pool() as threads:
        assert sample(data, small_plan(data, bucket_size=2000), threads, PROGRESS).top_samples == []


def test_records_are_as_narrow_as_the_values_allow() -> None:
    n = 70_000
    rng = np.random.default_rng(0)
    x = np.stack(
        [
            rng.integers(0, 2, n),
            rng.integers(0, 5000, n),
            rng.normal(size=n),
            np.round(rng.normal(size=n), 1),
        ],
        axis=1,
    )
    data = ArrayRows(x, np.zeros(n), 3)
    with pool() as threads:
        codec = sample(data, small_plan(data), threads, PROGRESS).codec
    assert codec.widths == [1, 2, 4, 1]
    assert codec.record_bytes == 8


def test_an_infinite_value_is_named() -> None:
    data = small_data()
    data._x[1234, 5] = np.inf
    with pool() as threads, pytest.raises(InfiniteValueError, match="row 1234, column 5"):
        sample(data, small_plan(data, chunk_size=100), threads, PROGRESS)
