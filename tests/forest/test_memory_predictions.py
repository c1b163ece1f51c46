"""Predictions respect the memory limit, or are refused with a sufficient one, for any batch size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.base

import oldgrowth
from oldgrowth.errors import DataError, MemoryLimitError
from oldgrowth.forest import batch_predict
from oldgrowth.forest.batch_predict import Needs, plan_batches
from oldgrowth.forest.scoring import MOST_IN_MATRIX, Confusion
from oldgrowth.system.memory import resident_memory
from torture.memory_predictions import MANY, SOME, Case, Workshop, judge

CASES = [
    Case(SOME, "predict", 300_000, 400),
    Case(SOME, "cli proba .parquet", 100_000, 400),
    Case(SOME, "cli evaluate", 300_000, 400, jobs=16),
    pytest.param(Case(MANY, "predict", 30_000, 260), marks=pytest.mark.slow),  # refused
]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("predictions"))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.call} {case.model.classes} classes")
def test_the_limit_holds(case: Case, workshop: Workshop) -> None:
    wrong, told = judge(case, workshop)
    assert not wrong, told


@pytest.fixture(scope="module")
def fitted() -> tuple[Any, Any, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 50, (3000, 4)).astype(np.float32)
    y = rng.integers(0, 9, 3000)
    classifier = oldgrowth.RandomForestClassifier(4, max_depth=6, bucket_size=500, random_state=0).fit(x, y)
    return classifier, oldgrowth.RandomForestRegressor(4, random_state=0).fit(x, x[:, 0] + y), x


@pytest.mark.parametrize("rows", [1, 7, 2999, 3000])
def test_batches_change_nothing(rows: int, fitted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    classifier, regressor, x = fitted
    calls = [classifier.predict, classifier.predict_proba, classifier.apply, regressor.predict]
    whole = [call(x) for call in calls]
    monkeypatch.setattr(batch_predict, "_ALWAYS_FITS", 0)
    monkeypatch.setattr(batch_predict, "_USUAL_ROWS", rows)
    x = x[:300] if rows == 1 else x
    data = oldgrowth.open_dataset(lambda: iter([(x, None)]))
    for call, expected in zip(calls, whole, strict=True):
        np.testing.assert_array_equal(call(x), expected[: len(x)])
        np.testing.assert_array_equal(call(data), expected[: len(x)])


def test_results_of_an_array_that_do_not_fit_are_refused(fitted: Any) -> None:
    classifier = sklearn.base.clone(fitted[0]).fit(fitted[2], np.arange(3000) % 900)
    classifier.set_params(memory_limit=resident_memory() + 300 * 10**6)
    assert classifier.predict_proba(fitted[2][:10]).shape == (10, 900)
    with pytest.raises(MemoryLimitError):
        classifier.predict_proba(np.zeros((200_000, 4), dtype=np.uint8))


@pytest.mark.parametrize("held_batch", [0, 10**4, 10**6])
def test_the_least_limit_is_enough_and_no_less_is(held_batch: int, fitted: Any) -> None:
    forest, needs = fitted[0].forest_, Needs(800, 2000, 10**7, held_batch, n_rows=10**6)
    with pytest.raises(MemoryLimitError) as refused:
        plan_batches(forest, 10**6, 4, needs)
    least = refused.value.least
    plan_batches(forest, least, 4, needs)
    with pytest.raises(MemoryLimitError):
        plan_batches(forest, int(0.9 * least), 4, needs)
    few, many = (plan_batches(forest, limit, 4, needs) for limit in (least, 20 * least))
    assert few.rows <= many.rows and few.n_jobs <= many.n_jobs == 4
    with pytest.raises(MemoryLimitError, match="Smaller batches need less"):
        plan_batches(forest, least, 4, needs, rows=10**7)


def test_confusions_of_many_classes_are_those_of_few() -> None:
    rng = np.random.default_rng(1)
    y, predicted = rng.integers(0, 40, (2, 20_000))
    few = Confusion(np.arange(40))
    many = Confusion(np.arange(MOST_IN_MATRIX + 1))
    for part in np.array_split(np.arange(20_000), 7):
        few.add(y[part], predicted[part])
        many.add(y[part], predicted[part])
    assert many.matrix is None and few.matrix is not None
    np.testing.assert_array_equal(few.matrix, np.bincount(y * 40 + predicted).reshape(40, 40))
    assert few.pairs.most_confused(50) == many.pairs.most_confused(50)
    first, second = few.scores(), many.scores()
    assert first["accuracy"] == second["accuracy"] == np.mean(y == predicted)
    for a, b in zip(first["classes"], second["classes"], strict=False):
        assert a == b
    label, taken_for, rows = few.pairs.most_confused(1)[0]
    assert second["confusion"]["pairs"][0] == {"label": label, "taken_for": taken_for, "rows": rows}


def test_a_score_of_values_needs_no_copy_of_them(fitted: Any) -> None:
    _, regressor, x = fitted
    rng = np.random.default_rng(2)
    y, weights = rng.normal(50, 9, 3000), rng.integers(0, 3, 3000).astype(float)
    parts = [(x[i : i + 700], y[i : i + 700], weights[i : i + 700]) for i in range(0, 3000, 700)]
    data = oldgrowth.open_dataset(lambda: iter(parts))
    assert regressor.score(data) == pytest.approx(regressor.score(x, y, weights), rel=1e-12)
    nothing = oldgrowth.open_dataset(lambda: iter([(x, y, np.zeros(3000))]))
    with pytest.raises(DataError, match="all weights are zero"):
        regressor.score(nothing)
