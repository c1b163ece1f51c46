"""Threads that read ahead end with their reader, and none is left when the interpreter exits."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import oldgrowth
from oldgrowth import errors
from oldgrowth.datasets import csv_end
from oldgrowth.rows.read_ahead import read_ahead

SLOW_FILE = """
import sys, time
import oldgrowth
import oldgrowth.datasets.csv
from oldgrowth.datasets.csv_end import MarkedReader
read = MarkedReader._read
def slowly(self, size):
    time.sleep(0.02)
    return read(self, size)
MarkedReader._read = slowly
oldgrowth.datasets.csv.BLOCK_BYTES = 1 << 14
data = oldgrowth.open_dataset(sys.argv[1], target="y")
"""
LEFT = {
    "a reading that was begun": "batches = data.batches(50); next(batches)",
    "a fit that failed": """
try:
    oldgrowth.RandomForestClassifier(2, random_state=0, chunk_size=50).fit(data)
except oldgrowth.errors.BrokenLineError:
    pass
""",
    "a fit in a thread": """
import threading
fit = oldgrowth.RandomForestClassifier(2, random_state=0, chunk_size=50).fit
threading.Thread(target=fit, args=[data], daemon=True).start()
time.sleep(0.1)
""",
}


def write_rows(path: Path, broken_at: int | None = None) -> Path:
    rows = [f"{i % 7},{i % 11},{i % 3}" for i in range(20_000)]
    if broken_at is not None:
        rows[broken_at] = "1,2"
    path.write_text("\n".join(["a,b,y", *rows]) + "\n")
    return path


@pytest.mark.parametrize("left", LEFT)
def test_the_interpreter_exits_while_a_file_is_read(left: str, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.csv", broken_at=15_000 if left == "a fit that failed" else None)
    script = SLOW_FILE + LEFT[left]
    done = subprocess.run(
        [sys.executable, "-c", script, rows], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0  # neither killed nor waited for
    # A fit in a thread that nobody waits for may come to say that the interpreter is gone.
    assert not done.stderr or (left == "a fit in a thread" and done.stderr.startswith("Exception in thread"))


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "oldgrowth-reader"]


def test_nothing_is_left_of_a_file_with_a_broken_line(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.csv", broken_at=19_000)
    for store in ("memory", "disk"):
        with pytest.raises(errors.BrokenLineError) as caught:
            data = oldgrowth.open_dataset(rows, target="y")
            oldgrowth.RandomForestClassifier(2, random_state=0, chunk_size=500, store=store).fit(data)
        assert caught.value.__traceback__ is not None  # which keeps what was read with
        assert not readers()
        assert not list(csv_end._OPEN)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_where_items_are_used_ends_the_thread_that_reads_them(error: type[BaseException]) -> None:
    closed = threading.Event()

    def endless() -> Iterator[int]:
        try:
            yield from range(10**9)
        finally:
            time.sleep(0.2)
            closed.set()

    with pytest.raises(error), closing(read_ahead(endless())) as items:
        for item in items:
            if item == 3:
                raise error
    assert closed.is_set()
    assert not readers()


def test_a_source_in_a_long_call_is_left_to_end_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oldgrowth.rows.read_ahead._ENDS_BY_ITSELF", 0.05)
    answers, given, closed = threading.Event(), [], threading.Event()

    def slow() -> Iterator[int]:
        try:
            for item in range(1000):
                given.append(item)
                yield item
                answers.wait()
        finally:
            closed.set()

    with closing(read_ahead(slow())) as items:
        assert next(items) == 0
    (left,) = readers()
    assert left.daemon and not closed.is_set()
    answers.set()
    left.join(60)
    assert closed.is_set() and len(given) <= 2  # it did not begin another item, or ended behind it
    assert not readers()


def test_an_error_of_the_source_is_raised_behind_what_was_read() -> None:
    def failing() -> Iterator[np.ndarray]:
        yield np.zeros(3)
        raise OSError("gone")

    with closing(read_ahead(failing())) as items:
        assert len(next(items)) == 3
        with pytest.raises(OSError, match="gone"):
            next(items)
    assert not readers()
