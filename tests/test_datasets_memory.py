"""Memory while reading: a few batches, however large the row groups are."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

READ = """
import resource, sys, oldgrowth
data = oldgrowth.open_dataset(sys.argv[1], target="label")
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
for batch in data.batches(20_000):
    if batch.first_row == 200_000:
        early = peak()
print(peak() - early)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs the resource module")
def test_large_row_group(tmp_path):
    rows, features = 3_000_000, 8
    rng = np.random.default_rng(0)
    columns = {f"c{i}": rng.normal(size=rows).astype(np.float32) for i in range(features)}
    table = pa.table({**columns, "label": np.array(["soil", "water"])[rng.integers(0, 2, rows)]})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, row_group_size=rows)
    assert pq.ParquetFile(path).num_row_groups == 1 and path.stat().st_size > 80 << 20
    done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 24 << 20
