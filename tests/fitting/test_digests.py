"""The forests of tests/golden/digests.py are those recorded there, bit for bit."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from golden import digests

RECORDED = json.loads(digests.FILE.read_text())
CASES = {case.name: case for case in digests.cases()}


def test_every_case_is_recorded() -> None:
    assert len(CASES) == len(digests.cases()), "two cases have one name"
    assert list(CASES) == list(RECORDED)


@pytest.mark.parametrize("name", CASES)
def test_a_forest_is_the_one_recorded(name: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*out-of-bag prediction.*")
        assert digests.record_of(digests.fitted(CASES[name], tmp_path)) == RECORDED[name]
