"""Stage 2: top trees partition the rows, evenly if requested, and do not stop at pure nodes."""

import numpy as np
import pytest

import oldgrowth.fitting.top_trees
from oldgrowth import _core
from oldgrowth.rows.array_rows import ArrayRows
from stages import pool, small_data, small_plan, through_top_trees


def top_trees(data: ArrayRows, **params):
    plan = small_plan(data, **params)
    with pool() as threads:
        sampled, tops = through_top_trees(data, plan, threads)
    return list(tops.values()), [data.take(sampled.top_sample(plan, top)).x for top in tops], plan


def first_feature(nodes: np.ndarray, n_features: int) -> int:
    return int(nodes[0]) >> 32 & ((1 << _core.right_shift(n_features) - 33) - 1)


def test_leaves_are_buckets_in_order() -> None:
    tops, _, _ = top_trees(small_data())
    for top in tops:
        leaves = top.nodes[top.nodes >= 2**63] - np.uint64(2**63)
        np.testing.assert_array_equal(leaves, np.arange(top.n_buckets))


@pytest.mark.parametrize("balance", [0.0, 0.003, 0.5, 1.0])
def test_no_leaf_is_larger_than_wanted_in_the_sample(balance: float) -> None:
    data = small_data()
    tops, samples, plan = top_trees(data, balance=balance)
    limit = plan.bucket_size * plan.top_sample / data.n_rows
    for top, x in zip(tops, samples, strict=True):
        sizes = np.bincount(top.route(x, ()), minlength=top.n_buckets)
        assert sizes.max() < limit and sizes.min() > 0


def test_full_balance_splits_evenly_and_trees_still_differ() -> None:
    rng = np.random.default_rng(0)
    data = ArrayRows(rng.normal(size=(4000, 5)), np.zeros(4000), 3)  # pure: only balance can decide
    tops, samples, _ = top_trees(data, balance=1.0, bucket_size=500, top_sample=4000)
    for top, x in zip(tops, samples, strict=True):
        sizes = np.bincount(top.route(x, ()))
        np.testing.assert_array_equal(sizes, [250] * 16)
    assert (tops[0].nodes != tops[1].nodes).any()


@pytest.mark.parametrize(("drawn", "tops_of_a_deck"), [(1, 7), (2, 3), (3, 2)])
def test_features_are_dealt_out_among_top_trees(drawn: int, tops_of_a_deck: int) -> None:
    """With features of equal worth, those that the first top trees split first are all different."""
    rng = np.random.default_rng(0)
    data = ArrayRows(rng.normal(size=(4000, 7)), rng.integers(3, size=4000).astype(float), 3)
    for seed in range(5):
        sizes = {"n_estimators": 28, "top_max_features": drawn, "random_state": seed}
        tops, _, _ = top_trees(data, **sizes)
        first = [first_feature(top.nodes, data.n_features) for top in tops[:tops_of_a_deck]]
        assert len(set(first)) == tops_of_a_deck, seed
        assert len(tops) == 7


@pytest.mark.parametrize("balance", [0.0, 1.0])
def test_a_pure_sample_is_not_peeled_row_by_row(balance: float) -> None:
    rng = np.random.default_rng(1)
    data = ArrayRows(rng.normal(size=(20_000, 3)), np.zeros(20_000), 3)
    tops, _, _ = top_trees(data, balance=balance, bucket_size=100, top_sample=20_000)
    assert tops[0].bucket_depths.max() <= 10


def test_indistinguishable_rows_share_a_bucket() -> None:
    data = ArrayRows(np.ones((1000, 3)), np.arange(1000) % 3, 3)
    tops, _, _ = top_trees(data)
    assert [top.n_buckets for top in tops] == [1, 1]


def test_labels_may_be_renamed() -> None:
    """The gain is the criterion's on class counts, not the variance of class numbers."""
    x = np.random.default_rng(2).normal(size=(2000, 4))
    y = np.digitize(x[:, 0], [-0.5, 0.5]).astype(float)
    trees = [
        top_trees(ArrayRows(x, np.array(names)[y.astype(int)], 3))[0] for names in ([0.0, 1, 2], [2.0, 0, 1])
    ]
    for a, b in zip(*trees, strict=True):
        np.testing.assert_array_equal(a.nodes, b.nodes)


