"""Memory while reading: a few batches, however large the row groups are."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import oldgrowth

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


def in_a_process(code: str, *args: object) -> tuple[str, int]:
    """What a script prints first, and the peak of its process above what it had when it began to read."""
    script = PREPARE + code + REPORT
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, args)], capture_output=True, text=True, check=True
    )
    said, peak = done.stdout.rsplit("\n", 2)[:2]
    return said, int(peak)


PREPARE = """
import pathlib, sys, oldgrowth
import h5py
import numpy as np
from oldgrowth import RandomForestClassifier
from oldgrowth.memory import resident_memory
begin = resident_memory()
pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
"""
REPORT = """
now = int(pathlib.Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024
print(now - begin)
"""
FIT = """
data = oldgrowth.open_dataset(sys.argv[1], target="y")
try:
    oldgrowth.RandomForestClassifier(1, memory_limit=begin + int(sys.argv[2]), n_jobs=1).fit(data)
except oldgrowth.errors.MemoryLimitError as error:
    print(error)
"""
ROWS = 800_000


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("ending", "compression"), [("arrow", None), ("arrows", "lz4")])
def test_a_record_batch_too_large_for_the_limit_is_refused_before_it_is_read(tmp_path, compression, ending):
    columns = {f"c{i}": np.random.default_rng(i).normal(size=ROWS) for i in range(12)}
    table = pa.table(columns | {"y": np.arange(ROWS) % 2}).combine_chunks()
    path = tmp_path / f"a.{ending}"
    options = pa.ipc.IpcWriteOptions(compression=compression)
    new = pa.ipc.new_file if ending == "arrow" else pa.ipc.new_stream
    with new(str(path), table.schema, options=options) as writer:
        writer.write_batch(table.to_batches()[0])
    said, peak = in_a_process(FIT, path, 150 << 20)
    assert "is too low: at least" in said
    assert peak < 40 << 20


def test_how_large_record_batches_are(tmp_path):
    table = pa.table({"a": np.zeros(1000), "b": np.zeros(1000, np.float32), "y": ["x"] * 1000})
    for compression, least, most in ((None, 12_000, 14_000), ("zstd", 12_000, 14_000)):
        path = tmp_path / "a.arrow"
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with pa.ipc.new_file(str(path), table.schema, options=options) as writer:
            for rows in (10, 1000, 10):
                writer.write_batch(table.slice(0, rows).to_batches()[0])
        data = oldgrowth.open_dataset(path, features=["a"])
        assert data.n_rows == 1020
        assert least <= data.select(["a", "b"]).reading_bytes <= most
        if compression is None:
            assert 8_000 <= data.select(["a"]).reading_bytes < 9_000
            assert 15_000 < oldgrowth.open_dataset(path, "y").reading_bytes < 19_000


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_packed_columns_are_not_unpacked_in_memory(tmp_path):
    x = np.asfortranarray(np.random.default_rng(0).integers(0, 4, (6_000_000, 8), dtype=np.uint8))
    with (
        zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("X.npy", "w", force_zip64=True) as member,
    ):
        np.lib.format.write_array(member, x)
    code = "sums = sum(b.x.sum(0, dtype=np.int64) for b in oldgrowth.open_dataset(sys.argv[1])"
    code += ".batches(100_000, keep_bytes=True)); print(sums.tolist())"
    said, peak = in_a_process(code, tmp_path / "a.npz")
    assert said == str(x.sum(0, dtype=np.int64).tolist())
    assert peak < 34 << 20  # of 48 MB


def test_metadata_of_many_row_groups_counts(tmp_path):
    table = pa.table({f"c{i}": np.zeros(2) for i in range(50)})
    with pq.ParquetWriter(tmp_path / "a.parquet", table.schema) as writer:
        for _ in range(100):
            writer.write_table(table)
    size = pq.read_metadata(tmp_path / "a.parquet").serialized_size
    assert size > 300_000
    assert oldgrowth.open_dataset(tmp_path / "a.parquet").reading_bytes > 9 * size


def test_chunks_of_hdf5_count(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", data=np.zeros((5000, 4)), chunks=(5000, 4), compression="gzip")
        file.create_dataset("y", data=np.zeros(5000))
    assert oldgrowth.open_dataset(tmp_path / "a.h5").reading_bytes == 2 * 5000 * 4 * 8
