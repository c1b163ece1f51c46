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
for batch in oldgrowth.open_dataset(sys.argv[1], target="label").batches(20_000):
    pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def peak_memory(path) -> int:
    done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(sys.platform == "win32", reason="needs the resource module")
def test_large_row_group(tmp_path):
    rows, features = 3_000_000, 8
    rng = np.random.default_rng(0)
    columns = {f"c{i}": rng.normal(size=rows).astype(np.float32) for i in range(features)}
    table = pa.table({**columns, "label": np.array(["soil", "water"])[rng.integers(0, 2, rows)]})
    for name, group in (("one", rows), ("many", 30_000)):
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=group)
    path = tmp_path / "one.parquet"
    assert pq.ParquetFile(path).num_row_groups == 1 and path.stat().st_size > 80 << 20
    assert peak_memory(path) - peak_memory(tmp_path / "many.parquet") < 30 << 20
