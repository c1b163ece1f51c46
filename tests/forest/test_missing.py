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
