"""Scores computed batch by batch in constant memory equal those of scikit-learn."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn import metrics
from sklearn.exceptions import UndefinedMetricWarning

import oldgrowth
from oldgrowth.datasets.labels import CodedLabels
from oldgrowth.errors import DataError
from oldgrowth.forest import scoring
from oldgrowth.forest.scoring import Accuracy, Confusion, RegressionErrors

ROWS = 150_000  # more than two blocks


def cuts(rng: np.random.Generator, n: int) -> list[slice]:
    """Batches of uneven sizes, some of them empty."""
    ends = sorted(rng.integers(0, n, 12).tolist())
    return [slice(a, b) for a, b in pairwise([0, *ends, ends[-1], n])]


def added(scores: Any, columns: tuple[npt.NDArray[Any], ...], parts: list[slice]) -> Any:
    for part in parts:
        scores.add(*(column[part] for column in columns))
    return scores


@pytest.mark.parametrize("weighted", [False, True])
def test_accuracy_is_that_of_scikit_learn(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    y, guess, w = rng.integers(0, 5, ROWS), rng.integers(0, 5, ROWS), rng.uniform(0, 3, ROWS)
    columns = (y, guess, w) if weighted else (y, guess)
    found = added(Accuracy(), columns, cuts(rng, ROWS)).score()
    theirs = metrics.accuracy_score(y, guess, sample_weight=w if weighted else None)
    assert found == pytest.approx(theirs, rel=1e-13) if weighted else found == theirs


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("offset", "close"), [(0.0, 1e-12), (1e9, 1e-9)])  # as the mean is rounded
def test_errors_are_those_of_scikit_learn(offset: float, close: float, weighted: bool) -> None:
    rng = np.random.default_rng(1)
    y = offset + rng.normal(size=ROWS)
    guess, w = y + rng.normal(0, 0.3, ROWS), rng.uniform(0, 3, ROWS)
    columns, weight = ((y, guess, w), w) if weighted else ((y, guess), None)
    found = added(RegressionErrors(), columns, cuts(rng, ROWS)).scores()
    assert found["r2"] == pytest.approx(metrics.r2_score(y, guess, sample_weight=weight), rel=close)
    rmse = metrics.root_mean_squared_error(y, guess, sample_weight=weight)
    mae = metrics.mean_absolute_error(y, guess, sample_weight=weight)
    assert (found["rmse"], found["mae"]) == pytest.approx((rmse, mae), rel=1e-12)


@pytest.mark.parametrize("kind", [Accuracy, RegressionErrors])
def test_batches_change_no_bit_of_a_score(kind: type[Any]) -> None:
    rng = np.random.default_rng(2)
    y, w = rng.integers(0, 3, ROWS).astype(np.float64), rng.uniform(0, 1, ROWS)
    guess = np.where(rng.random(ROWS) < 0.7, y, rng.integers(0, 3, ROWS))
    whole = added(kind(), (y, guess, w), [slice(None)]).score()
    assert all(added(kind(), (y, guess, w), cuts(rng, ROWS)).score() == whole for _ in range(3))


def test_confusions_are_those_of_scikit_learn_for_few_classes_and_for_many() -> None:
    rng = np.random.default_rng(3)
    for k in (7, scoring.MOST_IN_MATRIX + 5):
        y, guess = rng.integers(0, k, 20_000), rng.integers(0, k, 20_000)
        guess = np.where(rng.random(20_000) < 0.5, y, guess)
        confusion = added(Confusion(np.arange(k)), (y, guess), cuts(rng, 20_000))
        found = confusion.scores()
        assert found["accuracy"] == metrics.accuracy_score(y, guess)
        assert found["balanced_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(y, guess))
        theirs = metrics.precision_recall_fscore_support(y, guess, labels=np.arange(k), zero_division=np.nan)
        for name, values in zip(("precision", "recall", None, "support"), theirs, strict=True):
            if name is not None:
                assert [line[name] for line in found["classes"]] == pytest.approx(list(values), nan_ok=True)
        if confusion.matrix is not None:
            assert np.array_equal(confusion.matrix, metrics.confusion_matrix(y, guess))


def test_scores_that_are_not_defined() -> None:
    errors = RegressionErrors()
    errors.add(np.full(3, 2.0), np.full(3, 2.0))
    assert errors.score() == metrics.r2_score([2.0] * 3, [2.0] * 3) == 1
    errors.add(np.full(1, 2.0), np.full(1, 3.0))
    assert errors.score() == metrics.r2_score([2.0] * 4, [2.0] * 3 + [3.0]) == 0
    accuracy = Accuracy()
    accuracy.add(np.zeros(2), np.zeros(2), np.zeros(2))
    with pytest.raises(DataError, match="no row to score: all weights are zero"):
        accuracy.score()
    x = np.arange(20.0)[:, None]
    model = oldgrowth.RandomForestRegressor(2).fit(x, x[:, 0])
    for data in ((x[:1], [1.0]), (oldgrowth.open_dataset(x[:1], target=np.ones(1)),)):
        with pytest.warns(UndefinedMetricWarning, match="fewer than two rows"):
            assert np.isnan(model.score(*data))


def test_text_in_a_dictionary_is_scored_as_text() -> None:
    confusion = Confusion(np.array(["a", "b"]))
    labels = CodedLabels(np.array([0, 1, 1, 2], dtype=np.int32), np.array(["b", "a", "c"], dtype=object))
    confusion.add(labels, np.array([1, 0, 1, 1]))
    assert confusion.unknown == {"c": 1} and confusion.scores()["accuracy"] == 0.5
    with pytest.raises(DataError, match=r"have text as their target, such as 'c', but .* trained on numbers"):
        scoring.check_kind(labels)


@pytest.mark.parametrize("kind", [oldgrowth.RandomForestRegressor, oldgrowth.RandomForestClassifier])
def test_score_of_a_dataset_keeps_no_rows(kind: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The peak of the memory that scoring takes does not grow with the rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4096, 2)).astype(np.float32)
    y = np.floor(np.abs(x[:, 0])) % 3
    model = kind(2, max_depth=3, n_jobs=1, random_state=0).fit(x, y)
    monkeypatch.setattr("oldgrowth.forest.batch_predict._USUAL_ROWS", len(x))

    def peak(n_batches: int) -> int:
        def batches() -> Iterator[tuple[Any, Any]]:
            return ((x, y) for _ in range(n_batches))

        dataset = oldgrowth.open_dataset(batches)
        tracemalloc.start()
        score = model.score(dataset)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert score == pytest.approx(model.score(x, y))
        return most

    peak(2)  # what is imported and kept at first use
    few, many = peak(20), peak(220)  # 800,000 rows more: 6.6 MB for each number that would be kept of them
    assert many < few + 2**20
