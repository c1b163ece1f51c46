"""Forests with categories in treelite and ONNX predict the same; scikit-learn cannot hold them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import oldgrowth
from oldgrowth.errors import ExportError

N = 2000
NAMES = ["RandomForestClassifier", "ExtraTreesClassifier", "RandomForestRegressor", "ExtraTreesRegressor"]
GIVEN: list[dict[str, Any]] = [{}, {"max_depth": 8}, {"bucket_size": 300, "min_samples_leaf": 3}]


def table() -> tuple[pd.DataFrame, np.ndarray]:
    """Columns of few and of many levels, numbers between them, all with missing values."""
    rng = np.random.default_rng(0)
    few, many, x = rng.integers(5, size=N), rng.integers(300, size=N), rng.normal(size=N).astype(np.float32)
    y = few % 2 + many % 3 + (x > 0)
    frame = pd.DataFrame({"few": [f"f{k}" for k in few], "x": x, "many": [f"m{k}" for k in many]})
    for column in frame:
        frame.loc[rng.random(N) < 0.05, column] = None
    return frame, y


def coded(forest: Any, frame: pd.DataFrame) -> np.ndarray:
    """As docs/exports.md says: the place of each value among the levels, -1 for what is none of them."""
    levels = forest.levels_
    columns = [pd.Index(levels[c]).get_indexer(frame[c]) if c in levels else frame[c] for c in frame]
    return np.column_stack(columns).astype(np.float32)


def cases(forest: Any, frame: pd.DataFrame) -> list[tuple[pd.DataFrame, np.ndarray]]:
    """Rows with their codes: of training, with unknown levels, with NaN for these."""
    strange = frame.assign(many=frame["many"].where(frame["x"] > 0, "never"))
    rows = [(frame, coded(forest, frame)), (strange, coded(forest, strange))]
    without = rows[1][1].copy()
    without[without == -1] = np.nan
    return [*rows, (strange, without)]


def expected(forest: Any, frame: pd.DataFrame) -> np.ndarray:
    return forest.predict_proba(frame) if hasattr(forest, "classes_") else forest.predict(frame)[:, None]


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("name", NAMES)
def test_treelite_predicts_the_same(name: str, given: dict[str, Any]) -> None:
    treelite = pytest.importorskip("treelite")
    frame, y = table()
    forest = getattr(oldgrowth, name)(6, random_state=0, **given).fit(frame, y)
    model = forest.to_treelite()
    again = treelite.Model.deserialize_bytes(model.serialize_bytes())
    for rows, codes in cases(forest, frame):
        for one in (model, again):
            found = treelite.gtil.predict(one, codes)[:, 0].reshape(len(rows), -1)
            np.testing.assert_allclose(found, expected(forest, rows), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("name", NAMES)
def test_onnx_predicts_the_same(name: str, given: dict[str, Any]) -> None:
    runtime = pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    frame, y = table()
    forest = getattr(oldgrowth, name)(6, random_state=0, **given).fit(frame, y)
    model = forest.to_onnx()
    onnx.checker.check_model(model)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for rows, codes in cases(forest, frame):
        found = session.run(None, {"X": codes})[-1].reshape(len(rows), -1)
        np.testing.assert_allclose(found, expected(forest, rows), rtol=1e-6, atol=1e-6)


def test_the_size_of_onnx_counts_each_level_of_a_set(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx")
    frame, y = table()
    forest = oldgrowth.RandomForestClassifier(3, random_state=0).fit(frame, y)
    size = len(forest.to_onnx().SerializeToString())
    monkeypatch.setattr("oldgrowth.export.onnx.MOST_BYTES", size - 1)
    with pytest.raises(ExportError, match="nodes take up to"):
        forest.to_onnx()


def test_scikit_learn_cannot_hold_sets() -> None:
    frame, y = table()
    forest = oldgrowth.RandomForestClassifier(3, random_state=0).fit(frame, y)
    assert len(forest.estimators_) == 3
    for convert in (forest.to_sklearn, lambda: forest.estimators_[0], lambda: forest.decision_path(frame)):
        with pytest.raises(
            ExportError, match=r"2 categorical features by sets.*to_treelite\(\) or to_onnx\(\)"
        ):
            convert()
