"""Model files: everything is restored, and changed files are refused."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score

import oldgrowth
from helpers import make_data
from oldgrowth import errors
from oldgrowth.forest.forest import ARRAYS
from oldgrowth.forest.model_file import PAGE, ModelWriter, read_model, write_model
from oldgrowth.forest.model_meta import describe
from oldgrowth.reporting.report import FitReport

ESTIMATORS = [getattr(oldgrowth, name) for name in oldgrowth.__all__ if name.endswith(("fier", "ssor"))]
CLASSIFIERS = [cls for cls in ESTIMATORS if hasattr(cls, "predict_proba")]


def fitted(cls: Any = oldgrowth.RandomForestClassifier, n: int = 300, **params: Any) -> Any:
    x, y = make_data(n, 5, 3 if cls in CLASSIFIERS else 0, seed=1)
    return cls(n_estimators=6, random_state=0, n_jobs=1, **params).fit(x, y)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "forest.og"


@pytest.mark.filterwarnings("ignore:.*no out-of-bag")
@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_all_of_an_estimator_comes_back(cls: Any, mmap: bool, path: Path) -> None:
    x, y = make_data(600, 5, 4 if cls in CLASSIFIERS else 0, seed=2)
    frame = pd.DataFrame(x, columns=list("abcde"))
    size = {"subset_size": 200} if "Subset" in cls.__name__ else {"bucket_size": 100}
    model = cls(6, random_state=3, bootstrap=True, oob_score=True, max_features=0.5, **size).fit(frame, y)
    model.save(path)
    loaded = oldgrowth.load(path, mmap=mmap)
    assert type(loaded) is cls
    assert loaded.get_params() == model.get_params()
    assert loaded.forest_.digest() == model.forest_.digest()
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(loaded.apply(frame), model.apply(frame))
    np.testing.assert_array_equal(loaded.feature_importances_, model.feature_importances_)
    np.testing.assert_array_equal(loaded.feature_names_in_, model.feature_names_in_)
    assert loaded.n_features_in_ == 5
    assert loaded.oob_score_ == model.oob_score_
    assert loaded.fit_report_ == model.fit_report_ and str(loaded.fit_report_) == str(model.fit_report_)
    if cls in CLASSIFIERS:
        np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
        np.testing.assert_array_equal(loaded.classes_, model.classes_)
    assert clone(loaded).fit(frame, y).forest_.digest() == model.forest_.digest()
    assert pickle.loads(pickle.dumps(loaded)).forest_.digest() == model.forest_.digest()


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, -7, 2**62]),
        np.array([3, 250, 7], dtype=np.uint8),
        np.array([2**64 - 1, 0, 5], dtype=np.uint64),
        np.array([False, True]),
        np.array([1.0, -2.0, 1e9]),
        np.array([1.0, 2.0, 3.0], dtype=np.float32),
        np.array(["wood", "Straße", "水", '"quoted"\n\\']),
        np.array(["wood", "water", "ice"], dtype=object),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_keep_their_type(labels: np.ndarray, path: Path) -> None:
    x = np.arange(40.0)[:, None]
    y = labels[np.arange(40) // 10 % len(labels)]
    model = oldgrowth.RandomForestClassifier(3, random_state=0).fit(x, y)
    model.save(path)
    loaded = oldgrowth.load(path)
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert [type(v) for v in loaded.classes_] == [type(v) for v in model.classes_]
    np.testing.assert_array_equal(loaded.predict(x), model.predict(x))


def test_arrays_without_names_have_none_after(path: Path) -> None:
    fitted().save(path)
    assert not hasattr(oldgrowth.load(path), "feature_names_in_")
    assert not hasattr(oldgrowth.load(path), "oob_score_")


def test_what_json_cannot_hold_takes_its_default(path: Path) -> None:
    x, y = make_data(300, 5, 3, seed=1)
    params: dict[str, Any] = {"oob_score": accuracy_score, "class_weight": {0: 1.0, 1: 2.5, 2: 1}}
    model = oldgrowth.RandomForestClassifier(6, random_state=np.random.RandomState(0), **params).fit(x, y)
    model.save(path)
    meta = read_model(path).meta
    assert meta["parameters"]["oob_score"] is None and meta["parameters"]["random_state"] is None
    assert meta["not_saved"].keys() == {"oob_score", "random_state"}
    assert "RandomState" in meta["not_saved"]["random_state"]
    loaded = oldgrowth.load(path)
    assert loaded.oob_score is False and loaded.random_state is None
    assert loaded.class_weight == params["class_weight"] and loaded.oob_score_ == model.oob_score_


def test_numbers_of_numpy_and_nan_are_saved(path: Path) -> None:
    model = fitted(max_depth=np.int64(4), max_samples=np.float64(0.5))
    model.oob_score_ = np.nan
    model.save(path)
    loaded = oldgrowth.load(path)
    assert loaded.max_depth == 4 and loaded.max_samples == 0.5 and np.isnan(loaded.oob_score_)


def test_a_class_of_ones_own_is_saved_as_its_base(path: Path) -> None:
    class Mine(oldgrowth.ExtraTreesClassifier):
        pass

    Mine(2).fit([[0], [1]], [0, 1]).save(path)
    assert type(oldgrowth.load(path)) is oldgrowth.ExtraTreesClassifier


def test_an_unfitted_forest_is_not_saved(path: Path) -> None:
    with pytest.raises(ValueError, match="not fitted"):
        oldgrowth.RandomForestClassifier().save(path)
    assert not path.exists()


def test_labels_that_cannot_be_saved_are_named(path: Path) -> None:
    model = fitted()
    model.classes_ = np.array([(1,), (2,), None], dtype=object)
    with pytest.raises(errors.UnsavableError, match=r"label \(1,\) cannot be saved"):
        model.save(path)
    assert not list(path.parent.iterdir())


def test_sections_lie_on_pages_and_trees_can_be_appended(path: Path) -> None:
    model = fitted()
    with ModelWriter(path) as writer:
        for name in ARRAYS:
            array = getattr(model.forest_, name)
            writer.start(name, len(array), array.dtype)
            for part in np.array_split(array, 7):
                writer.append(part)
            writer.finish()
        writer.add_meta(describe(model))
    streamed = path.read_bytes()
    write_model(path, model.forest_, describe(model))
    assert streamed == path.read_bytes()
    parts = read_model(path)
    assert all(section.offset % PAGE == 0 for section in parts.sections)
    assert parts.size == path.stat().st_size == max(section.end for section in parts.sections)


def test_large_arrays_are_written_in_parts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted()
    model.save(path)
    whole = path.read_bytes()
    monkeypatch.setattr("oldgrowth.forest.model_file._PART_BYTES", 24)
    model.save(path)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("fails", ["fsync", "replace"])
def test_a_failed_write_leaves_nothing_behind(
    fails: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = fitted()
    path.write_bytes(b"something old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, fails, full)
    with pytest.raises(errors.UnwritableFileError, match=r"forest\.og could not be written: No space"):
        model.save(path)
    assert [p.name for p in path.parent.iterdir()] == ["forest.og"]
    assert path.read_bytes() == b"something old"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("no more"), AssertionError()])
def test_a_writer_that_is_left_early_leaves_nothing_behind(error: BaseException, path: Path) -> None:
    with pytest.raises(type(error)), ModelWriter(path) as writer:
        writer.add("top_nodes", np.zeros(5, dtype=np.uint64))
        raise error
    assert not list(path.parent.iterdir())


def test_a_file_with_missing_sections_is_not_finished(path: Path) -> None:
    with pytest.raises(AssertionError, match="not written"), ModelWriter(path) as writer:
        writer.add("top_nodes", np.zeros(5, dtype=np.uint64))
    assert not list(path.parent.iterdir())


def test_saving_over_a_mapped_forest_is_safe(path: Path) -> None:
    model = fitted()
    model.save(path)
    x, _ = make_data(50, 5, 3, seed=5)
    before = model.predict_proba(x)
    loaded = oldgrowth.load(path)
    fitted(n=30).save(path)
    np.testing.assert_array_equal(loaded.predict_proba(x), before)
    loaded.save(path)
    assert oldgrowth.load(path).forest_.digest() == model.forest_.digest()


def test_a_report_of_another_version_is_read() -> None:
    report = fitted().fit_report_
    values = report.as_dict()
    assert FitReport.from_dict(values) == report
    assert FitReport.from_dict(values | {"wings": 2}) == report
    assert FitReport.from_dict({"rows": 5}).rows == 5


def test_files_have_the_rights_of_the_one_they_replace_or_the_usual_ones(path: Path) -> None:
    model = fitted(n=30)
    before = os.umask(0o027)
    try:
        model.save(path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o600)
    model.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    longest = path.with_name("f" * 255)
    model.save(longest)
    assert sorted(p.name for p in path.parent.iterdir()) == sorted([path.name, longest.name])
