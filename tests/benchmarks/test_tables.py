"""The comparison on tables, and the distance of the search for sets from the best set."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import set_distance
import table_goals
from table_models import AS_YDF


def measured(model: str, **figures: float) -> dict[str, object]:
    return {"set": "flights", "model": model, **figures}


def test_each_goal_is_shown_beside_its_figure() -> None:
    figures = [
        measured(AS_YDF, auc=0.840, accuracy=0.833, fit_seconds=10.0),
        measured(AS_YDF, auc=0.842, accuracy=0.833, fit_seconds=9.0),
        measured("ydf, in order of the target", auc=0.835, accuracy=0.836, fit_seconds=60.0),
        measured("ydf, random sets", auc=0.842, accuracy=0.836, fit_seconds=40.0),
        {"set": "flights", "model": "oldgrowth", "error": "it failed"},
    ]
    lines = list(table_goals.verdicts("flights", figures))
    assert len(lines) == len(table_goals.GOALS["flights"])
    head = f"of {AS_YDF} against the better way of YDF"
    assert lines[0] == f"auc {head}: -0.0010 (goal: at least -0.002; holds)"
    assert lines[1] == f"accuracy {head}: -0.0030 (goal: at least -0.002; does not hold)"
    assert lines[2] == f"fit seconds {head}: 0.23x (goal: at most 0.2x; does not hold)"
    assert lines[3].endswith("against oldgrowth, ordinal: not measured (goal: at least +0.02)")


@pytest.mark.parametrize("criterion", set_distance.CRITERIA)
def test_brute_force_tries_all_sets(criterion: str) -> None:
    counts = np.array([[5.0, 0, 0], [0, 5, 0], [0, 4, 1], [5, 0, 0]])
    found = set_distance.decreases(criterion, counts)
    assert len(found) == 7 and found.argmax() == 4  # the first and the last level against the others


@pytest.mark.slow
def test_of_many_classes_the_search_is_near_the_best_set() -> None:
    found = set_distance.measure(classes=5, levels=8, draws=10)
    assert found.max() < 1 + 1e-9
    assert found.mean() > 0.97 and found.min() > 0.6
