"""The estimators as scikit-learn's users meet them."""

import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import oldgrowth
from helpers import make_data
from oldgrowth import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    OldgrowthError,
    RandomForestClassifier,
    RandomForestRegressor,
    SubsetForestClassifier,
    SubsetForestRegressor,
)

ALL = [
    RandomForestClassifier,
    RandomForestRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    SubsetForestClassifier,
    SubsetForestRegressor,
]


@parametrize_with_checks([kind() for kind in ALL])
def test_scikit_learns_own_checks(estimator, check) -> None:
    check(estimator)


# Top samples are drawn by row number, so that with top trees repeating a row is not quite weighting it.
BY_NUMBER = {"check_sample_weight_equivalence_on_dense_data": "top samples are drawn by row number"}


@parametrize_with_checks(
    [RandomForestClassifier(8, bucket_size=10), ExtraTreesRegressor(8, bucket_size=10)],
    expected_failed_checks=lambda estimator: BY_NUMBER,
)
def test_scikit_learns_own_checks_with_top_trees(estimator, check) -> None:
    check(estimator)


@pytest.mark.parametrize("kind", ALL)
def test_one_seed_is_one_model(kind) -> None:
    x, y = make_data(3000, 9, 3 if "Classifier" in kind.__name__ else 0, seed=1)
    sizes = {"subset_size": 700} if "Subset" in kind.__name__ else {"bucket_size": 200, "top_sample": 1000}
    models = [
        kind(6, random_state=7, n_jobs=jobs, chunk_size=chunk, **sizes).fit(x, y)
        for jobs, chunk in [(1, "auto"), (2, 100), (3, 1000), (8, len(x)), (2, 1)]
    ]
    assert len({model.forest_.digest() for model in models}) == 1
    for model in models[1:]:
        np.testing.assert_array_equal(model.feature_importances_, models[0].feature_importances_)
    other = kind(6, random_state=8, **sizes).fit(x, y)
    assert other.forest_.digest() != models[0].forest_.digest()


def test_one_seed_is_one_model_in_another_process() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from helpers import make_data; from oldgrowth import RandomForestClassifier\n"
        "x, y = make_data(2000, 9, 3, seed=1)\n"
        "forest = RandomForestClassifier(5, random_state=3, bucket_size=300, n_jobs=1).fit(x, y).forest_\n"
        "print(forest.digest())"
    )
    x, y = make_data(2000, 9, 3, seed=1)
    here = RandomForestClassifier(5, random_state=3, bucket_size=300).fit(x, y).forest_.digest()
    there = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert here == there


def test_oob_sums_do_not_depend_on_threads() -> None:
    x, y = make_data(2000, 9, 3, seed=2)
    forests = [
        RandomForestClassifier(20, random_state=3, bucket_size=300, oob_score=True, n_jobs=jobs).fit(x, y)
        for jobs in (1, 2, 8)
    ]
    for forest in forests[1:]:
        np.testing.assert_array_equal(forest.oob_decision_function_, forests[0].oob_decision_function_)


def test_the_order_of_the_rows_does_not_matter_in_one_bucket() -> None:
    x, y = make_data(500, 6, 3, seed=3)
    order = np.random.default_rng(0).permutation(500)
    a = RandomForestClassifier(5, random_state=1).fit(x, y)
    b = RandomForestClassifier(5, random_state=1).fit(x[order], y[order])
    np.testing.assert_array_equal(a.predict_proba(x), b.predict_proba(x))


