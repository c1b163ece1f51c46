"""Pictures of a forest show its contents."""

from __future__ import annotations

import doctest
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import oldgrowth
import oldgrowth.reporting.report
from helpers import make_data
from oldgrowth import RandomForestClassifier, RandomForestRegressor, SubsetForestClassifier, _core, plot
from oldgrowth.errors import DataError, MissingExtraError, NoBucketRowsError, ParameterError

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.collections import LineCollection, PathCollection

NAMES = ["sun", "rain", "wind", "snow", "fog"]


@pytest.fixture(autouse=True)
def _no_figure_is_left() -> Iterator[None]:
    yield
    pyplot.close("all")


def rows_of(n: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    x, y = make_data(n, 5, 3, seed=3)
    return x, np.array(["ash", "beech", "cedar"])[y]


def fitted(bucket_size: int = 120, top_sample: int = 1000, **params: Any) -> RandomForestClassifier:
    x, y = rows_of()
    sizes = {"trees_per_top": 4, "bucket_size": bucket_size, "top_sample": top_sample}
    model = RandomForestClassifier(8, random_state=0, n_jobs=1, **sizes, **params)
    return model.fit(pd.DataFrame(x, columns=NAMES), y)


@pytest.fixture(scope="module")
def model() -> RandomForestClassifier:
    return fitted()


def circles(ax: Any) -> tuple[np.ndarray, np.ndarray]:
    """The places and areas of all circles, from left to right."""
    drawn = [group for group in ax.collections if isinstance(group, PathCollection)]
    places = np.concatenate([group.get_offsets() for group in drawn])
    areas = np.concatenate([group.get_sizes() for group in drawn])
    order = np.argsort(places[:, 0])
    return np.asarray(places)[order], areas[order]


def buckets_of(model: RandomForestClassifier, top: int) -> np.ndarray:
    """The bucket of each training row, found by the core."""
    nodes = model.forest_.top_nodes[slice(*map(int, model.forest_.top_start[top : top + 2]))]
    return np.asarray(_core.route(nodes, rows_of()[0].astype(np.float32), np.empty(0, dtype=np.uint16), ()))


@pytest.mark.parametrize("balance", [0, 1])
@pytest.mark.parametrize("top", [0, 1])
def test_a_circle_is_as_large_as_its_bucket(balance: int, top: int) -> None:
    model = fitted(balance=balance)
    rows = np.bincount(buckets_of(model, top))
    places, areas = circles(plot.top_tree(model, top))
    assert len(rows) > 10 and len(places) == len(rows)
    np.testing.assert_allclose(areas / areas.sum(), rows / rows.sum())
    np.testing.assert_allclose(places[:, 0], np.arange(len(rows)))


def test_branches_are_those_of_the_tree(model: RandomForestClassifier) -> None:
    ax = plot.top_tree(model)
    places, _ = circles(ax)
    (branches,) = (drawn for drawn in ax.collections if isinstance(drawn, LineCollection))
    lines = np.array(branches.get_segments())
    assert len(lines) == 2 * (len(places) - 1)
    np.testing.assert_array_equal(lines[:, 1, 1], lines[:, 0, 1] + 1)
    parents, children = ({tuple(end) for end in lines[:, i]} for i in (0, 1))
    assert len(parents) == len(places) - 1
    assert children - parents == {tuple(place) for place in places}, "leaves are at the ends of branches"
    assert len(parents - children) == 1, "one root"
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the root is above"


def test_buckets_above_the_wanted_size_have_their_colour() -> None:
    model = fitted(max_depth=5)  # which leaves some that are not split any more
    rows = np.array(model.fit_report_.rows_by_bucket[0])
    above = int((rows > 120).sum())
    assert 0 < above < len(rows)
    ax = plot.top_tree(model)
    groups = [group for group in ax.collections if isinstance(group, PathCollection)]
    assert [len(group.get_offsets()) for group in groups] == [len(rows) - above, above]
    assert tuple(groups[0].get_facecolor()[0]) != tuple(groups[1].get_facecolor()[0])
    assert ax.get_legend().get_texts()[-1].get_text() == "above bucket_size, 120 rows"


def test_the_key_has_circles_of_the_same_scale(model: RandomForestClassifier) -> None:
    ax = plot.top_tree(model)
    by_row = circles(ax)[1].sum() / 1500
    for circle, text in zip(ax.get_legend().legend_handles, ax.get_legend().get_texts(), strict=True):
        np.testing.assert_allclose(circle.get_markersize() ** 2 / by_row, int(text.get_text().split()[0]))


def test_a_small_top_tree_says_what_it_asks() -> None:
    model = fitted(bucket_size=900, balance=1)
    rows = model.fit_report_.rows_by_bucket[0]
    assert len(rows) == 2
    said = [text.get_text() for text in plot.top_tree(model).texts]
    assert said[:2] == [f"{n:,}" for n in rows]
    feature, threshold = said[2].split(" ≤ ")
    column = rows_of()[0][:, NAMES.index(feature)].astype(np.float32)
    left = buckets_of(model, 0) == 0
    seen = ~np.isnan(column)
    rounding = 1e-3 * abs(float(threshold))
    assert column[left & seen].max() - rounding <= float(threshold) <= column[~left & seen].min() + rounding


def test_a_forest_without_top_trees_is_one_circle() -> None:
    ax = plot.top_tree(fitted(bucket_size=5000))
    assert len(circles(ax)[1]) == 1 and ax.get_title("left") == "No top tree: one bucket of 1,500 rows"
    x, y = rows_of()
    subsets = SubsetForestClassifier(3, subset_size=100, random_state=0).fit(x, y)
    assert "one bucket of 100 rows" in plot.top_tree(subsets, 2).get_title("left")


def test_the_histogram_holds_every_bucket(model: RandomForestClassifier) -> None:
    ax = plot.bucket_sizes(model)
    rows = np.concatenate(model.fit_report_.rows_by_bucket)
    assert sum(bar.get_height() for bar in ax.patches) == len(rows) == model.fit_report_.buckets
    for bar in ax.patches[:-1]:
        inside = (rows >= bar.get_x() - 1e-9) & (rows < bar.get_x() + bar.get_width() - 1e-9)
        assert bar.get_height() == inside.sum()
    (line,) = ax.lines
    assert line.get_xdata()[0] == 120 and line.get_label() == "bucket_size 120"
    assert not plot.bucket_sizes(fitted(bucket_size=5000)).lines, "no bucket was wanted to be smaller"


def test_importances_have_names_and_order(model: RandomForestClassifier) -> None:
    ax = plot.importances(model, n=3)
    best = np.argsort(-model.feature_importances_)[:3]
    assert [label.get_text() for label in ax.get_yticklabels()] == [NAMES[i] for i in best]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], model.feature_importances_[best])
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the first is above"
    x, y = rows_of()
    nameless = RandomForestClassifier(2, random_state=0).fit(x, y)
    labels = {label.get_text() for label in plot.importances(nameless).get_yticklabels()}
    assert labels == {f"column {i}" for i in range(5)}
    with pytest.raises(ParameterError, match="n must be 1 or more; got 0"):
        plot.importances(model, n=0)


