"""Merged forests predict the mean of their parts, whatever these have seen."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import oldgrowth
from helpers import make_data
from oldgrowth import (
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    SubsetForestClassifier,
    load,
    merge,
)
from oldgrowth.errors import MergeError, ModelFileError
from oldgrowth.messages.warnings import SameForestWarning

X, Y = make_data(1200, 6, 5, seed=0)
VALUES = make_data(1200, 6, 0, seed=0)[1]
TEST, _ = make_data(400, 6, 5, seed=1)
BUCKETS: dict[str, Any] = {"bucket_size": 150, "trees_per_top": 2}


def fitted(trees: int, seed: int, keep: Any = slice(None), **given: Any) -> Any:
    given = {"max_depth": 7, **given}  # mixed leaves
    return RandomForestClassifier(trees, random_state=seed, **given).fit(X[keep], Y[keep])


def of_all(model: Any, classes: np.ndarray) -> np.ndarray:
    """The probabilities in the columns of other classes."""
    wide = np.zeros((len(TEST), len(classes)))
    wide[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(TEST)
    return wide


@pytest.mark.parametrize("given", [{}, BUCKETS, {"voting": "hard"}, {"max_depth": None}])
@pytest.mark.parametrize("without", [None, 0, 2, 4])
def test_it_predicts_the_mean_by_trees(given: dict[str, Any], without: int | None) -> None:
    a, b = fitted(4, 0, **given), fitted(7, 1, without != Y, **given)
    for parts in ((a, b), (b, a), (a, merge([b]))):
        merged = merge(list(parts))
        assert merged.classes_.tolist() == [0, 1, 2, 3, 4] and merged.n_estimators == len(merged) == 11
        merged.forest_.check()
        expected = (4 * of_all(a, merged.classes_) + 7 * of_all(b, merged.classes_)) / 11
        np.testing.assert_allclose(merged.predict_proba(TEST), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(merged.apply(TEST), np.hstack([p.apply(TEST) for p in parts]))
        means = (4 * a.feature_importances_ + 7 * b.feature_importances_) / 11
        np.testing.assert_allclose(merged.feature_importances_, means, rtol=1e-12)
        assert not hasattr(merged, "oob_score_")


@pytest.mark.parametrize("labels", [list("edcba"), [2.0, 1.0, 0.0, -1.0, 9.0], ["x" * 40, *"bcd", "e\0"]])
def test_classes_are_the_sorted_union(labels: list[Any]) -> None:
    y = np.array(labels, dtype=object)[Y]
    seen = [(Y != 0) & (Y != 3), (Y != 1) & (Y != 2)]
    parts = [RandomForestClassifier(3, max_depth=4).fit(X[some], y[some]) for some in seen]
    merged = merge(parts)
    assert merged.classes_.tolist() == sorted(labels)
    expected = np.mean([of_all(part, merged.classes_) for part in parts], axis=0)
    np.testing.assert_allclose(merged.predict_proba(TEST), expected, atol=1e-12)
    assert set(merged.predict(TEST)) <= set(labels)


@pytest.mark.parametrize("given", [{}, BUCKETS])
def test_regressions(given: dict[str, Any], tmp_path: Path) -> None:
    a, b = (RandomForestRegressor(n, random_state=n, **given).fit(X, VALUES) for n in (3, 5))
    merged = merge([a, b])
    expected = (3 * a.predict(TEST) + 5 * b.predict(TEST)) / 8
    np.testing.assert_allclose(merged.predict(TEST), expected, rtol=1e-12)
    np.testing.assert_allclose(merged.to_sklearn().predict(TEST), merged.predict(TEST), rtol=1e-12)


def test_in_memory_on_disk_mapped_and_saved_are_the_same(tmp_path: Path) -> None:
    there: dict[str, Any] = {**BUCKETS, "store": "disk", "spill_dir": tmp_path}
    parts = [fitted(4, 0, **BUCKETS), fitted(5, 1, Y != 1, **there)]
    for i, part in enumerate(parts):
        part.save(tmp_path / f"{i}.og")
    mapped = [load(tmp_path / f"{i}.og") for i in range(2)]
    in_memory = [load(tmp_path / f"{i}.og", mmap=False) for i in range(2)]
    digests = set()
    for some in (parts, mapped, in_memory, [parts[0], mapped[1]]):
        merged = merge(some)
        assert merged.forest_.mapped == any(part.forest_.mapped for part in some)
        digests.add(merged.forest_.digest())
        merged.save(tmp_path / "merged.og")
        again = load(tmp_path / "merged.og")
        assert again.forest_.digest() == merged.forest_.digest()
        assert again.fit_report_ == merged.fit_report_ and again.get_params() == merged.get_params()
        np.testing.assert_array_equal(again.predict_proba(TEST), merged.predict_proba(TEST))
    assert len(digests) == 1
    assert not [*tmp_path.glob("oldgrowth-spill*")]


def test_a_small_memory_limit_puts_it_on_disk(tmp_path: Path) -> None:
    parts = [fitted(3, seed).set_params(memory_limit=2**20, spill_dir=tmp_path) for seed in range(2)]
    merged = merge(parts)
    assert merged.forest_.mapped
    again = merge([part.set_params(memory_limit="auto") for part in parts])
    assert not again.forest_.mapped and merged.forest_.digest() == again.forest_.digest()


def test_merged_forests_are_forests() -> None:
    parts = [fitted(2, seed, seed % 5 != Y, **BUCKETS) for seed in range(6)]
    merged = merge([merge(parts[:3]), merge(parts[3:])])
    assert merged.forest_.digest() == merge(parts).forest_.digest()
    again = pickle.loads(pickle.dumps(merged))
    np.testing.assert_array_equal(again.predict(TEST), merged.predict(TEST))
    assert clone(merged).get_params() == merged.get_params() and not hasattr(clone(merged), "forest_")
    assert clone(merged).fit(X, Y).forest_.n_trees == 12
    assert merged.fit_report_.trees == 12 and merged.fit_report_.nodes == merged.forest_.n_nodes
    assert "merged from 2 forests" in str(merged.fit_report_)
    np.testing.assert_allclose(merged.to_sklearn().predict_proba(TEST), merged.predict_proba(TEST), atol=1e-7)
    assert len(merged.estimators_) == 12


def test_exports_of_merged_forests(tmp_path: Path) -> None:
    pytest.importorskip("treelite")
    runtime = pytest.importorskip("onnxruntime")
    import treelite

    merged = merge([fitted(3, 0, Y != 2), fitted(4, 1, Y != 4, **BUCKETS)])
    x = TEST.astype(np.float32)
    made = treelite.gtil.predict(merged.to_treelite(), x).reshape(len(x), -1)
    np.testing.assert_allclose(made, merged.predict_proba(x), atol=1e-6)
    merged.to_onnx(tmp_path / "m.onnx")
    session = runtime.InferenceSession(str(tmp_path / "m.onnx"))
    found = session.run(None, {"X": x})[1]
    if isinstance(found, list):
        found = np.array([[row[k] for k in merged.classes_.tolist()] for row in found])
    np.testing.assert_allclose(found, merged.predict_proba(x), atol=1e-5)


def test_fifty_forests_and_one() -> None:
    parts = [fitted(1, seed, seed % 5 != Y) for seed in range(50)]
    merged = merge(parts)
    expected = np.mean([of_all(part, merged.classes_) for part in parts], axis=0)
    np.testing.assert_allclose(merged.predict_proba(TEST), expected, atol=1e-12)
    assert merge(parts[:1]).forest_.digest() == parts[0].forest_.digest()


def test_the_same_forest_twice_is_a_warning() -> None:
    model = fitted(2, 0)
    with pytest.warns(SameForestWarning, match="different seeds"):
        merged = merge([model, fitted(2, 0)])
    np.testing.assert_allclose(merged.predict_proba(TEST), model.predict_proba(TEST))


FRAME = pd.DataFrame(X, columns=list("abcdef"))


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: RandomForestRegressor(2).fit(X, Y), "1 is a RandomForestClassifier, number 2 a Random"),
        (lambda: ExtraTreesClassifier(2).fit(X, Y), "number 2 a ExtraTreesClassifier"),
        (lambda: SubsetForestClassifier(2).fit(X, Y), "number 2 a SubsetForestClassifier"),
        (lambda: RandomForestClassifier(2, voting="hard").fit(X, Y), "voting='soft', number 2 voting='hard'"),
        (lambda: RandomForestClassifier(2).fit(X[:, 1:], Y), "6 features, number 2 has 5"),
        (lambda: RandomForestClassifier(2).fit(FRAME, Y), "number 2 has names of features, and number 1"),
        (lambda: RandomForestClassifier(2).fit(X, Y.astype(str)), "different types, such as '0', 0"),
        (lambda: RandomForestClassifier(2).fit(X, Y > 2), "different types, such as"),
        (lambda: "b.og", "a list of fitted forests"),
        (lambda: RandomForestClassifier(2), "not fitted"),
    ],
)
def test_other_forests_are_refused_by_name(other: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        merge([fitted(2, 0), other()])


def test_names_recipes_and_what_is_no_list() -> None:
    a = RandomForestClassifier(2).fit(FRAME, Y)
    b = RandomForestClassifier(2).fit(FRAME.rename(columns={"c": "z"}), Y)
    with pytest.raises(MergeError, match="column 2 is 'c' in number 1, 'z' in number 2"):
        merge([a, b])
    b = RandomForestClassifier(2).fit(FRAME, Y)
    b.recipe_ = {"patch": 3}
    with pytest.raises(MergeError, match="made of scenes in different ways"):
        merge([a, b])
    for wrong in ([], a, None, "ab", [a, None]):
        with pytest.raises(MergeError, match="a list of fitted forests"):
            merge(wrong)


def test_a_damaged_source_is_an_error(tmp_path: Path) -> None:
    fitted(3, 0).save(tmp_path / "a.og")
    model = load(tmp_path / "a.og")
    start = int(np.frombuffer((tmp_path / "a.og").read_bytes(), dtype=np.uint8)[:0].size)
    data = bytearray((tmp_path / "a.og").read_bytes())
    at = data.index(model.forest_.nodes[:4].tobytes(), start)
    with open(tmp_path / "a.og", "r+b") as file:
        file.seek(at)
        file.write(b"\xff" * 4)
    with pytest.raises(ModelFileError, match="corrupted in section nodes"):
        merge([model, fitted(2, 1)])


def test_merge_is_public() -> None:
    assert oldgrowth.merge is merge and "merge" in oldgrowth.__all__
