"""The split of a stump, compared with an exhaustive search in NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from helpers import Inner, decode, goes_left
from oldgrowth import RandomForestClassifier, RandomForestRegressor, _core

FLOATS = st.one_of(
    st.sampled_from(
        [0.0, -0.0, 1.0, 2.0, 3.0, np.nan, 1e-45, -1e-45, 3e38, -3e38, 0.1, np.nextafter(np.float32(0.1), 1)]
    ),
    st.floats(width=32, allow_infinity=False),
)


def impurity(criterion: str, y: np.ndarray, w: np.ndarray) -> float:
    if criterion == "squared_error":
        return float(np.average((y - np.average(y, weights=w)) ** 2, weights=w))
    shares = np.array([w[y == k].sum() for k in np.unique(y)]) / w.sum()
    if criterion == "gini":
        return float(1 - (shares**2).sum())
    return float(-(shares[shares > 0] * np.log2(shares[shares > 0])).sum())


def decrease(criterion: str, y: np.ndarray, w: np.ndarray, left: np.ndarray) -> float:
    parts = sum(w[side].sum() * impurity(criterion, y[side], w[side]) for side in (left, ~left))
    return w.sum() * impurity(criterion, y, w) - parts


def best_decrease(criterion: str, x: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    best = -np.inf
    for column in x.T:
        missing = np.isnan(column)
        for cut in [*np.unique(column[~missing]), np.inf]:
            for side in (False, True):
                left = np.where(missing, side, column <= cut)
                if left.any() and not left.all():
                    best = max(best, decrease(criterion, y, w, left))
    return best


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
@pytest.mark.parametrize("weighted", [False, True])
@given(data=st.data())
def test_a_stump_is_the_best_split(criterion: str, weighted: bool, data: st.DataObject) -> None:
    n, d = data.draw(st.integers(2, 30)), data.draw(st.integers(1, 4))
    x = data.draw(arrays(np.float32, (n, d), elements=FLOATS))
    y = data.draw(arrays(np.int64, n, elements=st.integers(0, data.draw(st.sampled_from([1, 3])))))
    w = (
        data.draw(arrays(np.float64, n, elements=st.sampled_from([0.25, 1.0, 2.0, 3.5])))
        if weighted
        else np.ones(n)
    )
    kind = RandomForestRegressor if criterion == "squared_error" else RandomForestClassifier
    model = kind(1, criterion=criterion, max_depth=1, bootstrap=False, max_features=None, random_state=0)
    root = decode(model.fit(x, y, sample_weight=w if weighted else None).forest_)
    expected = best_decrease(criterion, x, y, w)
    if not isinstance(root, Inner):
        assert len(np.unique(y)) == 1 or expected == -np.inf
        return
    found = decrease(criterion, y, w, goes_left(root, x))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9 * w.sum())


def test_the_threshold_lies_midway() -> None:
    x = np.array([[1.0], [2.0], [6.0], [7.0]])
    model = RandomForestClassifier(1, bootstrap=False).fit(x, [0, 0, 1, 1])
    assert decode(model.forest_).threshold == 4.0


def test_missing_values_go_where_they_gain() -> None:
    x = np.array([[1.0], [2.0], [6.0], [7.0], [np.nan], [np.nan]])
    for side, label in ((True, 0), (False, 1)):
        model = RandomForestClassifier(1, bootstrap=False).fit(x, [0, 0, 1, 1, label, label])
        root = decode(model.forest_)
        assert root.missing_left is side
        assert model.predict([[np.nan]])[0] == label


def test_random_thresholds_fall_between_lowest_and_highest() -> None:
    x = np.array([[0.0], [1.0]] * 50)
    cuts = []
    for seed in range(200):
        from oldgrowth import ExtraTreesClassifier

        model = ExtraTreesClassifier(1, random_state=seed).fit(x, [0, 1] * 50)
        cuts.append(decode(model.forest_).threshold)
    assert 0 <= min(cuts) < 0.1 and 0.9 < max(cuts) < 1
    assert np.mean(cuts) == pytest.approx(0.5, abs=0.1)


def test_criteria_have_the_names_that_rules_take() -> None:
    assert _core.criteria(classification=True) == ["gini", "entropy", "log_loss"]
    assert _core.criteria(classification=False) == ["squared_error", "poisson"]
    rules = _core.TreeRules()
    assert rules.criterion == "gini"
    rules.criterion = "log_loss"
    assert rules.criterion == "entropy"
    with pytest.raises(ValueError, match="no such criterion"):
        rules.criterion = "twoing"
