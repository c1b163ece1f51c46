"""No argument of an estimator is ignored: parameters, their names, targets to score."""

import inspect
import pickle
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import oldgrowth
from helpers import make_data
from oldgrowth import OldgrowthError, RandomForestClassifier, RandomForestRegressor, open_dataset, plot
from oldgrowth.errors import DataError, ParameterError, UnknownParameterError

ALL = [
    getattr(oldgrowth, f"{kind}{task}")
    for kind in ("RandomForest", "ExtraTrees", "SubsetForest")
    for task in ("Classifier", "Regressor")
]
X, LABELS = make_data(200, 3, 3, seed=0)
VALUES = make_data(200, 3, 0, seed=0)[1]


def fitted(kind: Any = RandomForestClassifier) -> Any:
    return kind(3, random_state=0).fit(X, LABELS if "Classifier" in kind.__name__ else VALUES)


def as_dataset(y: Any) -> Any:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    return open_dataset(frame.assign(target=y), target="target")


BAD = [
    ("voting", "banana"), ("voting", None), ("voting", "HARD"), ("n_jobs", "all"), ("n_jobs", 0),
    ("n_jobs", 1.5), ("n_jobs", True), ("memory_limit", "banana"), ("memory_limit", [1]),
    ("memory_limit", -1), ("memory_limit", None), ("memory_limit", 1.5),
]  # fmt: skip
USES: list[Any] = [
    lambda model, rows: model.predict(rows),
    lambda model, rows: model.predict_proba(rows),
    lambda model, rows: model.predict_log_proba(rows),
    lambda model, rows: model.score(rows, None if rows is not X else LABELS),
    lambda model, rows: plot.confusion(model, rows, None if rows is not X else LABELS),
]


@pytest.mark.parametrize(("name", "value"), BAD)
@pytest.mark.parametrize("source", ["array", "row", "dataset"])
def test_bad_parameters_are_refused_when_they_are_used(name: str, value: Any, source: str) -> None:
    model = fitted().set_params(**{name: value})
    rows = {"array": X, "row": X[:1], "dataset": as_dataset(LABELS)}[source]
    for use in USES if source != "row" else USES[:3]:
        with pytest.raises(ParameterError, match=f"^{name} must be"):
            use(model, rows)
    if name != "voting":
        with pytest.raises(ParameterError, match=f"^{name} must be"):
            model.apply(rows)
    plt.close("all")


@pytest.mark.parametrize(("name", "value"), [b for b in BAD if b[0] != "voting"])
def test_bad_parameters_are_refused_by_regressors(name: str, value: Any) -> None:
    model = fitted(RandomForestRegressor).set_params(**{name: value})
    for rows, y in ((X, VALUES), (as_dataset(VALUES), None)):
        for use in (model.predict, model.apply, lambda rows, y=y: model.score(rows, y)):
            with pytest.raises(ParameterError, match=f"^{name} must be"):
                use(rows)


@pytest.mark.parametrize("export", ["to_sklearn", "to_onnx", "to_treelite"])
def test_exports_check_the_voting(export: str) -> None:
    pytest.importorskip(export[3:])
    with pytest.raises(ParameterError, match="voting must be one of 'soft', 'hard'; got 'banana'"):
        getattr(fitted().set_params(voting="banana"), export)()


def test_what_prediction_does_not_read_may_be_anything() -> None:
    """A forest predicts on any machine: directories used in training need not exist."""
    model = fitted().set_params(spill_dir="/nowhere", bucket_size=-1)
    assert model.predict(X[:1]).shape == (1,)


@pytest.mark.parametrize("kind", ALL)
def test_a_dataset_is_scored_by_its_own_target_and_weights(kind: Any) -> None:
    y = LABELS if "Classifier" in kind.__name__ else VALUES
    model, data = fitted(kind), as_dataset(y)
    assert model.score(data) == pytest.approx(model.score(X, y))
    for given in ({"y": y}, {"sample_weight": np.ones(200)}, {"y": y, "sample_weight": np.ones(200)}):
        with pytest.raises(DataError, match=f"{next(iter(given))} must not be given with a dataset"):
            model.score(data, **given)
    with pytest.raises(DataError, match="y is missing"):
        model.score(X)


NUMBERS, TEXT = np.array([0, 1, 2]), np.array(["fir", "oak", "yew"])
OTHER_KINDS = [
    (NUMBERS, TEXT), (NUMBERS, NUMBERS.astype(str)), (NUMBERS, NUMBERS.astype(str).astype(object)),
    (TEXT, NUMBERS), (TEXT, NUMBERS.astype(float)), (TEXT.astype(object), NUMBERS),
    (NUMBERS > 0, (NUMBERS > 0).astype(str)), (NUMBERS, np.array([0, "1", 2], dtype=object)),
    (NUMBERS, np.array([0, 1, None])), (TEXT, TEXT.astype("S")),
]  # fmt: skip