@pytest.mark.parametrize("balance", [0.0, 1.0])
def test_a_large_sample_is_grown_on_part_by_part(balance: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first levels use a part of the sample, the others all of it: buckets are as small, and splits
    as informative."""
    data = small_data(20_000)
    sizes = {"bucket_size": 300, "top_sample": 10_000, "balance": balance, "top_max_features": None}
    whole, _, _ = top_trees(data, **sizes)
    monkeypatch.setattr("oldgrowth.fitting.top_trees.PART_ROWS", 1_500)
    in_parts, samples, plan = top_trees(data, **sizes)
    limit = plan.bucket_size * plan.top_sample / data.n_rows
    for top, other, x in zip(in_parts, whole, samples, strict=True):
        leaves = top.nodes[top.nodes >= 2**63] - np.uint64(2**63)
        np.testing.assert_array_equal(leaves, np.arange(top.n_buckets))
        rows = np.bincount(top.route(x, ()), minlength=top.n_buckets)
        assert rows.min() > 0 and rows.max() < limit
        assert abs(top.n_buckets / other.n_buckets - 1) < 0.25
        assert top.bucket_depths.max() < other.bucket_depths.max() + 8
        assert balance or abs(top.importances.sum() / other.importances.sum() - 1) < 0.1


def test_parts_that_are_too_large_are_split_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the rows are equal: no tree can split them."""
    data = small_data(4_000)
    x, y = np.array(data.take(np.arange(4_000, dtype=np.uint32)).x), data.targets
    x[::2] = 0
    monkeypatch.setattr("oldgrowth.fitting.top_trees.PART_ROWS", 100)
    tops, samples, _ = top_trees(ArrayRows(x, y, 3), bucket_size=50, top_sample=4_000)
    for top, sampled in zip(tops, samples, strict=True):
        rows = np.sort(np.bincount(top.route(sampled, ()), minlength=top.n_buckets))
        assert rows[-1] >= 2_000 and rows[-2] < 50 and rows[0] > 0


def test_parts_are_no_deeper_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oldgrowth.fitting.top_trees.PART_ROWS", 300)
    tops, _, _ = top_trees(small_data(4_000), bucket_size=20, top_sample=4_000, max_depth=5)
    assert [top.bucket_depths.max() for top in tops] == [5, 5]
    assert all(10 < top.n_buckets <= 2**5 for top in tops)  # depths may be told wrong


def test_the_first_part_is_drawn_from_all_of_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are sorted: the first ones alone, or every n-th, would give other splits."""
    n = 8_000
    ordered = np.arange(n, dtype=np.float32)
    x = np.stack([ordered, ordered % 16], axis=1)
    monkeypatch.setattr("oldgrowth.fitting.top_trees.PART_ROWS", 500)
    sizes = {"bucket_size": 100, "top_sample": n, "balance": 1.0, "top_max_features": None}
    tops, _, _ = top_trees(ArrayRows(x, np.zeros(n), 3), **sizes)
    for top in tops:
        assert top.n_buckets >= 80 and top.bucket_depths.max() <= 10


def test_each_part_draws_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Features are equally good and one is tried per split: parts start with different ones."""
    rng = np.random.default_rng(0)
    data = ArrayRows(rng.normal(size=(6_000, 7)), np.zeros(6_000), 3)
    begun: dict[int, list[tuple[int, int]]] = {}
    grow = oldgrowth.fitting.top_trees.grow_on_sample

    def watched(bucket, n_rows, plan, stop, root):
        tree = grow(bucket, n_rows, plan, stop, root)
        begun.setdefault(root.number, []).append((root.place, first_feature(tree.nodes, 7)))
        return tree

    monkeypatch.setattr("oldgrowth.fitting.top_trees.PART_ROWS", 700)
    monkeypatch.setattr("oldgrowth.fitting.top_trees.grow_on_sample", watched)
    top_trees(data, bucket_size=100, top_sample=6_000, balance=1.0, top_max_features=1)
    for parts in begun.values():
        places, features = zip(*parts, strict=True)
        assert len(parts) > 8 and len(set(places)) == len(places) and len(set(features)) > 3
