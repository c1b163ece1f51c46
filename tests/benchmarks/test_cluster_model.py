"""The model of fits on clusters adds up."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from cluster import rates_of
from cluster_model import Fit, Rates, modelled

FIT = Fit(rows=10**9, row_bytes=90, source_bytes=80, trees=24, top_trees=12)
RATES = Rates(sample=2e6, top=2e5, route=2e6, grow=1e6)


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


def test_rates_of_a_run_predict_that_run() -> None:
    """Seconds of stages that rates are made of are those that the model gives for them."""
    fit = Fit(rows=10**6, row_bytes=90, source_bytes=80, trees=4, top_trees=1)
    seconds = {"sample": 3.0, "top trees": 2.0, "distribute": 4.0, "grow": 20.0, "assemble": 0.5}
    stages = [{"name": name, "seconds": of_stage} for name, of_stage in seconds.items()]
    run = {"seconds": 31.0, "cores": 0.8, "report": {"stages": stages}}
    found = modelled(fit, rates_of(run, fit, {"task": 0.0, "turn": 0.0, "network": 1e9}), 1, 1, 0.8)
    assert found.seconds == pytest.approx(31.0, rel=0.02)
    assert {name: found.stages[name] for name in seconds} == pytest.approx(seconds, rel=0.1)


def test_rows_that_top_trees_cannot_part_finely_enough_are_split_again() -> None:
    many = Fit(rows=10**11, row_bytes=90, source_bytes=80, trees=24, top_trees=12)
    assert modelled(FIT, RATES, 100, 16).stages["split"] == 0
    found = modelled(many, RATES, 100, 16)
    assert found.stages["split"] > 0
    assert found.network == pytest.approx(3 * 12 * 90 * 10**11 * 0.99)