@pytest.mark.parametrize("normalize", [True, False])
def test_confusions_are_those_of_scikit_learn(model: RandomForestClassifier, normalize: bool) -> None:
    x, y = make_data(400, 5, 3, seed=9)
    frame, labels = pd.DataFrame(x, columns=NAMES), np.array(["ash", "beech", "cedar"])[y]
    ax = plot.confusion(model, frame, labels, normalize=normalize)
    wanted = confusion_matrix(labels, model.predict(frame), normalize="true" if normalize else None)
    np.testing.assert_allclose(ax.images[0].get_array(), wanted)
    shown = [f"{value:.1%}" if normalize else f"{value:,}" for value in wanted.ravel()]
    assert [text.get_text() for text in ax.texts] == shown
    assert [label.get_text() for label in ax.get_yticklabels()] == ["ash", "beech", "cedar"]
    assert ax.get_title("left") == f"400 rows, {model.score(frame, labels):.1%} right"


def test_confusions_of_a_dataset(model: RandomForestClassifier, tmp_path: Path) -> None:
    x, y = rows_of(300)
    frame = pd.DataFrame(x, columns=NAMES)
    frame.assign(tree=y).to_parquet(tmp_path / "rows.parquet", index=False)
    data = oldgrowth.open_dataset(tmp_path / "rows.parquet", target="tree")
    streamed, held = plot.confusion(model, data), plot.confusion(model, frame, y)
    np.testing.assert_array_equal(streamed.images[0].get_array(), held.images[0].get_array())
    with pytest.raises(DataError, match="y must not be given"):
        plot.confusion(model, data, y)


