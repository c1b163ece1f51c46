"""Warnings can be sent to other processes."""

from __future__ import annotations

import pickle

import pytest

from oldgrowth.messages import warnings

WARNINGS = [
    warnings.IdColumnWarning({"id": "a different whole number in every row", 3: "named like one"}),
    warnings.NoMoreTreesWarning(10),
    warnings.PooledLevelsWarning("city", 70_000, 65_534, 12),
    warnings.NumericTextWarning({"age": None, "size": "n/a"}),
    warnings.DateTextWarning(["day"]),
    warnings.SameForestWarning(),
    warnings.LeftOutWarning("scene.tif", "no mask", "a mask", "Open it with mask=..."),
    warnings.DamagedPartWarning("trees.log", "its checksum does not match"),
    warnings.UnwrittenValuesWarning("rows.h5", 2, 10, 0),
    warnings.SpillsToMemoryWarning("/dev/shm"),
    warnings.NodataWarning("scene.tif", 0.0, 0.3),
    warnings.TaskWarning("The target is whole numbers."),
]


@pytest.mark.parametrize("warning", WARNINGS, ids=lambda warning: type(warning).__name__)
def test_a_warning_is_the_same_in_another_process(warning: warnings.OldgrowthWarning) -> None:
    assert str(warning)
    for again in (pickle.loads(pickle.dumps(warning)), type(warning)(*warning.args)):
        assert type(again) is type(warning)
        assert str(again) == str(warning)


def test_no_warning_is_left_out() -> None:
    made = {type(warning) for warning in WARNINGS}
    kinds = warnings.OldgrowthWarning.__subclasses__()
    assert all(kind in made for kind in kinds if "__init__" in vars(kind))
