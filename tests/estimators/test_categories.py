"""Forests on tables with text: the same forest from every source, and predictions by value."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

import oldgrowth
from oldgrowth import (
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    SubsetForestClassifier,
    open_dataset,
)
from oldgrowth.errors import (
    ChangedSourceError,
    CheckpointError,
    DataError,
    LevelKindError,
    NotNumbersError,
)

N = 1500
CITIES = ["rome", "oslo", "bonn", "riga", "bern", "kyiv", "lima"]
SIZES = {"n_estimators": 6, "bucket_size": 300, "random_state": 0}


def table(seed: int = 0) -> pd.DataFrame:
    """A target that needs sets of levels: each half of the cities is scattered over any order."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(size=N).astype(np.float32), "city": rng.choice(CITIES, N)})
    frame["zone"] = rng.integers(0, 9, N)
    frame["y"] = (frame["city"].isin(CITIES[::2]) ^ (frame["a"] > 0)).astype(int)
    frame.loc[rng.random(N) < 0.1, "city"] = None
    return frame


FRAME = table()
X, Y = FRAME.drop(columns="y"), FRAME["y"].to_numpy()


def fitted(x=X, y=Y, kind=RandomForestClassifier, **params):
    return kind(**(SIZES | params)).fit(x, y)


def digest(model):
    return model.forest_.digest()


def test_one_forest_from_frames_files_and_arrays(tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    FRAME.to_parquet(tmp_path / "t.parquet", row_group_size=200)
    wanted = digest(fitted())
    assert digest(fitted(X.astype({"city": "category"}))) == wanted
    assert digest(fitted(pl.from_pandas(X))) == wanted
    assert digest(fitted(X.to_numpy(dtype=object))) == wanted
    for path in ("t.csv", "t.parquet"):
        for params in ({}, {"store": "disk"}, {"chunk_size": 101, "n_jobs": 1}):
            assert digest(fitted(open_dataset(tmp_path / path, target="y"), None, **params)) == wanted


def test_renamed_and_recoded_levels_are_the_same_forest():
    names = dict(zip(CITIES, ["z", "", "ü", "a b", "1", "B", "b"], strict=True))
    renamed = X.assign(city=X["city"].map(names))
    one, other = fitted(), fitted(renamed)
    assert digest(one) == digest(other)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(renamed))
    numbers = X.assign(city=X["city"].map({city: 10.0 * i for i, city in enumerate(CITIES)}))
    coded = fitted(numbers, categorical_features=["city"])
    assert digest(coded) == digest(one)
    np.testing.assert_array_equal(one.predict_proba(X), coded.predict_proba(numbers))


@pytest.mark.parametrize("given", [["city", "zone"], [1, 2], [False, True, True], np.array([1, -1])])
def test_the_ways_to_name_categories(given):
    model = fitted(categorical_features=given)
    assert {name: sorted(levels) for name, levels in model.levels_.items()} == {
        "city": sorted(CITIES),
        "zone": list(range(9)),
    }
    assert digest(model) == digest(fitted(categorical_features=["zone", "city"]))
    assert digest(model) != digest(fitted())


def test_an_array_of_numbers_with_a_category():
    x = X[["a", "zone"]].to_numpy()
    model = fitted(x, categorical_features=[1])
    assert sorted(model.levels_[1]) == list(range(9))
    data = open_dataset(x, target=Y)
    assert digest(fitted(data, None, categorical_features=[1])) == digest(model)
    np.testing.assert_array_equal(model.predict(x), model.predict(open_dataset(x)))


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "objects"])
def test_codes_by_several_threads_are_those_by_one(kind, monkeypatch):
    model = fitted(X.to_numpy(dtype=object) if kind == "objects" else X, categorical_features=[1])
    frame = table(seed=5).drop(columns="y")
    ways = {"polars": pl.from_pandas, "arrow": pa.Table.from_pandas}
    x = frame.to_numpy(dtype=object) if kind == "objects" else ways.get(kind, lambda same: same)(frame)
    wanted = model.set_params(n_jobs=1).predict_proba(x)
    monkeypatch.setattr("oldgrowth.estimators.categories._ROWS_WORTH_A_THREAD", 300)
    for n_jobs in (2, 4):
        np.testing.assert_array_equal(model.set_params(n_jobs=n_jobs).predict_proba(x), wanted)


def test_threads_name_the_first_bad_row(monkeypatch):
    monkeypatch.setattr("oldgrowth.estimators.categories._ROWS_WORTH_A_THREAD", 300)
    bad = X.copy()
    bad.loc[[700, 1400], "a"] = np.inf
    with pytest.raises(DataError, match=r"row 700\b"):
        fitted(n_jobs=4).predict(bad)


