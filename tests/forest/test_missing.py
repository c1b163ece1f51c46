"""Rows with missing values are predicted apart from the others, with the same result."""

import numpy as np
import pytest

from oldgrowth import RandomForestClassifier, RandomForestRegressor
from oldgrowth.forest.predict import apply, predict_means

RNG = np.random.default_rng(0)


def rows_with_missing(share):
    x = RNG.normal(size=(3000, 5)).astype(np.float32)
    x[RNG.random(len(x)) < share, RNG.integers(5)] = np.nan
    return x


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
@pytest.mark.parametrize("share", [0.001, 0.2, 0.6, 1.0])
def test_a_few_rows_with_missing_values_change_nothing_for_the_others(kind, share):
    train = rows_with_missing(0.3)
    y = (np.nan_to_num(train[:, 0]) + train[:, 1] > 0).astype(int)
    forest = kind(6, bucket_size=300, random_state=0).fit(train, y).forest_
    x = rows_with_missing(share)
    expected, leaves = np.empty((len(x), forest.n_outputs)), np.empty((len(x), 6), dtype=np.int64)
    forest.predict_sums(x, True, False, False, expected)
    forest.apply(x, True, False, leaves)
    for n_jobs in (1, 2):
        np.testing.assert_array_equal(predict_means(forest, False, x, n_jobs), expected / 6)
        np.testing.assert_array_equal(apply(forest, x, n_jobs), leaves)


def coded_rows(share):
    """Rows whose third and fourth column are codes of levels, some of them missing, as some numbers are."""
    x = rows_with_missing(share)
    x[:, 2:4] = RNG.integers(0, (5, 40), (len(x), 2))
    x[RNG.random(len(x)) < 0.5, 3] = np.nan
    return x


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_are_walked_again_only_where_numbers_are_missing(share, n_jobs, monkeypatch):
    train = coded_rows(0.3)
    y = (np.nan_to_num(train[:, 0]) + train[:, 3] % 2 > 0).astype(int)
    forest = RandomForestClassifier(6, bucket_size=300, random_state=0, categorical_features=[2, 3])
    forest = forest.fit(train, y).forest_
    x = coded_rows(share)
    expected = np.empty((len(x), forest.n_outputs))
    forest.predict_sums(x, True, False, False, expected)
    walked = []

    def predict_sums(rows, may_miss, *others):
        walked.append((len(rows), may_miss))
        type(forest).predict_sums(forest, rows, may_miss, *others)

    monkeypatch.setattr(forest, "predict_sums", predict_sums, raising=False)
    np.testing.assert_array_equal(predict_means(forest, False, x, n_jobs), expected / 6)
    again = sum(n for n, may_miss in walked if may_miss)
    without = [0, 1, 4]  # the columns of numbers
    missing = np.isnan(x[:, without]).any(axis=1).sum()
    assert again == missing
    assert sum(n for n, may_miss in walked if not may_miss) == (len(x) if missing < 0.25 * len(x) else 0)


def test_parts_of_rows_with_categories_are_equally_long(monkeypatch):
    train = coded_rows(0)
    model = RandomForestClassifier(2, bucket_size=300, random_state=0, categorical_features=[2, 3])
    forest = model.fit(train, train[:, 2] > 2).forest_
    lengths = []
    monkeypatch.setattr(forest, "predict_sums", lambda rows, *_: lengths.append(len(rows)), raising=False)
    monkeypatch.setattr("oldgrowth.forest.predict._CODED_ROWS_AT_A_TIME", 1000)
    predict_means(forest, False, train, 2)
    assert lengths == [750] * 4
