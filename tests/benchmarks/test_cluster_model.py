"""The model of fits on clusters adds up."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from cluster_model import Fit, Rates, modelled

FIT = Fit(rows=10**9, row_bytes=90, source_bytes=80, trees=24, top_trees=12)
RATES = Rates(sample=2e6, route=2e6, grow=1e6)


def test_work_is_divided_and_messages_are_not() -> None:
    one, ten = modelled(FIT, RATES, 1, 16), modelled(FIT, RATES, 10, 16)
    assert one.network == 0 and ten.network == pytest.approx(12 * 90 * 10**9 * 0.9)
    assert one.disk == 10 * ten.disk == 12 * 90 * 10**9
    assert ten.stages["grow"] < one.stages["grow"] / 5
    assert ten.stages["assemble"] == one.stages["assemble"]  # on the client


def test_tasks_depend_on_bytes_and_workers() -> None:
    twice = Fit(rows=2 * 10**9, row_bytes=90, source_bytes=80, trees=24, top_trees=12)
    more = modelled(twice, RATES, 10, 16).tasks - modelled(FIT, RATES, 10, 16).tasks
    assert more == pytest.approx(12 * 90 * 10**9 / 2**30, rel=0.01)