def test_unseen_levels_go_where_missing_values_go():
    model = fitted()
    missing, unseen = X.assign(city=None), X.assign(city="atlantis")
    np.testing.assert_array_equal(model.predict_proba(missing), model.predict_proba(unseen))
    np.testing.assert_array_equal(model.apply(missing), model.apply(unseen))


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor, SubsetForestClassifier])
def test_other_forests(kind, tmp_path):
    params = {"bootstrap": True, "oob_score": True, **({} if "Subset" in kind.__name__ else SIZES)}
    model = kind(**(params | {"n_estimators": 6, "random_state": 0})).fit(X, Y)
    data = open_dataset(FRAME, target="y")
    streamed = kind(**(params | {"n_estimators": 6, "random_state": 0})).fit(data)
    assert digest(model) == digest(streamed) and model.oob_score_ == pytest.approx(streamed.oob_score_)
    assert model.score(X, Y) == pytest.approx(model.score(data)) and model.score(X, Y) > 0.7


def test_saved_pickled_and_cloned(tmp_path):
    model = fitted(categorical_features=["city", "zone"])
    model.save(tmp_path / "m.og")
    for other in (oldgrowth.load(tmp_path / "m.og"), pickle.loads(pickle.dumps(model))):
        assert other.levels_ == model.levels_
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        with pytest.raises(LevelKindError):
            other.predict(X.assign(city=1.0))
    again = clone(oldgrowth.load(tmp_path / "m.og")).fit(X, Y)
    assert digest(again) == digest(model)


def test_rows_without_weight_have_no_levels():
    weights = np.where(X["city"] == "rome", 0.0, 1.0)
    model = RandomForestClassifier(**SIZES).fit(X, Y, weights)
    assert "rome" not in model.levels_["city"]
    data = open_dataset(FRAME.assign(w=weights), target="y", weight="w")
    assert digest(fitted(data, None)) == digest(model)


def test_numbers_take_no_stage_of_their_own(monkeypatch):
    reads = []
    data = open_dataset(FRAME[["a", "zone", "y"]], target="y")
    monkeypatch.setattr(type(data), "raw_columns", lambda *_: reads.append(1))
    model = fitted(data, None)
    assert not reads and model.levels_ == {} and model.forest_.levels == ()
    assert model.fit_report_.stages[0].name == "sample"
    text = fitted(open_dataset(FRAME, target="y").select(["a", "zone"]), None)
    assert digest(text) == digest(model)


def test_a_source_with_other_levels_in_the_next_pass():
    passes = []

    def batches():
        passes.append(1)
        x = X.to_numpy(dtype=object)
        if len(passes) > 3:  # opening reads two beginnings, levels are the third
            x[N // 2, 1] = "atlantis"
        return ((x[i : i + 500], Y[i : i + 500]) for i in range(0, N, 500))

    with pytest.raises(ChangedSourceError, match="column 1 has values that it had not"):
        fitted(open_dataset(batches), None)


def test_an_interrupted_fit_goes_on(tmp_path):
    data = open_dataset(FRAME, target="y")

    def stop(progress):
        if progress.stage == stage and progress.rows:
            raise RuntimeError("enough")

    for stage in ("levels", "sample", "grow"):
        folder = tmp_path / stage
        with pytest.raises(RuntimeError, match="enough"):
            RandomForestClassifier(**SIZES, checkpoint_dir=folder, chunk_size=100).fit(data, callback=stop)
        other = open_dataset(FRAME.assign(city=FRAME["city"].fillna("bonn")), target="y")
        with pytest.raises(CheckpointError):
            RandomForestClassifier(**SIZES, checkpoint_dir=folder).fit(other)
        resumed = RandomForestClassifier(**SIZES, checkpoint_dir=folder).fit(data)
        assert digest(resumed) == digest(fitted()) and resumed.levels_ == fitted().levels_
        RandomForestClassifier(**SIZES, checkpoint_dir=folder).fit(other)  # nothing is left of the first


def test_errors_do_not_blame_text_that_is_taken() -> None:
    frame = pd.DataFrame({"place": list("abc") * 20, "x": np.arange(60.0)})
    y = np.arange(60) % 2
    with pytest.raises(ValueError, match="X has 60 rows, but y has 50 values"):
        RandomForestClassifier(2).fit(frame, y[:50])
    forest = RandomForestClassifier(2).fit(frame, y)
    with pytest.raises(DataError, match="same order"):
        forest.predict(frame[["x", "place"]])
    mixed = frame.assign(place=[1 if i % 2 else "a" for i in range(60)])
    with pytest.raises(
        NotNumbersError, match=r"numbers, bools or text.*'place'.*Make all values of a column text"
    ):
        RandomForestClassifier(2).fit(mixed, y)
    with pytest.raises(NotNumbersError, match=r"numbers, bools or text.*'x'.*Convert them, or drop them"):
        RandomForestClassifier(2).fit(frame.assign(x=[[1]] * 60), y)