def test_labels_that_the_forest_does_not_know(model: RandomForestClassifier) -> None:
    x, y = rows_of(100)
    frame, labels = pd.DataFrame(x, columns=NAMES), y.copy()
    labels[:7] = "yew"
    ax = plot.confusion(model, frame, labels, normalize=False)
    assert ax.images[0].get_array().sum() == 93
    assert "7 rows with unknown labels left out" in ax.get_xlabel()


def test_what_cannot_be_confused(model: RandomForestClassifier) -> None:
    x, y = rows_of(50)
    frame = pd.DataFrame(x, columns=NAMES)
    with pytest.raises(DataError, match="RandomForestRegressor predicts numbers"):
        plot.confusion(RandomForestRegressor(2).fit(x, np.arange(50)), x, y)
    with pytest.raises(DataError, match="y is missing"):
        plot.confusion(model, frame)
    with pytest.raises(ValueError, match="50 rows, but y has 49 values"):
        plot.confusion(model, frame, y[:-1])


def test_a_loaded_forest_looks_the_same(model: RandomForestClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "forest.og")
    loaded = oldgrowth.load(tmp_path / "forest.og")
    for draw in (plot.top_tree, plot.bucket_sizes, plot.importances):
        assert draw(loaded).get_title("left") == draw(model).get_title("left")
    np.testing.assert_array_equal(circles(plot.top_tree(loaded))[1], circles(plot.top_tree(model))[1])


def test_axes_that_are_given_are_drawn_on(model: RandomForestClassifier) -> None:
    x, y = rows_of(50)
    _, axes = pyplot.subplots(2, 2)
    assert plot.top_tree(model, ax=axes[0, 0]) is axes[0, 0]
    assert plot.bucket_sizes(model, ax=axes[0, 1]) is axes[0, 1]
    assert plot.importances(model, ax=axes[1, 0]) is axes[1, 0]
    assert plot.confusion(model, pd.DataFrame(x, columns=NAMES), y, ax=axes[1, 1]) is axes[1, 1]
    assert len(pyplot.get_fignums()) == 1 and all(ax.has_data() for ax in axes.flat)


def test_rows_of_very_many_buckets_are_not_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(oldgrowth.reporting.report, "KEPT_BUCKETS", 10)
    monkeypatch.setattr(plot.trees, "KEPT_BUCKETS", 10)
    model = fitted()
    assert model.fit_report_.rows_by_bucket == [] and model.fit_report_.bucket_rows["100%"] > 100
    for draw in (plot.top_tree, plot.bucket_sizes):
        with pytest.raises(NoBucketRowsError, match=r"at most 10 buckets, and it has \d\d"):
            draw(model)
    model.save(tmp_path / "forest.og")
    assert oldgrowth.load(tmp_path / "forest.og").fit_report_ == model.fit_report_


