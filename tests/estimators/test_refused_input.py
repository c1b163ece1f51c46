"""Invalid parameters and data: errors name them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from helpers import make_data
from oldgrowth import (
    OldgrowthError,
    RandomForestClassifier,
)

BAD_PARAMETERS = [
    {"n_estimators": 0},
    {"n_estimators": 2.5},
    {"criterion": "mse"},
    {"max_depth": 0},
    {"min_samples_split": 1},
    {"min_samples_leaf": 0},
    {"min_samples_leaf": 1.5},
    {"min_weight_fraction_leaf": 0.6},
    {"min_impurity_decrease": -1.0},
    {"max_features": 0},
    {"max_features": "all"},
    {"max_features": 1.5},
    {"bootstrap": "yes"},
    {"max_samples": 0.5, "bootstrap": False},
    {"max_samples": 100_000},
    {"max_samples": 4.5},
    {"max_samples": 0.0},
    {"oob_score": True, "bootstrap": False},
    {"oob_score": "accuracy"},
    {"class_weight": "heavy"},
    {"class_weight": {0: -1.0, 1: 1.0}},
    {"class_weight": {0: np.nan, 1: 1.0}},
    {"class_weight": {0: 0, 1: 0}},
    {"class_weight": {0: 1e60, 1: 1}},
    {"class_weight": {0: "1", 1: 1}},
    {"min_samples_leaf": 1.0},
    {"min_impurity_decrease": np.inf},
    {"trees_per_top": 0},
    {"trees_per_top": "all"},
    {"bucket_size": 1},
    {"bucket_size": "large"},
    {"top_sample": 0},
    {"top_max_features": "many"},
    {"balance": 1.5},
    {"balance": "even"},
    {"bottom_balance": -0.1},
    {"bottom_balance": "auto"},
    {"chunk_size": 0},
    {"voting": "loud"},
    {"verbose": -1},
    {"n_jobs": 0},
]


@pytest.mark.parametrize("params", BAD_PARAMETERS, ids=str)
def test_bad_parameters_are_named(params) -> None:
    x, y = make_data(50, 4, 2, seed=18)
    with pytest.raises(OldgrowthError, match=next(iter(params))):
        RandomForestClassifier(**params).fit(x, y)


@pytest.mark.parametrize("name", ["trees_per_top", "bucket_size", "top_sample"])
def test_what_may_be_auto_says_so(name: str) -> None:
    with pytest.raises(OldgrowthError, match="or 'auto'"):
        RandomForestClassifier(**{name: "all"}).fit(*make_data(50, 4, 2, seed=18))


def test_bad_data_is_refused() -> None:
    x, y = make_data(50, 5, 2, seed=19)
    model = RandomForestClassifier(2, bucket_size=10)
    with pytest.raises(OldgrowthError, match="2 columns"):
        model.fit(x, np.stack([y, y], axis=1))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(x, np.full(50, np.nan))
    with pytest.raises(ValueError, match="not negative"):
        model.fit(x, y, sample_weight=-np.ones(50))
    with pytest.raises(ValueError, match="non-zero"):
        model.fit(x, y, sample_weight=np.zeros(50))
    bad = x.copy()
    bad[17, 3] = 1e39  # finite as float64, not as float32
    with pytest.raises(OldgrowthError, match="row 17, column 3"):
        model.fit(bad, y)
    fitted = model.fit(x, y)
    with pytest.raises(OldgrowthError, match="row 17, column 3"):
        fitted.predict(bad)
    with pytest.raises(ValueError, match="5 features"):
        fitted.predict(x[:, :4])
    with pytest.raises(OldgrowthError, match="row 17, column green"):
        model.fit(pd.DataFrame(bad, columns=["a", "b", "c", "green", "e"]), y)


def test_limits_of_the_formats_are_refused() -> None:
    x = np.zeros((3, 70_000), dtype=np.float32)
    with pytest.raises(OldgrowthError, match="70,000 features"):
        RandomForestClassifier(1).fit(x, [0, 1, 0])
    from oldgrowth.plan import check_limits

    with pytest.raises(OldgrowthError, match="bucket_size"):
        check_limits(2**32 - 1, 3, 1)
    check_limits(2**33, 3, 1000)  # rows have 64-bit numbers