@pytest.mark.parametrize(("trained", "scored"), OTHER_KINDS)
def test_labels_of_another_kind_are_not_scored(trained: Any, scored: Any) -> None:
    model = RandomForestClassifier(3, random_state=0).fit(X, trained[LABELS])
    y = scored[LABELS]
    words = (
        r"rows to score have .*, such as|text and other types, such as|different kinds|row 2 of y is missing"
    )
    for judge in (model.score, lambda x, y: plot.confusion(model, x, y)):
        for labels in (y, y.tolist(), pd.Series(y)):
            with pytest.raises(DataError, match=words):
                judge(X, labels)


@pytest.mark.parametrize(("trained", "scored"), OTHER_KINDS[:7])
def test_labels_of_another_kind_in_a_dataset_are_not_scored(trained: Any, scored: Any) -> None:
    model = RandomForestClassifier(3, random_state=0).fit(as_dataset(trained[LABELS]))
    data = as_dataset(scored[LABELS])
    for judge in (model.score, lambda data: plot.confusion(model, data)):
        with pytest.raises(DataError, match="convert one into the other"):
            judge(data)


@pytest.mark.parametrize("other", [np.uint8, np.int64, np.float32])
def test_numbers_of_any_type_are_the_same_labels(other: Any) -> None:
    model = fitted()
    assert model.score(X, LABELS.astype(other)) == model.score(X, LABELS)
    words = RandomForestClassifier(3, random_state=0).fit(X, TEXT[LABELS])
    assert words.score(X, TEXT.astype(object)[LABELS]) == words.score(X, TEXT[LABELS].tolist()) > 0.5
    flags = RandomForestClassifier(3, random_state=0).fit(X, LABELS > 0)
    assert flags.score(X, (LABELS > 0).astype(int)) == flags.score(X, LABELS > 0) > 0.5


def test_a_regression_is_not_scored_on_text() -> None:
    model = fitted(RandomForestRegressor)
    for y in (VALUES.astype(str), VALUES.astype(str).astype(object)):
        with pytest.raises(DataError, match=r"have text as their target.*trained on numbers: convert"):
            model.score(X, y)
        with pytest.raises(DataError, match="have text as their target"):
            model.score(as_dataset(y))


@pytest.mark.parametrize("kind", ALL)
def test_what_scikit_learn_has_more_is_named_with_a_way(kind: Any) -> None:
    for name in ("splitter", "estimator", "min_impurity_split"):
        for refused in (
            lambda name=name: kind(**{name: None}),
            lambda name=name: kind().set_params(**{name: 1}),
        ):
            with pytest.raises(
                UnknownParameterError, match=f"{kind.__name__} has no parameter {name}: "
            ) as e:
                refused()
            assert isinstance(e.value, TypeError) and isinstance(e.value, OldgrowthError)
            assert "its parameters are" not in str(e.value)  # there is something better to say


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("RandomForestClassifier", "bootstap", "did you mean bootstrap?"),
        ("RandomForestClassifier", "N_Estimators", "did you mean n_estimators?"),
        ("RandomForestClassifier", "seed", "did you mean random_state?"),
        ("RandomForestClassifier", "num_trees", "did you mean n_estimators?"),
        ("RandomForestClassifier", "memory", "did you mean memory_limit?"),
        ("RandomForestClassifier", "callback", "fit(X, y, callback=...)"),
        ("RandomForestClassifier", "subset_size", "SubsetForestClassifier, SubsetForestRegressor"),
        ("RandomForestRegressor", "voting", "it is a parameter of RandomForestClassifier"),
        ("RandomForestRegressor", "class_weight", "sample_weight"),
        ("SubsetForestRegressor", "bucket_size", "it is a parameter of RandomForestClassifier"),
        ("RandomForestRegressor", "zebra", "its parameters are n_estimators, criterion"),
    ],
)
def test_the_nearest_way_is_named(kind: str, name: str, words: str) -> None:
    with pytest.raises(UnknownParameterError) as caught:
        getattr(oldgrowth, kind)(**{name: 1})
    assert words in str(caught.value)


def test_a_search_over_an_unknown_parameter_says_so() -> None:
    search = GridSearchCV(RandomForestClassifier(2), {"max_leafs": [3, 4]}, cv=2, error_score="raise")
    with pytest.raises(UnknownParameterError, match="max_leafs"):
        search.fit(X, LABELS)


@pytest.mark.parametrize("kind", ALL)
def test_signatures_stay_written_out(kind: Any) -> None:
    signature = inspect.signature(kind)
    assert list(signature.parameters)[:2] == ["n_estimators", "criterion"]
    assert sorted(signature.parameters) == sorted(kind().get_params()) == kind._get_param_names()
    model = kind(7, max_depth=3)
    assert clone(model).get_params() == pickle.loads(pickle.dumps(model)).get_params() == model.get_params()


def test_a_subclass_raises_the_same_error() -> None:
    class Mine(RandomForestClassifier):
        def __init__(self, colour: str = "green", n_estimators: int = 5) -> None:
            super().__init__(n_estimators)
            self.colour = colour

    model = Mine().set_params(colour="red")
    assert (model.colour, model.n_estimators) == ("red", 5)
    with pytest.raises(UnknownParameterError, match=r"Mine has no parameter color: did you mean colour\?"):
        model.set_params(color="red")
