"""Files written by the first release of their format can still be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oldgrowth
from golden.make import table

GOLDEN = Path(__file__).parents[1] / "golden"
FILES = sorted(path.stem for path in GOLDEN.glob("*.og"))


def test_there_are_files_of_every_kind() -> None:
    assert FILES == [
        "bools-1",
        "numbers-1",
        "random_sets-2",
        "sets-2",
        "subsets-1",
        "texts-1",
        "values-1",
    ]


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("name", FILES)
def test_a_golden_file_predicts_what_it_did(name: str, mmap: bool) -> None:
    x = np.load(GOLDEN / "rows.npy")
    version = name[-1]
    assert np.fromfile(GOLDEN / f"{name}.og", np.uint32, 1, offset=8) == int(version)
    x = table(x) if version == "2" else x
    expected = np.load(GOLDEN / f"{name}.npz")
    model = oldgrowth.load(GOLDEN / f"{name}.og", mmap)
    said = model.predict_proba(x) if hasattr(model, "classes_") else model.predict(x)
    np.testing.assert_array_equal(said, expected["said"])
    np.testing.assert_array_equal(model.apply(x), expected["leaves"])
    np.testing.assert_array_equal(getattr(model, "classes_", np.zeros(0)), expected["labels"])
    np.testing.assert_array_equal(model.feature_importances_, expected["importances"])