@pytest.mark.parametrize(
    "dtype",
    [
        np.float16,
        np.float32,
        np.float64,
        np.int8,
        np.uint8,
        np.int16,
        np.uint16,
        np.int32,
        np.uint32,
        np.int64,
        np.uint64,
        bool,
    ],
)
@pytest.mark.parametrize("layout", ["C", "F", "strided", "memmap", "read-only"])
def test_any_array_of_the_same_values_gives_the_same_forest(dtype, layout: str, tmp_path) -> None:
    rng = np.random.default_rng(4)
    base = rng.integers(0, 2 if dtype is bool else 100, size=(300, 5)).astype(dtype)
    y = (base[:, 0].astype(float) + base[:, 1] > np.median(base[:, 0].astype(float) + base[:, 1])).astype(int)
    x = base
    if layout == "F":
        x = np.asfortranarray(base)
    elif layout == "strided":
        wide = np.zeros((600, 10), dtype=dtype)
        wide[::2, ::2] = base
        x = wide[::2, ::2]
    elif layout == "memmap":
        np.save(tmp_path / "x.npy", base)
        x = np.load(tmp_path / "x.npy", mmap_mode="r")
    elif layout == "read-only":
        x = base.copy()
        x.flags.writeable = False
    model = RandomForestClassifier(4, random_state=0, bucket_size=50).fit(x, y)
    expected = RandomForestClassifier(4, random_state=0, bucket_size=50).fit(base.astype(np.float64), y)
    assert model.forest_.digest() == expected.forest_.digest()
    np.testing.assert_array_equal(model.predict(x), expected.predict(base.astype(np.float64)))


@pytest.mark.parametrize(
    "labels", [[3, 7, -2], ["a", "bb", "c"], [True, False, True], np.array([2, 300, 65000], dtype=np.uint16)]
)
def test_any_labels(labels) -> None:
    x, codes = make_data(300, 6, 3, seed=5)
    y = np.asarray(labels)[codes]
    model = RandomForestClassifier(10, random_state=0).fit(x, y)
    assert model.score(x, y) > 0.95
    assert model.predict(x).dtype == y.dtype
    np.testing.assert_array_equal(model.classes_, np.unique(y))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_bring_their_names(frame) -> None:
    x, y = make_data(300, 4, 3, seed=6)
    names = ["red", "green", "blue", "nir"]
    table = frame({name: x[:, i] for i, name in enumerate(names)})
    model = RandomForestClassifier(5, random_state=0).fit(table, y)
    assert list(model.feature_names_in_) == names
    np.testing.assert_array_equal(
        model.predict(table), RandomForestClassifier(5, random_state=0).fit(x, y).predict(x)
    )
    other = frame({name: x[:, i] for i, name in enumerate(["red", "green", "blue", "swir"])})
    with pytest.raises(ValueError, match="feature names"):
        model.predict(other)


def test_it_works_in_scikit_learns_tools(tmp_path) -> None:
    x, y = make_data(400, 6, 3, seed=7)
    model = RandomForestClassifier(8, random_state=0)
    pipeline = make_pipeline(StandardScaler(), model).fit(x, y)
    assert pipeline.score(x, y) > 0.9
    grid = GridSearchCV(model, {"max_depth": [2, None], "bucket_size": [50, 1000]}, cv=2, n_jobs=2).fit(x, y)
    assert set(grid.best_params_) == {"max_depth", "bucket_size"}
    assert len(cross_val_score(model, x, y, cv=3)) == 3
    fitted = clone(model).fit(x, y)
    importance = permutation_importance(fitted, x, y, n_repeats=2, random_state=0)
    assert importance.importances_mean.argmax() == fitted.feature_importances_.argmax()
    joblib.dump(fitted, tmp_path / "forest.joblib")
    for copy in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "forest.joblib")):
        np.testing.assert_array_equal(copy.predict_proba(x), fitted.predict_proba(x))
        assert copy.forest_.digest() == fitted.forest_.digest()


def test_hard_votes_count_trees() -> None:
    x, y = make_data(500, 6, 3, seed=10)
    model = RandomForestClassifier(10, max_depth=3, voting="hard", random_state=0).fit(x, y)
    votes = model.predict_proba(x) * 10
    np.testing.assert_allclose(votes, votes.round(), atol=1e-9)
    soft = RandomForestClassifier(10, max_depth=3, random_state=0).fit(x, y)
    assert np.abs(soft.predict_proba(x) * 10 - (soft.predict_proba(x) * 10).round()).max() > 0.01


def test_apply_names_a_leaf_in_each_tree() -> None:
    x, y = make_data(1000, 6, 3, seed=11)
    model = RandomForestClassifier(6, bucket_size=150, bootstrap=False, random_state=0).fit(x, y)
    leaves = model.apply(x)
    assert leaves.shape == (1000, 6)
    for tree in range(6):  # rows of one leaf have one class, for a full tree
        assert pd.DataFrame({"leaf": leaves[:, tree], "y": y}).groupby("leaf")["y"].nunique().max() == 1


