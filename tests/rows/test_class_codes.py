"""Labels of a stream become class codes, and unusable labels are refused with their row."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from oldgrowth import RandomForestClassifier, RandomForestRegressor, open_dataset
from oldgrowth.datasets import Batch, CodedLabels
from oldgrowth.errors import DataError, UnseenLabelError
from oldgrowth.rows.class_codes import LabelCoder

ROWS = pl.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "name": ["x", "y", "x", "y"], "part": [0.5, 1.0, 1.5, 2.0]})


def batch_of(y: Any, first_row: int = 0) -> Batch:
    return Batch(first_row, np.zeros((len(y), 1), np.float32), y, None, ((0, "x.csv"),))


@pytest.mark.parametrize(
    "y",
    [
        np.array([7, -3, 7, 100, -3]),
        np.array([7, 2**63, 7], dtype=np.uint64),
        np.array([True, False, True]),
        np.array(["pear", "fig", "pear"]),
        np.array([2.0, -1.0, 2.0]),
        CodedLabels(np.array([1, 0, 1], dtype=np.int32), np.array(["pear", "fig"])),
    ],
)
def test_numbers_are_those_of_the_sorted_labels_in_the_end(y: Any) -> None:
    plain = y.decoded() if isinstance(y, CodedLabels) else y
    coder = LabelCoder()
    first = coder.code(batch_of(y))
    final = coder.finish()
    classes, expected = np.unique(plain, return_inverse=True)
    np.testing.assert_array_equal(coder.classes, classes)
    np.testing.assert_array_equal(final[first.astype(int)], expected)
    np.testing.assert_array_equal(coder.code(batch_of(y)), expected)


def test_a_label_of_the_second_pass_only_is_named_with_its_row() -> None:
    coder = LabelCoder()
    coder.code(batch_of(np.array([1, 2])))
    coder.finish()
    with pytest.raises(UnseenLabelError, match=r"row 11 of x\.csv has the label 3"):
        coder.code(batch_of(np.array([2, 3]), 10))


def test_keys_of_labels_do_not_depend_on_their_numbers() -> None:
    one, other = LabelCoder(), LabelCoder()
    codes = one.code(batch_of(np.array([3, 1, 2])))
    others = np.concatenate([other.code(batch_of(np.array([label]))) for label in (2.0, 1.0, 3.0)])
    keys = one.keys_of(codes)
    assert len(set(keys.tolist())) == 3
    np.testing.assert_array_equal(keys, other.keys_of(others)[::-1])
    for coder in (one, other):
        coder.finish()
        np.testing.assert_array_equal(coder.keys_of(np.array([2.0, 0.0, 1.0])), keys)


def test_checkpoints_of_earlier_versions_have_class_numbers_as_keys() -> None:
    coder = LabelCoder()
    first = coder.code(batch_of(np.array(["pear", "fig"])))
    state = coder.state()
    assert state.pop("keys") == "labels"
    restored = LabelCoder()
    restored.restore(state)
    more = np.append(first, restored.code(batch_of(np.array(["apple"]), 2)))
    np.testing.assert_array_equal(restored.keys_of(more).view(np.float64), more)
    final = restored.finish()
    np.testing.assert_array_equal(restored.keys_of(final[more.astype(int)] * 1.0).view(np.float64), more)
    assert restored.state()["keys"] == "codes"


def test_labels_of_different_kinds() -> None:
    coder = LabelCoder()
    coder.code(batch_of(np.array([1, 2])))
    coder.code(batch_of(np.array(["a"]), 2))
    with pytest.raises(DataError, match="different types: int, str"):
        coder.finish()


@pytest.mark.parametrize(
    ("fit", "sentence"),
    [
        (lambda: RandomForestClassifier().fit("rows.parquet"), "X is a path: open it first"),
        (lambda: RandomForestClassifier().fit(ROWS.lazy(), [0, 1]), "X is a LazyFrame"),
        (lambda: RandomForestClassifier().fit(lambda: iter(()), [0]), "X is a function"),
        (
            lambda: RandomForestClassifier().fit(open_dataset(ROWS, target="name"), [0, 1, 0, 1]),
            "y must not be given with a dataset",
        ),
        (
            lambda: RandomForestClassifier().fit(open_dataset(ROWS, features=["a"])),
            "The dataset has no target",
        ),
        (
            lambda: RandomForestRegressor().fit(open_dataset(ROWS, target="name", features=["a"])),
            "The target 'name' is text",
        ),
        (
            lambda: RandomForestClassifier().fit(open_dataset(ROWS, target="part", features=["a"])),
            "0.5 in row 0 of the polars DataFrame, which is not a label",
        ),
    ],
)
def test_what_cannot_be_learned_from_is_refused(fit: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        fit()
