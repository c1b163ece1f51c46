"""Limits of the system on memory and threads: handled, or reported as such."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import oldgrowth.estimators.saved
from helpers import make_data
from oldgrowth import RandomForestClassifier, load, open_dataset
from oldgrowth.datasets.files import SourceFile, stamp_of
from oldgrowth.errors import OutOfMemoryError, ThreadLimitError, UnreadableFileError

X, Y = make_data(5000, 6, 3, seed=3)
# Under a limit on addresses that is a little above what the process has.
LIMITED = """
import resource, sys
import numpy as np
sys.path.insert(0, {tests!r})
import oldgrowth
import oldgrowth.estimators.saved
from helpers import make_data
x, y = make_data(60_000, 8, 3, seed=1)
model = oldgrowth.RandomForestClassifier(4, n_jobs=1, random_state=0, max_depth=3)
if {what!r} != "fit":
    model.fit(x, y)
    x = np.tile(x.astype(np.float32), (40, 1))
here = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (here + {spare}, here + {spare}))
try:
    getattr(model, {what!r})(x, y) if {what!r} == "fit" else getattr(model, {what!r})(x)
except oldgrowth.errors.OldgrowthError as error:
    print(type(error).__name__, isinstance(error, (MemoryError, RuntimeError)), error)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
@pytest.mark.parametrize("what", ["fit", "apply"])
def test_a_limit_on_addresses(what: str) -> None:
    code = LIMITED.format(tests=str(Path(__file__).parents[1]), what=what, spare=-(2**26))
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    said = found.stdout
    assert said.startswith(("OutOfMemoryError True", "ThreadLimitError True")), said + found.stderr
    assert "ulimit -v)" in said and "n_jobs" in said


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
@pytest.mark.parametrize("spare", [2, 20, 60])
def test_too_few_addresses_are_refused_before_work_begins(spare: int) -> None:
    code = LIMITED.format(tests=str(Path(__file__).parents[1]), what="fit", spare=spare * 2**20)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "of its addresses are left" in found.stdout, found.stdout + found.stderr


COMMAND = """
import os, resource, sys
from oldgrowth.cli import entry
resource.setrlimit(resource.RLIMIT_AS, (2**40, 2**40))
entry._prepare_libraries()
import pyarrow.parquet, oldgrowth.cli.main, oldgrowth.cli.predict
here = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (here + 150 * 2**20, here + 150 * 2**20))
sys.exit(oldgrowth.cli.main.run(sys.argv[1:]))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_addresses_bound_the_threads_not_the_work(tmp_path) -> None:
    """Sixteen threads have 128 MB of stacks, and heaps of 64 MB each if they share none."""
    table = pa.table({f"f{i}": X[:, i] for i in range(6)})
    pq.write_table(table, tmp_path / "rows.parquet")
    model = RandomForestClassifier(4, random_state=0).fit(table.to_pandas(), Y)
    model.save(tmp_path / "f.og")
    given = [tmp_path / name for name in ("f.og", "rows.parquet", "out.npy")]
    command = ["predict", *given[:2], "-o", given[2], "--jobs", "16", "--quiet"]
    found = subprocess.run([sys.executable, "-c", COMMAND, *command], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    np.testing.assert_array_equal(np.load(given[2]), model.predict(table.to_pandas()))


def test_importing_the_command_line_leaves_the_environment_alone() -> None:
    code = (
        "import os; before = dict(os.environ); import oldgrowth.cli.main, oldgrowth.cli.entry\n"
        "print({name: value for name, value in os.environ.items() if before.get(name) != value})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{}"


def allow_threads(monkeypatch: pytest.MonkeyPatch, most: int, name: str = "") -> None:
    """Of the threads of this name."""
    real, started = threading.Thread.start, []

    def start(thread: threading.Thread) -> None:
        if thread.name.startswith(name):
            if len(started) >= most:
                raise RuntimeError("can't start new thread")
            started.append(thread)
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)


def test_no_thread_at_all(monkeypatch) -> None:
    allow_threads(monkeypatch, 0)
    model = RandomForestClassifier(4, n_jobs=4, random_state=0)
    with pytest.raises(ThreadLimitError, match="Lower n_jobs"):
        model.fit(X, Y)
    assert not hasattr(model, "forest_")
    monkeypatch.undo()
    model.fit(X, Y)
    allow_threads(monkeypatch, 0)
    for ask in (model.predict, model.apply, lambda x: model.predict(open_dataset(x))):
        with pytest.raises(ThreadLimitError):
            ask(np.tile(X, (3, 1)))


def test_fewer_threads_than_asked_for_do_the_work(monkeypatch) -> None:
    params = {"random_state": 0, "bucket_size": 400}
    whole = RandomForestClassifier(8, n_jobs=1, **params).fit(X, Y)
    allow_threads(monkeypatch, 2, "oldgrowth_")
    found = RandomForestClassifier(8, n_jobs=16, **params).fit(X, Y)
    assert found.forest_.digest() == whole.forest_.digest()
    monkeypatch.undo()
    allow_threads(monkeypatch, 1, "oldgrowth_")
    np.testing.assert_array_equal(found.predict_proba(X), whole.predict_proba(X))


def test_a_reader_without_threads_does_not_blame_the_file(tmp_path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,y\n1,2\n")
    file = SourceFile(str(path), None, *stamp_of(str(path), None))
    words = "Unknown error: Failed to launch worker thread: Resource temporarily unavailable"
    with pytest.raises(ThreadLimitError, match="refused to start a thread in addition"), file.blamed("CSV"):
        raise pa.ArrowException(words)
    with pytest.raises(OutOfMemoryError, match="malloc of size 640 failed"), file.blamed("CSV"):
        raise pa.ArrowMemoryError("malloc of size 640 failed")


def test_a_file_that_cannot_be_closed_is_not_damaged(tmp_path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,y\n1,2\n")
    file = SourceFile(str(path), None, *stamp_of(str(path), None))
    for words in ("error closing file", "Can't decrement id ref count (unable to close file, errno = 5)"):
        with pytest.raises(UnreadableFileError, match="operating system failed"), file.blamed("CSV"):
            raise OSError(words)


def test_a_forest_that_does_not_fit_memory(tmp_path, monkeypatch) -> None:
    path = tmp_path / "forest.og"
    RandomForestClassifier(2).fit(X, Y).save(path)

    def none(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 9.9 GiB")

    monkeypatch.setattr(oldgrowth.estimators.saved, "read_model", none)
    with pytest.raises(OutOfMemoryError, match=r"9\.9 GiB"):
        load(path, mmap=False)