def test_depth_counts_the_top_tree() -> None:
    x, y = make_data(3000, 6, 3, seed=12)
    for bucket_size in (100, 100_000):
        model = RandomForestClassifier(4, bucket_size=bucket_size, max_depth=5, random_state=0).fit(x, y)
        assert model.fit_report_.depth == 5


def test_classes_of_two_rows_are_found() -> None:
    rng = np.random.default_rng(13)
    x, y = rng.normal(size=(5000, 3)), np.zeros(5000, dtype=int)
    x[:2], y[:2] = [[50, 50, 50], [51, 51, 51]], 1
    model = RandomForestClassifier(40, bucket_size=500, random_state=0).fit(x, y)
    np.testing.assert_array_equal(model.predict(x[:2]), [1, 1])


def test_predictions_do_not_depend_on_the_batch() -> None:
    x, y = make_data(40_000, 6, 3, seed=14)
    model = RandomForestClassifier(4, random_state=0, bucket_size=4000).fit(x[:5000], y[:5000])
    whole = model.predict_proba(x)
    np.testing.assert_array_equal(whole[123:131], model.predict_proba(x[123:131]))
    for jobs in (1, 3):
        np.testing.assert_array_equal(whole, model.set_params(n_jobs=jobs).predict_proba(x))


def test_missing_values_at_prediction_only() -> None:
    x, y = make_data(500, 3, 3, seed=15)
    assert not np.isnan(x).any()
    model = RandomForestClassifier(5, random_state=0).fit(x, y)
    assert model.predict(np.full((1, 3), np.nan)).shape == (1,)


def test_the_report_adds_up() -> None:
    x, y = make_data(2000, 6, 3, seed=16)
    report = RandomForestClassifier(10, bucket_size=300, random_state=0).fit(x, y).fit_report_
    assert list(dict.fromkeys(stage.name for stage in report.stages)) == [
        "sample",
        "top trees",
        "distribute",
        "grow",
        "assemble",
    ]
    assert report.top_trees == 10 and report.trees == 10 and report.buckets > 10
    assert report.bucket_rows["100%"] <= 2000
    assert [sum(rows) for rows in report.rows_by_bucket] == [2000] * 10
    assert sum(map(len, report.rows_by_bucket)) == report.buckets
    assert max(max(rows) for rows in report.rows_by_bucket) == report.bucket_rows["100%"]
    assert report.nodes > 1000 and report.depth > 5 and report.peak_memory > 1e6
    assert "distribute" in str(report) and report.as_dict()["seconds"] == report.seconds


