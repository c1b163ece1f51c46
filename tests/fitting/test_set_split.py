"""Splits by sets of levels, compared with an exhaustive search; forests of them in every way of fitting."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from oldgrowth import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor, errors, load

Floats = np.ndarray[Any, np.dtype[np.float64]]
MISSING = np.nan


def impurity(criterion: str, y: Floats, w: Floats) -> float:
    if criterion == "squared_error":
        return float(np.average((y - np.average(y, weights=w)) ** 2, weights=w))
    shares = np.array([w[y == k].sum() for k in np.unique(y)]) / w.sum()
    if criterion == "gini":
        return float(1 - (shares**2).sum())
    return float(-(shares * np.log2(shares)).sum())


def decrease(criterion: str, y: Floats, w: Floats, left: Any) -> float:
    parts = sum(w[side].sum() * impurity(criterion, y[side], w[side]) for side in (left, ~left))
    return w.sum() * impurity(criterion, y, w) - parts


def best_of(criterion: str, x: Floats, y: Floats, w: Floats, single: bool) -> float:
    """Of all sets of levels, or of those of a single one, with missing values on either side."""
    best = 0.0
    levels = np.unique(x[~np.isnan(x)])
    for bits in product([False, True], repeat=len(levels)):
        if single and sum(bits) != 1:
            continue
        inside = np.isin(x, levels[np.array(bits, dtype=bool)])
        for left in (inside, inside | np.isnan(x)):
            if left.any() and not left.all():
                best = max(best, decrease(criterion, y, w, left))
    return best


def stump_decrease(criterion: str, x: Floats, y: Floats, w: Floats) -> float:
    kind = RandomForestRegressor if criterion == "squared_error" else RandomForestClassifier
    model = kind(
        1, criterion=criterion, max_depth=1, bootstrap=False, random_state=0, categorical_features=[0]
    )
    leaves = model.fit(x[:, None], y, sample_weight=w).apply(x[:, None])[:, 0]
    left = leaves == leaves[0]
    return 0.0 if left.all() else decrease(criterion, y, w, left)


def rows(data: st.DataObject, n_classes: int, levels: int) -> tuple[Floats, Floats, Floats]:
    n = data.draw(st.integers(2, 40))
    values = [float(i) for i in range(levels)] + [MISSING] * data.draw(st.booleans())
    x = data.draw(arrays(np.float64, n, elements=st.sampled_from(values)))
    y = data.draw(arrays(np.float64, n, elements=st.integers(0, n_classes - 1)))
    w = data.draw(arrays(np.float64, n, elements=st.sampled_from([0.25, 1.0, 2.0, 3.5])))
    return x, y, np.ones(n) if data.draw(st.booleans()) else w


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
@given(data=st.data())
def test_of_few_levels_the_best_set_is_found(criterion: str, data: st.DataObject) -> None:
    n_values = 5 if criterion == "squared_error" else 2
    x, y, w = rows(data, n_values, data.draw(st.integers(1, 7)))
    if np.isnan(x).all():
        return
    best = best_of(criterion, x, y, w, single=False)
    assert stump_decrease(criterion, x, y, w) == pytest.approx(best, abs=1e-9 * w.sum() * 10)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@given(data=st.data())
def test_of_many_classes_no_single_level_is_better(criterion: str, data: st.DataObject) -> None:
    x, y, w = rows(data, 5, data.draw(st.integers(1, 8)))
    if np.isnan(x).all():
        return
    best = best_of(criterion, x, y, w, single=True)
    assert stump_decrease(criterion, x, y, w) >= best - 1e-9 * w.sum() * 10


def table(n: int = 4000, levels: int = 90) -> tuple[Floats, Floats]:
    """Two categorical columns, of many levels and of few, with missing values, and a number."""
    rng = np.random.default_rng(1)
    a, b, c = rng.integers(0, levels, n), rng.integers(0, 6, n), rng.normal(size=n)
    y = rng.normal(size=levels)[a] + rng.normal(size=6)[b] + c > rng.normal(size=n)
    x = np.stack([a, b, c], axis=1).astype(np.float64)
    x[rng.random(n) < 0.05, 0] = MISSING
    return x, y.astype(np.float64)


KINDS = [RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier]
SPLIT = {"bucket_size": 300, "trees_per_top": 2, "categorical_features": [0, 1], "random_state": 3}


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_of_fitting_gives_one_forest(kind: Any, tmp_path: Any) -> None:
    x, y = table()
    digests = {
        kind(6, **SPLIT, **way).fit(x, y).forest_.digest()
        for way in (
            {},
            {"n_jobs": 1},
            {"store": "disk"},
            {"store": "disk", "chunk_size": 100},
            {"checkpoint_dir": tmp_path},
        )
    }
    assert len(digests) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bucket_size", [300, 4000])
def test_levels_under_other_codes_give_the_same_forest(kind: Any, bucket_size: int) -> None:
    x, y = table()
    other = x.copy()
    known = ~np.isnan(x[:, 0])
    other[known, 0] = np.random.default_rng(2).permutation(90)[x[known, 0].astype(int)]
    way = SPLIT | {"bucket_size": bucket_size}
    one, two = (kind(6, **way).fit(rows, y) for rows in (x, other))
    assert one.forest_.digest() == two.forest_.digest()
    np.testing.assert_array_equal(one.predict(x), two.predict(other))


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_a_saved_forest_predicts_the_same(kind: Any, tmp_path: Any) -> None:
    x, y = table()
    model = kind(6, oob_score=True, **SPLIT).fit(x, y)
    model.save(tmp_path / "sets.og")
    loaded = load(tmp_path / "sets.og")
    assert loaded.forest_.levels == model.forest_.levels == (90, 6, 0)
    assert loaded.forest_.digest() == model.forest_.digest()
    np.testing.assert_array_equal(loaded.predict(x), model.predict(x))
    assert model.oob_score_ > (0.6 if kind is RandomForestClassifier else 0.05)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_two_levels_split_like_zero_and_one(depth: int) -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(0, 2, (400, 8)).astype(np.float64)
    y = x @ rng.normal(size=8) + x[:, 0] * x[:, 1] + rng.normal(size=400)
    common = {"max_depth": depth, "bootstrap": False, "max_features": None, "random_state": 0}
    numbers, levels = (
        RandomForestRegressor(1, categorical_features=categorical, **common).fit(x, y)
        for categorical in (None, list(range(8)))
    )
    assert levels.forest_.levels == (2,) * 8
    np.testing.assert_allclose(levels.predict(x), numbers.predict(x), atol=1e-12)
    np.testing.assert_allclose(levels.feature_importances_, numbers.feature_importances_, atol=1e-12)


def test_unknown_levels_go_where_missing_values_go() -> None:
    x, y = table()
    model = RandomForestClassifier(6, **SPLIT).fit(x, y)
    unseen, missing = x.copy(), x.copy()
    unseen[:, 0], missing[:, 0] = 1e6, MISSING
    np.testing.assert_array_equal(model.predict_proba(unseen), model.predict_proba(missing))


@pytest.mark.parametrize(("n", "followed"), [(57, 0.0), (60, 1.0)])
@pytest.mark.parametrize("heavier_class", [0.0, 1.0])
def test_unmet_levels_go_to_the_lighter_side_of_many_rows(
    n: int, followed: float, heavier_class: float
) -> None:
    level = (np.arange(n) % 3 == 0).astype(np.float64)  # a third has level 1
    y = np.where(level == 0, heavier_class, 1 - heavier_class)
    model = RandomForestClassifier(1, bootstrap=False, random_state=0, categorical_features=[0])
    leaves = model.fit(level[:, None], y).apply(np.array([[followed], [1 - followed], [77.0]]))[:, 0]
    assert leaves[2] == leaves[0] != leaves[1]


def test_scikit_learn_has_no_sets() -> None:
    x, y = table(400)
    model = RandomForestClassifier(2, **SPLIT).fit(x, y)
    with pytest.raises(errors.ExportError, match="2 categorical features by sets of levels"):
        model.to_sklearn()


@pytest.mark.parametrize("levels", [5, 31, 32, 33, 90, 3000])
@pytest.mark.parametrize("bucket_size", [900, 6000])
def test_many_rows_at_once_go_where_single_rows_go(levels: int, bucket_size: int) -> None:
    x, y = table(6000, levels)
    x[::7, 2] = MISSING
    x[::11, 1] = 77.0  # unseen
    model = RandomForestClassifier(6, **SPLIT | {"bucket_size": bucket_size}).fit(x, y)
    at_once = model.apply(x)
    np.testing.assert_array_equal(at_once[:300], np.concatenate([model.apply(row[None]) for row in x[:300]]))
