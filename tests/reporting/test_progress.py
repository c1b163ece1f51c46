"""Output: nothing by default, plain lines in a log, a report that prints as a table."""

import pytest

from helpers import make_data
from oldgrowth import RandomForestClassifier
from oldgrowth.reporting.progress import FollowedStage, Machine
from oldgrowth.reporting.screens import BETWEEN
from oldgrowth.system.memory import peak_memory


def test_silent_unless_asked(capfd: pytest.CaptureFixture[str]) -> None:
    x, y = make_data(300, 4, 2, seed=0)
    RandomForestClassifier(4, bucket_size=100).fit(x, y)
    assert capfd.readouterr() == ("", "")


def test_a_line_for_each_stage(capfd: pytest.CaptureFixture[str]) -> None:
    x, y = make_data(300, 4, 2, seed=0)
    RandomForestClassifier(4, bucket_size=100, verbose=1).fit(x, y)
    lines = capfd.readouterr().err.splitlines()
    assert [line.split(": ")[1] for line in lines] == [
        "sample",
        "store",
        "top trees",
        "distribute",
        "grow",
        "assemble",
    ]
    assert "1,200 rows in" in lines[4]


def test_peak_memory_is_in_bytes() -> None:
    assert peak_memory() > 10e6


def test_a_live_line_is_no_wider_than_the_terminal() -> None:
    stage = FollowedStage("distribute", 40_000_000, 10**10, Machine(10**9, lambda: 5 * 10**9))
    stage.done = 12_345_678
    for width in (30, 60, 90, 120, 200):
        words = stage.words(width)
        assert len(BETWEEN.join(words)) <= width
        assert words[0] == "12,345,678 of 40,000,000 rows"
    assert len(stage.words(66)) == 3  # rows, time left, memory
    assert len(stage.words(200)) == 6