def test_a_forest_of_an_older_version_says_so() -> None:
    model = fitted()
    model.fit_report_.rows_by_bucket = []
    with pytest.raises(NoBucketRowsError, match="saved by an older version"):
        plot.bucket_sizes(model)


@pytest.mark.parametrize("top", [-1, 2])
def test_a_top_tree_that_is_not_there(model: RandomForestClassifier, top: int) -> None:
    with pytest.raises(ParameterError, match="from 0 to 1"):
        plot.top_tree(model, top)


def test_without_a_fit_or_without_matplotlib(
    model: RandomForestClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    for draw in (plot.top_tree, plot.bucket_sizes, plot.importances):
        with pytest.raises(NotFittedError):
            draw(RandomForestClassifier())
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (plot.top_tree, plot.bucket_sizes, plot.importances):
        with pytest.raises(MissingExtraError, match=r"pip install 'matplotlib>=3\.8'"):
            draw(model)


def test_the_example_runs() -> None:
    assert doctest.testmod(plot.trees) == doctest.TestResults(failed=0, attempted=5)


def test_a_pipeline_or_a_search_is_drawn_as_the_forest_in_it() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    forest = RandomForestClassifier(4, random_state=0)
    steps = [("scaled", StandardScaler()), ("forest", forest)]
    pipeline = Pipeline(steps).fit(X, y)
    search = GridSearchCV(Pipeline(steps), {"forest__max_depth": [2, 3]}, cv=2).fit(X, y)
    for model in (pipeline, search, GridSearchCV(clone(forest), {"max_depth": [2]}, cv=2).fit(X, y)):
        right = plot.confusion(model, X, y).get_title("left")
        assert right == f"150 rows, {(model.predict(X) == y).mean():.1%} right"
        assert "column" not in plot.importances(model).get_yticklabels()[0].get_text()
        assert "bucket of 150 rows" in plot.top_tree(model).get_title("left")
        assert "bucket of 150 rows" in plot.bucket_sizes(model).get_title("left")
        pyplot.close("all")
    with pytest.raises(DataError, match="Pipeline does not predict datasets"):
        plot.confusion(pipeline, oldgrowth.open_dataset(X.assign(y=y), target="y"))


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (
            Pipeline([("forest", RandomForestClassifier())]),
            NotFittedError,
            "RandomForestClassifier .*not fitted",
        ),
        (GridSearchCV(RandomForestClassifier(), {}), NotFittedError, "GridSearchCV .*not fitted"),
        (RandomForestClassifier(), NotFittedError, "not fitted"),
        (StandardScaler(), DataError, "A StandardScaler cannot be drawn: give a forest of oldgrowth"),
        (Pipeline([("s", StandardScaler())]), DataError, "A Pipeline that ends in a StandardScaler cannot"),
    ],
)
def test_models_without_a_fitted_forest_are_refused(model: Any, error: type[Exception], words: str) -> None:
    X, y = load_iris(return_X_y=True)
    for draw in (plot.importances, plot.top_tree, plot.bucket_sizes, lambda m: plot.confusion(m, X, y)):
        with pytest.raises(error, match=words):
            draw(model)


@pytest.mark.parametrize("n_levels", [5, 60])
def test_splits_name_levels(n_levels: int) -> None:
    rng = np.random.default_rng(0)
    city = np.array([f"city {i}" for i in range(n_levels)])[rng.integers(0, n_levels, 900)]
    y = np.array([int(name[5:]) % 2 for name in city])
    frame = pd.DataFrame({"city": city, "x": rng.normal(size=900)})
    model = RandomForestClassifier(8, bucket_size=400, max_features=None, random_state=0).fit(frame, y)
    texts = [text.get_text() for text in plot.top_tree(model).texts]
    splits = [text for text in texts if text.startswith("city is")]
    assert splits and all("city " in text.removeprefix("city") for text in splits)
    assert n_levels < 10 or any(" more" in text for text in splits)
