"""Arrow's threads, if the system refuses some: fewer do the work, or an error says it; no hang, no crash."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")

STACK = 2**30  # addresses that each thread takes, many more than its heap
READ = """
import resource, sys
import pyarrow as pa, pyarrow.csv, pyarrow.parquet
import oldgrowth, oldgrowth.datasets.opening
from oldgrowth.datasets import arrow_threads
if sys.argv[3] == "refused":  # by the system, however many addresses seem to be left
    arrow_threads.addresses_for = lambda threads: True
    arrow_threads.check_address_space = lambda: None
pa.set_memory_pool(pa.system_memory_pool())
pa.set_cpu_count(4)
here = int(open("/proc/self/statm").read().split()[0]) * 4096
limit = here + int((float(sys.argv[2]) + 0.5) * {stack})
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    data = oldgrowth.open_dataset(sys.argv[1], target="y")
    print("rows", sum(batch.rows for batch in data.batches(1000)), pa.cpu_count())
except oldgrowth.errors.OldgrowthError as error:
    print(type(error).__name__, error)
"""


def read(path: Path, threads: int, how: str = "") -> str:
    """What is said of reading this file with room for so many threads."""
    code = READ.format(stack=STACK)
    found = subprocess.run(
        [sys.executable, "-c", code, str(path), str(threads), how],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (STACK, STACK)),
    )
    assert found.returncode == 0, (found.returncode, found.stderr)
    return found.stdout


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.table({"a": range(5000), "b": range(5000), "y": [0, 1] * 2500})


@pytest.mark.parametrize("threads", [0, 2])
def test_parquet(table: pa.Table, tmp_path: Path, threads: int) -> None:
    pa.parquet.write_table(table, tmp_path / "rows.parquet")
    said = read(tmp_path / "rows.parquet", threads, "refused")
    assert said.startswith(f"rows 5000 {threads}" if threads else "ThreadLimitError"), said


@pytest.mark.parametrize("threads", [0, 3])
def test_arrow_leaves_addresses_for_another_thread(table: pa.Table, tmp_path: Path, threads: int) -> None:
    pa.parquet.write_table(table, tmp_path / "rows.parquet")
    said = read(tmp_path / "rows.parquet", threads)
    assert said.startswith("rows 5000 2" if threads else "OutOfMemoryError"), said


@pytest.mark.parametrize("threads", [1, 5])
def test_csv(table: pa.Table, tmp_path: Path, threads: int) -> None:
    pa.csv.write_csv(table, tmp_path / "rows.csv")
    said = read(tmp_path / "rows.csv", threads)
    assert said.startswith("rows 5000 4" if threads == 5 else "ThreadLimitError"), said
    if threads < 5:
        assert "Lower n_jobs" in said and "of addresses (ulimit -v)" in said
