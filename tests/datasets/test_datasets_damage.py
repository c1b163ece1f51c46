"""Truncated, corrupted or changed files: an error names them, never taken for the end of the data."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataset_sources import SOURCES, make_truth
from oldgrowth import open_dataset
from oldgrowth.datasets import Dataset
from oldgrowth.errors import ChangedSourceError, DamagedFileError, OldgrowthError, PythonObjectsError

TRUTH = make_truth(1200)
CHECKED = ["parquet", "feather", "arrow_stream_file", "csv_gz_folder", "npy", "npz", "npz_compressed", "hdf5",
           "hdf5_columns"]  # fmt: skip
FILES = [*CHECKED, "csv"]


def made(name: str, folder: Path) -> tuple[tuple, Path]:
    """Arguments of open_dataset, and a file of the dataset."""
    args = SOURCES[name](TRUTH, folder).args
    path = Path(args[0])
    return args, sorted(path.iterdir())[0] if path.is_dir() else path


def count(data: Dataset) -> int:
    return sum(batch.rows for batch in data.batches(500))


@pytest.mark.parametrize("name", CHECKED)
def test_cut_anywhere(name, tmp_path):
    args, path = made(name, tmp_path)
    whole = path.read_bytes()
    cuts = np.random.default_rng(0).integers(1, len(whole), 25).tolist()
    for cut in [*cuts, 1, len(whole) - 8, len(whole) - 1]:
        path.write_bytes(whole[:cut])
        with pytest.raises(DamagedFileError, match=path.name):
            count(open_dataset(*args))


@pytest.mark.parametrize("name", CHECKED)
def test_any_byte_may_change(name, tmp_path):
    """Only some formats have checksums; in the others there must be no other error, and no rows missing."""
    args, path = made(name, tmp_path)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            assert count(open_dataset(*args)) == TRUTH.rows
        except OldgrowthError:
            refused += 1
    assert refused or name == "npy"


@pytest.mark.parametrize("name", ["parquet", "feather", "arrow_stream_file", "csv_gz_folder", "npy"])
def test_more_bytes_than_the_format_has(name, tmp_path):
    args, path = made(name, tmp_path)
    path.write_bytes(path.read_bytes() + b"more bytes")
    with pytest.raises(DamagedFileError, match=path.name):
        count(open_dataset(*args))


def test_pages_with_checksums(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"a": np.zeros(1000), "b": np.ones(1000)})
    pq.write_table(
        table,
        path,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
        write_page_checksum=True,
    )
    content = bytearray(path.read_bytes())
    content[4000] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match="CRC"):
        count(open_dataset(path))


def test_stream_cut_between_messages(tmp_path):
    """Without the end-of-stream marker, pyarrow reads such a file to its end without an error."""
    sink = io.BytesIO()
    writer = pa.ipc.new_stream(sink, TRUTH.table.schema)
    writer.write_table(TRUTH.table.slice(0, 500))
    (tmp_path / "a.arrows").write_bytes(sink.getvalue())
    with pytest.raises(DamagedFileError, match="end-of-stream marker"):
        open_dataset(tmp_path / "a.arrows")


def test_two_streams_in_a_file(tmp_path):
    (args, path) = made("arrow_stream_file", tmp_path)
    path.write_bytes(path.read_bytes() * 2)
    with pytest.raises(DamagedFileError, match="the stream ends at byte"):
        count(open_dataset(*args))


@pytest.mark.parametrize("name", FILES)
def test_rewritten_between_passes(name, tmp_path):
    args, path = made(name, tmp_path)
    data = open_dataset(*args)
    assert count(data) == TRUTH.rows
    status = os.stat(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    with pytest.raises(ChangedSourceError, match=rf"{path.name} .*was modified"):
        next(data.batches(1))
    path.write_bytes(path.read_bytes() + b"1")
    with pytest.raises(ChangedSourceError, match=rf"{path.name} .*size"):
        count(data)
    path.unlink()
    with pytest.raises(ChangedSourceError, match=rf"{path.name} .*was removed"):
        count(data)


@pytest.mark.parametrize("name", FILES)
def test_touched_while_read(name, tmp_path):
    args, path = made(name, tmp_path)
    batches = open_dataset(*args).batches(100)
    next(batches)
    os.utime(path, ns=(0, 0))
    with pytest.raises(ChangedSourceError, match=path.name):
        list(batches)


@pytest.mark.parametrize("name", FILES)
def test_cut_while_read(name, tmp_path):
    args, path = made(name, tmp_path)
    batches = open_dataset(*args).batches(100)
    next(batches)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(ChangedSourceError, match=path.name):
        list(batches)


def test_other_rows_at_the_same_size_and_time(tmp_path):
    path = tmp_path / "b.csv"
    (tmp_path / "a.csv").write_text("v\n1\n")
    path.write_text("v\n1\n2\n")
    data = open_dataset(tmp_path)
    assert count(data) == 3
    status = os.stat(path)
    path.write_text("v\n123\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(ChangedSourceError, match=r"b.csv .*had 2 rows and now has 1"):
        count(data)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_checksums_of_members(save, tmp_path):
    path = tmp_path / "a.npz"
    x = np.arange(4000.0).reshape(1000, 4)
    save(path, X=x)
    content = bytearray(path.read_bytes())
    at = content.find(x[500].tobytes()) if save is np.savez else len(content) // 2
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"a.npz"):
        count(open_dataset(path))


@pytest.mark.parametrize("form", ["parquet", "feather", "arrows"])
def test_damaged_labels(form, tmp_path):
    """Codes and offsets of text must be checked before they are followed."""
    path = tmp_path / f"a.{form}"
    text = pa.array(["clay", "sand", "silt", "peat"] * 50)
    table = pa.table({"a": np.arange(200), "y": text, "z": text.dictionary_encode()})
    if form == "parquet":
        pq.write_table(table, path, compression="none")
    else:
        make = pa.ipc.new_file if form == "feather" else pa.ipc.new_stream
        with make(path, table.schema) as writer:
            writer.write_table(table)
    whole = path.read_bytes()
    rng = np.random.default_rng(2)
    for target in ["y", "z"] * 100:
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        with suppress(OldgrowthError):
            assert count(open_dataset(path, target, ["a"])) == 200


def test_url_written_between_passes(tmp_path):
    import fsspec

    args = SOURCES["memory_url"](TRUTH, tmp_path).args
    data = open_dataset(*args)
    SOURCES["memory_url"](TRUTH, tmp_path)
    with pytest.raises(ChangedSourceError, match="was modified"):
        count(data)
    fsspec.filesystem("memory").rm(f"/{tmp_path.name}/a.parquet")
    with pytest.raises(ChangedSourceError, match="was removed"):
        count(data)


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".npy", ".npz", ".h5", ".csv.gz"])
def test_not_of_the_format(ending, tmp_path):
    path = tmp_path / f"a{ending}"
    path.write_bytes(b"nothing of the kind\n" * 100)
    with pytest.raises(DamagedFileError, match=path.name):
        open_dataset(path)


def test_objects_are_not_unpickled(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    with pytest.raises(PythonObjectsError, match=r"a.npy contains pickled Python objects.*astype"):
        open_dataset(tmp_path / "a.npy")


def test_old_feather(tmp_path):
    (tmp_path / "a.feather").write_bytes(b"FEA1" + bytes(100))
    with pytest.raises(DamagedFileError, match="version 1"):
        open_dataset(tmp_path / "a.feather")
