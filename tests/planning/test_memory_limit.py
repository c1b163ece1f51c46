"""The memory limit bounds the whole process; a limit that is too low is refused with a sufficient one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import oldgrowth
from oldgrowth.system.memory import resident_memory

pytestmark = pytest.mark.slow

ROWS, FEATURES = 1_700_000, 100

CHILD = """
import json, sys
import numpy as np
import oldgrowth
from oldgrowth.system.memory import peak_memory
path, params = sys.argv[1], json.loads(sys.argv[2])
data = oldgrowth.open_dataset(path, target="y")
sizes = {"n_estimators": 4, "max_depth": 6, "bucket_size": 20_000, "top_sample": 30_000}
model = getattr(oldgrowth, params.pop("kind"))(**sizes | {"random_state": 0, "n_jobs": 2} | params)
try:
    report = model.fit(data).fit_report_
    said = {"store": report.store, "reported": report.peak_memory, "rows": report.rows}
except oldgrowth.OldgrowthError as error:
    said = {"error": str(error)}
said["peak"] = peak_memory()  # since the process began; getrusage would count what its parent had
print(json.dumps(said))
"""


def fit(path: Path, **params: Any) -> dict[str, Any]:
    params = {"kind": "RandomForestClassifier", "spill_dir": str(path.parent)} | params
    found = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), json.dumps(params)], capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Path:
    """A file of 690 MB that repeats one incompressible block of rows."""
    path = tmp_path_factory.mktemp("large") / "rows.parquet"
    rng = np.random.default_rng(0)
    block = {f"f{i:03}": rng.random(25_000, dtype=np.float32) for i in range(FEATURES)}
    block["y"] = rng.integers(0, 3, 25_000)
    table = pa.table(block)
    with pq.ParquetWriter(path, table.schema, compression="none", use_dictionary=False) as writer:
        for _ in range(ROWS // 25_000):
            writer.write_table(table)
    return path


def least_limit(path: Path, **params: Any) -> int:
    """The limit named by a fit that is refused before anything is read."""
    refused = fit(path, memory_limit="100MB", **params)
    assert "is too low" in refused["error"], refused
    least = re.search(r"memory_limit='([\d,]+)MB'", refused["error"])
    assert least is not None
    assert refused["peak"] < 300 * 10**6
    return (int(least[1].replace(",", "")) + 5) * 10**6  # a process does not start the same each time


def fits_within(path: Path, limit: int, **params: Any) -> dict[str, Any]:
    said = fit(path, memory_limit=limit, **params)
    assert said.get("store") == "disk", said
    assert said["peak"] <= limit, f"{said['peak'] / 1e6:.0f} of {limit / 1e6:.0f} MB"
    return said


def test_a_file_larger_than_the_limit_and_than_the_least_that_is_named(large) -> None:
    """With few levels, buckets are far larger than planned: they are leaves, and must not be loaded whole."""
    limit = least_limit(large)
    assert large.stat().st_size > 1.1 * limit
    said = fits_within(large, limit)
    assert said["rows"] == ROWS
    assert said["reported"] <= 1.01 * said["peak"]  # the kernel adds up its pages now and then only


def test_a_large_top_sample_counts(large) -> None:
    sizes = {"top_sample": 600_000, "n_estimators": 2}
    limit = least_limit(large, **sizes)
    assert limit > least_limit(large)
    fits_within(large, limit, **sizes)


def test_many_top_samples_are_not_held_in_memory(tmp_path) -> None:
    """40 top trees that are grown on half of the rows each: their row numbers alone would be 80 MB."""
    n = 1_000_000
    rng = np.random.default_rng(0)
    columns = {f"f{i}": rng.integers(0, 256, n, dtype=np.uint8) for i in range(4)}
    pq.write_table(pa.table(columns | {"y": rng.integers(0, 3, n)}), path := tmp_path / "rows.parquet")
    sizes = {"n_estimators": 40, "trees_per_top": 1, "top_sample": n // 2, "max_depth": 30, "store": "disk"}
    fits_within(path, least_limit(path, **sizes), **sizes)


@pytest.mark.parametrize("rule", ["min_samples_split", "min_samples_leaf", "min_weight_fraction_leaf"])
def test_rules_that_keep_buckets_large_count(large, rule: str) -> None:
    said = fit(large, memory_limit="500MB", **{rule: 0.4})
    assert "is too low" in said["error"], said
    assert said["peak"] < 300 * 10**6  # before anything was read


def test_a_bucket_that_cannot_be_split_and_does_not_fit_is_refused(large) -> None:
    said = fit(large, memory_limit="500MB", min_impurity_decrease=0.5)
    assert f"{ROWS:,} rows must be in memory at once" in said["error"], said
    assert said["peak"] <= 500 * 10**6
    assert not [path for path in large.parent.iterdir() if path != large]


def test_trees_on_subsets_that_do_not_fit_memory_go_to_disk(tmp_path) -> None:
    """Planned with a few bytes for each row of each tree, though these trees turn out small."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, (110_000, 2)).astype(np.float32)
    y = rng.integers(0, 2, len(x))

    def fitted(**params: Any) -> oldgrowth.SubsetForestClassifier:
        return oldgrowth.SubsetForestClassifier(
            300, subset_size=100_000, random_state=0, spill_dir=tmp_path, **params
        ).fit(x, y)

    limit = resident_memory() + 200 * 10**6
    on_disk, in_memory = fitted(memory_limit=limit), fitted(memory_limit=4 * limit)
    assert [model.fit_report_.store for model in (on_disk, in_memory)] == ["disk", "memory"]
    assert on_disk.forest_.digest() == in_memory.forest_.digest()
    assert sum(stage.bytes_written for stage in on_disk.fit_report_.stages) > 0
    assert not list(tmp_path.iterdir())
    np.testing.assert_array_equal(on_disk.predict(x[:1000]), in_memory.predict(x[:1000]))
