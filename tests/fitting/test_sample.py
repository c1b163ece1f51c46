"""Stage 1: uniform samples in one pass, and the narrowest records."""

import pickle
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from oldgrowth import _core
from oldgrowth.errors import InfiniteValueError
from oldgrowth.fitting.sample import sample
from oldgrowth.rows.array_rows import ArrayRows
from oldgrowth.rows.records import encode
from oldgrowth.rows.training_rows import Chunk, Place
from oldgrowth.storage.fit_workspace import FitWorkspace
from stages import PROGRESS, all_values, context, pool, small_data, small_plan


def test_each_top_tree_has_a_sample_of_its_own() -> None:
    data = small_data()
    with pool() as threads:
        sampled = sample(data, small_plan(data), context(threads), PROGRESS)
    samples = [sampled.top_sample(small_plan(data), top) for top in range(2)]
    for rows in samples:
        assert len(np.unique(rows)) == 500 and rows.max() < 2000
    assert len(np.intersect1d(*samples)) < 250


class Streamed(ArrayRows):
    """Arrays without access to single rows, and with a number of rows that may be unknown."""

    random_access = False
    known = True

    @property
    def n_rows(self) -> int | None:
        return super().n_rows if self.known else None

    def chunks(self, rows: int, start: Place) -> Iterator[Chunk]:
        for first in range(start.row, len(self.targets), rows):
            part = slice(first, first + rows)
            weights = None if self.weights is None else self.weights[part]
            yield Chunk(first, self._x[part], self.targets[part], weights, first + len(self._x[part]))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("candidate_bytes", [0, 5000, 10**9])
@pytest.mark.parametrize("chunk_size", [7, 500, 9999])
def test_streamed_rows_are_kept_for_the_samples(
    known: bool, candidate_bytes: int, chunk_size: int, tmp_path: Path
) -> None:
    data = small_data(weights=np.arange(1.0, 2001.0))
    streamed = Streamed(all_values(data), data.targets, 3, data.weights)
    streamed.known = known
    plan = small_plan(data, chunk_size=chunk_size)
    with pool() as threads, FitWorkspace(tmp_path) as workspace:
        sampled = sample(streamed, plan, context(threads, workspace), PROGRESS, candidate_bytes)
        for top in range(2):
            rows = sampled.top_sample(plan, top)
            taken = list(sampled.take(rows))
            expected = data.take(rows)
            for name in ("x", "targets", "weights"):
                found = np.concatenate([getattr(part, name) for part in taken])
                np.testing.assert_array_equal(found, getattr(expected, name))
    assert not list(tmp_path.iterdir())


def test_samples_are_uniform() -> None:
    hits = np.zeros(50)
    for top in range(2000):
        hits[_core.draw_sample(10, 1, top, 50)] += 1
    assert np.abs(hits - 400).max() < 5 * np.sqrt(400 * 0.8)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("size", "n"), [(1, 1), (1, 9), (5, 4), (30, 1000), (999, 1000), (5000, 100_000)])
def test_sampled_rows_are_among_those_that_may_be(size: int, n: int, known: bool) -> None:
    tops = 5
    edges = np.linspace(0, n, 8).astype(int).tolist()
    told = np.concatenate(
        [_core.candidate_rows(size, 3, (0, tops), a, b - a, n if known else b) for a, b in pairwise(edges)]
    )
    samples = [_core.draw_sample(size, 3, top, n) for top in range(tops)]
    assert np.all(np.diff(told.astype(np.int64)) > 0)
    assert all(len(rows) == min(size, n) and np.isin(rows, told).all() for rows in samples)
    expected = tops * (size + 8 * np.sqrt(size) + 64)
    assert len(told) < (1.5 if known else 6) * expected


def test_no_top_tree_needs_no_sample() -> None:
    data = small_data()
    streamed = Streamed(all_values(data), data.targets, 3)
    with pool() as threads:
        sampled = sample(streamed, small_plan(data, bucket_size=2000), context(threads), PROGRESS)
    assert sampled.candidates is not None and not sampled.candidates._parts


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
        codec = sample(data, small_plan(data), context(threads), PROGRESS).codec
    assert codec.widths == [1, 2, 4, 1]
    assert codec.record_bytes == 8


def test_an_infinite_value_is_named() -> None:
    data = small_data()
    data._x[1234, 5] = np.inf
    with pool() as threads, pytest.raises(InfiniteValueError, match="row 1234, column 5"):
        sample(data, small_plan(data, chunk_size=100), context(threads), PROGRESS)


def odd_rows(n: int) -> np.ndarray:
    """Features of few and many values, whole and not, some missing; the last has too many for codes."""
    rng = np.random.default_rng(4)
    x = np.column_stack(
        [
            rng.integers(0, 200, n),
            rng.integers(-400, 70_000, n),
            np.round(rng.normal(size=n) * 9) / 7,
            np.arange(n) / 3,
        ]
    ).astype(np.float32)
    x[rng.random(n) < 0.01, 2] = np.nan
    return x


def state(profile: _core.Profile) -> list[tuple[bool, bool, bytes]]:
    features = [profile.state(f) for f in range(4)]
    return [(wide, missing, values.tobytes()) for wide, missing, values in features]


@pytest.mark.parametrize("edges", [[0, 90_000], [0, 1, 60_000, 90_000], [0, 70_000, 70_000, 90_000]])
def test_profiles_of_parts_merge_into_that_of_all_rows(edges: list[int]) -> None:
    x = odd_rows(90_000)
    whole = _core.Profile(4)
    whole.add(x, 0, 4)
    parts = []
    for first, last in pairwise(edges):
        part = _core.Profile(4)
        part.add(x[first:last], 0, 4)
        parts.append(part)
    for order in (parts, parts[::-1]):
        merged = _core.Profile(4)
        for part in order:
            merged.merge(pickle.loads(pickle.dumps(part)))
        assert state(merged) == state(whole)
    with pytest.raises(ValueError, match="other number of features"):
        whole.merge(_core.Profile(3))


def test_a_codec_travels() -> None:
    x = odd_rows(70_000)
    profile = _core.Profile(4)
    profile.add(x, 0, 4)
    codec = _core.RowCodec(profile)
    other = pickle.loads(pickle.dumps(codec))
    assert other.widths == codec.widths == [1, 2, 1, 4]
    targets = np.zeros(len(x))
    for mine, theirs in zip(encode(codec, x, targets, 0), encode(other, x, targets, 0), strict=True):
        np.testing.assert_array_equal(mine, theirs)
