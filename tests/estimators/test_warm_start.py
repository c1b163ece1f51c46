"""Trees added by `warm_start`: the forest is the one that is fitted with all trees at once."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import oldgrowth
from helpers import make_data
from oldgrowth import load, merge, open_dataset
from oldgrowth.errors import ParameterError, WarmStartError
from oldgrowth.messages.warnings import NoMoreTreesWarning

X, Y = make_data(1200, 6, 4, seed=0)
VALUES = make_data(1200, 6, 0, seed=0)[1]
BUCKETS: dict[str, Any] = {"bucket_size": 150, "trees_per_top": 4}
FORESTS = [
    "RandomForestClassifier",
    "RandomForestRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "SubsetForestClassifier",
    "SubsetForestRegressor",
]


def made(name: str, trees: int, **given: Any) -> Any:
    if name.startswith("Subset"):
        given = {"subset_size": 300, **{k: v for k, v in given.items() if k not in (*BUCKETS, "store")}}
    return getattr(oldgrowth, name)(trees, random_state=0, **given)


def target(name: str) -> np.ndarray:
    return Y if name.endswith("Classifier") else VALUES


def grown(name: str, steps: list[int], fit: Any, **given: Any) -> Any:
    """A forest fitted with as many trees as each of the steps says."""
    forest = made(name, steps[0], warm_start=True, **given)
    for trees in steps:
        fit(forest.set_params(n_estimators=trees))
    return forest


def the_same(forest: Any, whole: Any) -> None:
    forest.forest_.check()
    assert forest.forest_.digest() == whole.forest_.digest()
    assert len(forest) == forest.forest_.n_trees == whole.forest_.n_trees
    np.testing.assert_allclose(forest.feature_importances_, whole.feature_importances_, rtol=1e-9)
    report, at_once = forest.fit_report_, whole.fit_report_
    for field in ("trees", "top_trees", "nodes", "depth", "buckets", "rows_by_bucket", "bucket_rows", "rows"):
        assert getattr(report, field) == getattr(at_once, field), field


@pytest.mark.parametrize("store", ["memory", "disk"])
@pytest.mark.parametrize("steps", [[12, 24], [10, 13, 24], [1, 2, 24]])
@pytest.mark.parametrize("given", [{}, BUCKETS], ids=["one bucket", "buckets"])
@pytest.mark.parametrize("name", FORESTS)
def test_the_forest_of_all_trees(name: str, given: dict[str, Any], steps: list[int], store: str) -> None:
    y = target(name)
    oob = {"oob_score": True, "bootstrap": True}
    whole = made(name, 24, **given, **oob).fit(X, y)
    forest = grown(name, steps, lambda f: f.fit(X, y), store=store, **given, **oob)
    the_same(forest, whole)
    assert forest.oob_score_ == whole.oob_score_
    rows = "oob_decision_function_" if name.endswith("Classifier") else "oob_prediction_"
    np.testing.assert_array_equal(getattr(forest, rows), getattr(whole, rows))


def with_categories() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    few, many = rng.integers(5, size=1200), rng.integers(90, size=1200)
    return (
        pd.DataFrame(X).rename(columns=str).assign(few=[f"f{k}" for k in few], many=[f"m{k}" for k in many])
    )


@pytest.mark.parametrize("store", ["memory", "disk"])
@pytest.mark.parametrize("name", FORESTS[:4])
def test_from_files_with_categories(tmp_path: Path, name: str, store: str) -> None:
    y = target(name)
    frame = with_categories().assign(y=y, w=np.arange(1200) % 4)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=200)
    dataset = open_dataset(tmp_path / "rows.parquet", target="y", weight="w")
    given: dict[str, Any] = {**BUCKETS, "bootstrap": True, "oob_score": True, "top_sample": 200}
    whole = made(name, 24, **given).fit(dataset)
    forest = grown(name, [10, 24], lambda f: f.fit(dataset), store=store, **given)
    the_same(forest, whole)
    assert forest.oob_score_ == whole.oob_score_ and forest.levels_ == whole.levels_
    arrays = frame.drop(columns=["y", "w"])
    forest = grown(name, [12, 24], lambda f: f.fit(arrays, y, frame["w"]), **given)
    assert forest.forest_.digest() == whole.forest_.digest()


def test_buckets_that_are_split_again_and_samples_of_a_stream() -> None:
    given: dict[str, Any] = {**BUCKETS, "bucket_size": 100, "top_sample": 12}
    whole = made(FORESTS[0], 24, **given).fit(X, Y)
    assert whole.fit_report_.buckets_split
    the_same(grown(FORESTS[0], [10, 24], lambda f: f.fit(X, Y), **given), whole)
    dataset = open_dataset(X, target=Y)
    the_same(grown(FORESTS[0], [12, 24], lambda f: f.fit(dataset), **given), whole)


@pytest.mark.parametrize("class_weight", ["balanced", "balanced_subsample"])
def test_class_weights_by_tree(class_weight: str) -> None:
    given = {**BUCKETS, "class_weight": class_weight}
    whole = made(FORESTS[0], 24, **given).fit(X, Y)
    the_same(grown(FORESTS[0], [10, 24], lambda f: f.fit(X, Y), **given), whole)


def test_a_loaded_forest_and_one_from_a_pickle_go_on(tmp_path: Path) -> None:
    whole = made(FORESTS[0], 24, **BUCKETS).fit(X, Y)
    first = made(FORESTS[0], 10, warm_start=True, **BUCKETS).fit(X, Y)
    first.save(tmp_path / "first.og")
    for forest in (load(tmp_path / "first.og"), pickle.loads(pickle.dumps(first))):
        forest.set_params(n_estimators=24).fit(X, Y)
        the_same(forest, whole)
        forest.save(tmp_path / "all.og")
        assert load(tmp_path / "all.og").forest_.digest() == whole.forest_.digest()


def test_auto_trees_per_top_stays() -> None:
    auto = grown(FORESTS[0], [12, 48], lambda f: f.fit(X, Y), bucket_size=150)
    whole = made(FORESTS[0], 48, bucket_size=150, trees_per_top=1).fit(X, Y)
    the_same(auto, whole)


def test_other_rows_and_merged_forests_only_add_trees() -> None:
    merged = merge(
        [made(FORESTS[0], 6, **BUCKETS).fit(X, Y), made(FORESTS[0], 6).set_params(random_state=1).fit(X, Y)]
    )
    before = merged.predict_proba(X)
    merged.set_params(warm_start=True, n_estimators=24, random_state=2).fit(X[::2], Y[::2])
    others = made(FORESTS[0], 24, **BUCKETS).set_params(random_state=2).fit(X[::2], Y[::2])
    assert len(merged) == 24 and merged.forest_.trees_of_top.tolist()[:3] == [4, 2, 6]
    rest = 2 * merged.predict_proba(X) - before
    assert (rest.argmax(axis=1) == others.predict_proba(X).argmax(axis=1)).mean() > 0.9
    np.testing.assert_allclose(rest.sum(axis=1), 1)


def test_what_scikit_learn_says() -> None:
    forest = made(FORESTS[0], 6, warm_start=True).fit(X, Y)
    digest = forest.forest_.digest()
    with pytest.warns(NoMoreTreesWarning, match="as many as n_estimators"):
        assert forest.fit(X, Y) is forest
    with pytest.raises(ParameterError, match="n_estimators must be at least 6 with warm_start=True"):
        forest.set_params(n_estimators=5).fit(X, Y)
    assert forest.forest_.digest() == digest
    forest.set_params(warm_start=False).fit(X, Y)
    assert len(forest) == 5


@pytest.mark.parametrize(
    ("x", "y", "what"),
    [
        (X[:, :5], Y, "the forest has 6 features, X has 5"),
        (X, np.where(Y == 3, 0, Y), "it has 4 classes, and y has 3; 3 is a class of the forest alone"),
        (X, Y + 1, "4 is a class of y alone|0 is a class of the forest alone"),
        (pd.DataFrame(X).rename(columns=str), Y, "X has names of features, and the forest has none"),
    ],
)
def test_other_columns_and_classes_are_refused(x: Any, y: np.ndarray, what: str) -> None:
    forest = made(FORESTS[0], 6, warm_start=True).fit(X, Y)
    digest = forest.forest_.digest()
    with pytest.raises(WarmStartError, match=what):
        forest.set_params(n_estimators=8).fit(x, y)
    assert forest.forest_.digest() == digest and len(forest) == 6


def test_a_category_that_was_a_number() -> None:
    forest = made(FORESTS[0], 6, warm_start=True).fit(with_categories(), Y)
    with pytest.raises(WarmStartError, match="column 'few' is categorical in the forest and numeric in X"):
        forest.set_params(n_estimators=8).fit(with_categories().assign(few=1.0), Y)


def test_out_of_bag_votes_that_are_not_there() -> None:
    forest = made(FORESTS[0], 6, warm_start=True).fit(X, Y)
    with pytest.raises(WarmStartError, match="an out-of-bag score needs the votes of all its trees"):
        forest.set_params(n_estimators=8, oob_score=True).fit(X, Y)
    forest = made(FORESTS[0], 6, warm_start=True, oob_score=True).fit(X, Y)
    with pytest.raises(WarmStartError, match="are on other rows"):
        forest.set_params(n_estimators=8).fit(X[::-1], Y)
    assert len(forest) == 6
    forest.set_params(oob_score=False).fit(X, Y)
    assert len(forest) == 8 and not hasattr(forest, "oob_score_")


def test_an_interrupted_fit_goes_on(tmp_path: Path) -> None:
    given = {**BUCKETS, "oob_score": True, "checkpoint_dir": tmp_path / "fit"}
    whole = made(FORESTS[0], 24, **{**given, "checkpoint_dir": None}).fit(X, Y)
    forest = made(FORESTS[0], 10, warm_start=True, **given).fit(X, Y)

    def stop(progress: Any) -> None:
        if progress.stage == "grow" and progress.rows > 3000:
            raise KeyError("enough")

    with pytest.raises(KeyError):
        forest.set_params(n_estimators=24).fit(X, Y, callback=stop)
    assert len(forest.forest_.trees_of_top) == 3 and (tmp_path / "fit").exists()
    forest.fit(X, Y)
    the_same(forest, whole)
    assert forest.oob_score_ == whole.oob_score_
