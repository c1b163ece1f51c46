"""Memory while reading: a few batches, however large the row groups are."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

READ = """
import pathlib, sys, oldgrowth
for batch in oldgrowth.open_dataset(sys.argv[1], target="label").batches(20_000):
    pass
# Not ru_maxrss: that of a child begins with what its parent had.
print(pathlib.Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


def peak_memory(path) -> int:
    done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True)
    return int(done.stdout) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_large_row_group(tmp_path):
    rows, features = 3_000_000, 8
    rng = np.random.default_rng(0)
    columns = {f"c{i}": rng.normal(size=rows).astype(np.float32) for i in range(features)}
    table = pa.table({**columns, "label": np.array(["soil", "water"])[rng.integers(0, 2, rows)]})
    large, small = tmp_path / "large.parquet", tmp_path / "small.parquet"
    pq.write_table(table, large, row_group_size=rows)
    pq.write_table(table.slice(0, rows // 30), small)
    assert pq.ParquetFile(large).num_row_groups == 1 and large.stat().st_size > 80 << 20
    # As a whole it would take 200 MB: compressed, decoded, and as rows.
    assert peak_memory(large) - peak_memory(small) < 100 << 20
