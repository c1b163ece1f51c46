"""Memory while reading: a few batches, however large the row groups are."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import zipfile

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import oldgrowth
from oldgrowth.datasets.parquet_footer import LARGE_FOOTER

pytestmark = pytest.mark.slow

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
    """The first line that a script prints, and its peak memory above the level before reading."""
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
from oldgrowth.system.memory import resident_memory
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


def test_packed_columns_are_unpacked_where_a_fit_spills(tmp_path, monkeypatch):
    x = np.asfortranarray(np.arange(60_000.0).reshape(20_000, 3))
    np.savez_compressed(tmp_path / "a.npz", X=x, y=np.arange(20_000) % 2)
    folders = []
    made = tempfile.SpooledTemporaryFile
    monkeypatch.setattr(
        tempfile, "SpooledTemporaryFile", lambda size, dir: folders.append(dir) or made(size, dir=dir)
    )
    (tmp_path / "spill").mkdir()
    data = oldgrowth.open_dataset(tmp_path / "a.npz")
    oldgrowth.RandomForestClassifier(1, spill_dir=tmp_path / "spill").fit(data)
    assert set(folders) == {str(tmp_path / "spill")}


def test_an_archive_of_many_arrays_is_opened_once(tmp_path, monkeypatch):
    np.savez(tmp_path / "a.npz", X=np.zeros((2, 2)), **{f"m{i}": np.zeros(2) for i in range(50)})
    opened = []
    real = zipfile.ZipFile.__init__
    monkeypatch.setattr(zipfile.ZipFile, "__init__", lambda *a, **k: opened.append(1) or real(*a, **k))
    data = oldgrowth.open_dataset(tmp_path / "a.npz", target="m3")
    assert len(opened) <= 3 and "m49" in data._column_names()


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


@pytest.mark.parametrize(
    ("kind", "columns", "options"),
    [
        ("bytes", 100, {}),
        ("floats", 100, {}),
        ("floats", 40, {"use_dictionary": False, "compression": "zstd"}),
        ("few floats", 100, {"data_page_version": "2.0", "compression": "zstd"}),
    ],
)
def test_what_reading_parquet_takes_is_known_from_its_pages(tmp_path, kind, columns, options):
    rng = np.random.default_rng(0)
    shape = (100_000, columns)
    x = (
        rng.integers(0, 200, shape, dtype=np.uint8)
        if kind == "bytes"
        else rng.random(shape, dtype=np.float32)
    )
    if kind == "few floats":
        x = np.round(x, 2)
    pq.write_table(pa.table({f"c{i}": x[:, i] for i in range(columns)}), tmp_path / "a.parquet", **options)
    code = """
import pyarrow as pa
data = oldgrowth.open_dataset(sys.argv[1])
for _ in data.batches(1000):
    pass
print(data.reading_bytes, pa.default_memory_pool().max_memory())
"""
    said, _ = in_a_process(code, tmp_path / "a.parquet")
    counted, taken = map(int, said.split())
    assert taken < counted < 1.5 * taken + (40 << 20)


def write_groups(path, groups, width):
    table = pa.table(
        {f"c{i}": np.zeros(2) for i in range(width)} | {"y": pa.array(["a", "b"], pa.large_string())}
    )
    with pq.ParquetWriter(path, table.schema) as writer:
        for _ in range(groups):
            writer.write_table(table)
    return path


def test_metadata_of_many_row_groups_counts(tmp_path):
    path = write_groups(tmp_path / "a.parquet", 100, 50)
    assert 900 * 100 * 51 < oldgrowth.open_dataset(path, features=["c0"]).reading_bytes < 2e7


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_large_metadata_is_not_read_to_open_a_file_and_given_back_after_a_pass(tmp_path):
    path = write_groups(tmp_path / "a.parquet", 400, 120)
    meta = pq.read_metadata(path)
    assert meta.serialized_size > LARGE_FOOTER
    said, peak = in_a_process(
        "data = oldgrowth.open_dataset(sys.argv[1], target='y'); print(data.n_rows)", path
    )
    assert said == "800" and peak < 12 << 20  # of 45 MB
    code = """
data = oldgrowth.open_dataset(sys.argv[1], target="y")
for _ in range(3):
    assert sum(batch.rows for batch in data.batches(100)) == 800
    assert resident_memory() - begin < 30 << 20
print(data.reading_bytes)
"""
    said, peak = in_a_process(code, path)
    assert (40 << 20) < peak < int(said)


def test_a_large_footer_is_opened_as_a_small_one(tmp_path, monkeypatch):
    kinds = {
        "d": pa.duration("s"),
        "l": pa.large_string(),
        "t": pa.timestamp("us", "UTC"),
        "n": pa.list_(pa.int8()),
    }
    values = {"n": [[1], [2]], "l": ["u", "v"]}
    columns = {name: pa.array(values.get(name, [1, 2]), kind) for name, kind in kinds.items()}
    columns |= {
        "c": pa.array(["x", "y"]).dictionary_encode(),
        "a": pa.array([1.0, None]),
        "\u00fc": [True, False],
    }
    for i, options in enumerate([{}, {"version": "1.0"}, {"store_schema": False}]):
        path = tmp_path / f"{i}.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=1, **options)
        seen = []
        for large in (1 << 22, 0):
            monkeypatch.setattr("oldgrowth.datasets.parquet.LARGE_FOOTER", large)
            data = oldgrowth.open_dataset(path, target="c", features=["a"])
            seen.append((data._schema, data.n_rows, next(batch.x.tolist() for batch in data.batches(1))))
        assert seen[0] == seen[1]


def test_a_large_footer_that_is_damaged(tmp_path, monkeypatch):
    path = write_groups(tmp_path / "a.parquet", 3, 3)
    whole = path.read_bytes()
    monkeypatch.setattr("oldgrowth.datasets.parquet.LARGE_FOOTER", 0)
    begin = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for at in range(begin, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with contextlib.suppress(oldgrowth.errors.OldgrowthError):
            list(oldgrowth.open_dataset(path, target="y").batches(10))


def test_predictions_count_what_reading_takes(tmp_path):
    path = write_groups(tmp_path / "a.parquet", 3, 3)
    data = oldgrowth.open_dataset(path, target="y")
    forest = oldgrowth.RandomForestClassifier(1).fit(data)
    data._meta_bytes = 10**12
    with pytest.raises(oldgrowth.errors.MemoryLimitError):
        forest.predict(data)


def test_chunks_of_hdf5_count(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", data=np.zeros((5000, 4)), chunks=(5000, 4), compression="gzip")
        file.create_dataset("y", data=np.zeros(5000))
    assert oldgrowth.open_dataset(tmp_path / "a.h5").reading_bytes == 2 * 5000 * 4 * 8
