"""Buckets that are too large are split again, as far as their rows differ."""

import numpy as np
import pytest

from oldgrowth import RandomForestClassifier
from oldgrowth.fitting.resplit import StoreSplitter, split_large_buckets
from oldgrowth.rows.array_rows import ArrayRows
from stages import all_values, in_memory, pool, small_data, small_plan, through_top_trees


def split(data: ArrayRows, **params):
    """Top trees on samples far too small for the number of buckets."""
    plan = small_plan(data, **({"bucket_size": 50, "top_sample": 40} | params))
    with pool() as threads:
        sampled, tops = through_top_trees(data, plan, threads)
        store = in_memory(sampled, tops, plan, threads)
        before = [store.sizes(i) for i in tops]
        split = [
            split_large_buckets(StoreSplitter(store, plan, threads), i, top, plan) for i, top in tops.items()
        ]
    return store, [top for top, _ in split], sum(n for _, n in split), before


@pytest.mark.parametrize("balance", [0.0, 0.3, 1.0])
def test_no_bucket_stays_too_large_and_every_row_is_where_the_tree_leads(balance: float) -> None:
    data = small_data(20_000)
    store, tops, n_split, before = split(data, balance=balance)
    assert n_split >= 10 and max(sizes.max() for sizes in before) > 8 * 50
    x = all_values(data)
    for i, top in enumerate(tops):
        leaves = top.nodes[top.nodes >= 2**63] - np.uint64(2**63)
        np.testing.assert_array_equal(leaves, np.arange(top.n_buckets))
        reached = top.route(x, ())
        for bucket in range(top.n_buckets):
            np.testing.assert_array_equal(store.numbers(i, bucket), np.flatnonzero(reached == bucket))
        assert store.sizes(i).max() <= 50


def test_depths_of_split_buckets() -> None:
    _, tops, _, _ = split(small_data(5000))
    for top in tops:
        depths, open_right = [], []
        depth = 0
        for node in top.nodes.tolist():
            if node < 2**63:
                open_right.append(depth + 1)
                depth += 1
                continue
            depths.append(depth)
            depth = open_right.pop() if open_right else 0
        np.testing.assert_array_equal(top.bucket_depths, depths)


def test_indistinguishable_rows_stay_together() -> None:
    x = np.repeat([[0.0, 0.0], [1.0, 5.0]], [1990, 10], axis=0)
    data = ArrayRows(x, np.arange(2000) % 3.0, 3)
    store, tops, _, _ = split(data)
    for i in range(len(tops)):
        assert sorted(store.sizes(i).tolist()) == [10, 1990]


@pytest.mark.parametrize("odd", [[0, 7000, 14_999], [5, 6, 7]])
def test_a_few_rows_unlike_thousands_are_found(odd: list[int], tmp_path) -> None:
    """No sample has them, and with them in it the bucket would have to be loaded whole."""
    x = np.random.default_rng(0).random((20_000, 3)).astype(np.float32)
    x[:15_000] = 0
    x[odd, [0, 1, 1]] = -1, -2, -3
    y = np.arange(20_000) % 2
    sizes = {"bucket_size": 100, "top_sample": 150}
    forests = [
        RandomForestClassifier(4, random_state=0, store=store, spill_dir=tmp_path, **sizes).fit(x, y)
        for store in ("memory", "disk")
    ]
    assert forests[0].forest_.digest() == forests[1].forest_.digest()
    report = forests[0].fit_report_
    above = [rows for rows in np.concatenate(report.rows_by_bucket) if rows > 100]
    assert above == [14_997] * report.top_trees


def test_one_seed_one_forest_and_a_report_that_tells() -> None:
    data = small_data(20_000)
    x, y = all_values(data), data.targets
    forests = [
        RandomForestClassifier(
            8, bucket_size=100, top_sample=50, random_state=0, n_jobs=jobs, chunk_size=chunk
        ).fit(x, y)
        for jobs, chunk in ((1, 20_000), (2, 777), (8, 100))
    ]
    assert len({forest.forest_.digest() for forest in forests}) == 1
    report = forests[0].fit_report_
    assert report.buckets_split > 0 and "split again because they were too large" in str(report)
    assert report.bucket_rows["100%"] <= 100
