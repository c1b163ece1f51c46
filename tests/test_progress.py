"""What people see: nothing by default, plain lines in a log, a report that prints as a table."""

import pytest

from helpers import make_data
from oldgrowth import RandomForestClassifier
from oldgrowth.memory import human_bytes, peak_memory


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


def test_sizes_are_readable() -> None:
    assert [human_bytes(n) for n in (7, 1500, 2.5e6, 3e9, 4e12)] == [
        "7 B",
        "1.5 kB",
        "2.5 MB",
        "3 GB",
        "4 TB",
    ]
    assert peak_memory() > 10e6