@pytest.mark.parametrize(
    ("trees", "top_trees"),
    [(1, 1), (3, 3), (12, 12), (23, 23), (24, 12), (35, 18), (36, 12), (47, 16), (48, 12), (60, 15)],
)
def test_as_many_trees_share_a_top_tree_as_leave_twelve(trees: int, top_trees: int) -> None:
    x, y = make_data(500, 6, 3, seed=3)
    model = RandomForestClassifier(trees, bucket_size=100, random_state=0).fit(x, y)
    assert model.fit_report_.top_trees == top_trees
    extra = ExtraTreesClassifier(trees, bucket_size=100, random_state=0).fit(x, y)
    assert extra.fit_report_.top_trees == -(-trees // 4)


def test_subset_trees_see_only_their_subset() -> None:
    x, y = make_data(3000, 6, 3, seed=17)
    model = SubsetForestClassifier(5, subset_size=100, bootstrap=False, random_state=0).fit(x, y)
    assert model.fit_report_.bucket_rows == {"0%": 100, "25%": 100, "50%": 100, "75%": 100, "100%": 100}
    full = RandomForestClassifier(5, random_state=0).fit(x, y)
    assert model.fit_report_.nodes < full.fit_report_.nodes / 5


@pytest.mark.parametrize("kind", [SubsetForestClassifier, SubsetForestRegressor])
def test_rows_outside_a_subset_are_out_of_bag(kind) -> None:
    x, y = make_data(600, 6, 3 if kind is SubsetForestClassifier else 0, seed=20)
    model = kind(5, subset_size=100, bootstrap=False, oob_score=True, random_state=0, chunk_size=250).fit(
        x, y
    )
    found = getattr(model, "oob_decision_function_", getattr(model, "oob_prediction_", None))
    assert not np.isnan(found).any()  # five subsets of a sixth leave no row to all trees
    assert 0.3 < model.oob_score_ < model.score(x, y)
    whole = kind(5, subset_size=600, oob_score=True, random_state=0)
    with pytest.warns(UserWarning, match="seen by every tree"):
        whole.fit(x, y)


def test_limits_hold_in_top_trees_too() -> None:
    x, y = make_data(5000, 4, 2, seed=21)
    for limit in ({"min_samples_split": 1500}, {"min_impurity_decrease": 0.05}):
        one, many = (
            RandomForestClassifier(
                1, bootstrap=False, random_state=0, top_sample=5000, bucket_size=size, **limit
            )
            .fit(x, y)
            .fit_report_.nodes
            for size in (5000, 50)
        )
        assert many < 3 * one + 30


def test_a_small_share_of_rows_gives_small_trees() -> None:
    x, y = make_data(5000, 4, 2, seed=22)
    for bucket_size in (100_000, 500):
        sizes = [
            RandomForestClassifier(4, max_samples=rows, bucket_size=bucket_size, random_state=0)
            .fit(x, y)
            .fit_report_.nodes
            for rows in (1, 100, 5000)
        ]
        assert sizes[0] < sizes[1] < sizes[2] / 5
    assert RandomForestClassifier(4, max_samples=1, bucket_size=10**6).fit(x, y).fit_report_.nodes <= 4 * 7


def test_shares_refer_to_the_subset() -> None:
    x, y = make_data(5000, 4, 2, seed=23)
    model = SubsetForestClassifier(4, subset_size=200, min_samples_leaf=0.02, random_state=0).fit(x, y)
    assert model.fit_report_.nodes > 4 * 10


def test_regression_targets_of_any_size() -> None:
    rng = np.random.default_rng(24)
    x = rng.normal(size=(300, 3))
    small = rng.random(300)
    with_giant = np.append(small, 1e17)
    model = RandomForestRegressor(1, bootstrap=False, random_state=0).fit(
        np.vstack([x, [[9, 9, 9]]]), with_giant
    )
    np.testing.assert_allclose(model.predict(x), small, rtol=1e-12)
    for size in (1e-300, 1e-170, 1.0, 1e160, 1e300):
        model = RandomForestRegressor(1, bootstrap=False, random_state=0).fit(x, small * size)
        np.testing.assert_allclose(model.predict(x), small * size, rtol=1e-12)
        assert model.fit_report_.depth < 40


def test_out_of_bag_without_any_row() -> None:
    x, y = make_data(30, 3, 2, seed=25)
    with pytest.warns(UserWarning, match="seen by every tree"):
        model = RandomForestClassifier(2, oob_score=True, random_state=0).fit(
            x, y, sample_weight=np.full(30, 99.0)
        )
    assert np.isnan(model.oob_score_)


def test_an_infinite_value_is_named_by_the_callers_row() -> None:
    x, y = make_data(40, 3, 2, seed=26)
    x[17, 1] = np.inf
    weights = np.ones(40)
    weights[:10] = 0
    with pytest.raises(OldgrowthError, match="row 17, column 1"):
        RandomForestClassifier(2).fit(x, y, sample_weight=weights)


def test_predict_log_proba_is_the_logarithm() -> None:
    x, y = make_data(100, 3, 3, seed=27)
    model = RandomForestClassifier(5, random_state=0).fit(x, y)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(x)), model.predict_proba(x))


def test_a_metric_of_ones_own_for_out_of_bag() -> None:
    x, y = make_data(300, 3, 3, seed=28)
    model = RandomForestClassifier(40, random_state=0, oob_score=lambda a, b: float((a == b).sum())).fit(x, y)
    assert 100 < model.oob_score_ <= 300


def test_version_is_known() -> None:
    assert oldgrowth.__version__
