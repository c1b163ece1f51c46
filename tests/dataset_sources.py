"""The same rows as every kind of source, for the tests of datasets."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import fsspec
import h5py
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

from oldgrowth.datasets import CodedLabels

NAMES = ["red", "green", "count", "flag", "gap"]


@dataclass
class Truth:
    """The rows that every source must yield."""

    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    table: pa.Table

    @property
    def rows(self) -> int:
        return len(self.x)


def make_truth(rows: int = 2500, seed: int = 0) -> Truth:
    rng = np.random.default_rng(seed)
    gap = rng.normal(size=rows)
    missing = rng.random(rows) < 0.3
    columns = {
        "red": rng.normal(size=rows),
        "green": rng.normal(size=rows).astype(np.float32),
        "count": rng.integers(0, 250, rows).astype(np.uint8),
        "flag": rng.random(rows) < 0.5,
        "gap": np.where(missing, np.nan, gap),
    }
    x = np.column_stack([values.astype(np.float32) for values in columns.values()])
    y = rng.integers(-3, 4, rows)
    weights = np.round(rng.random(rows), 3)
    table = pa.table(
        {**columns, "gap": pa.array(gap, mask=missing), "label": y, "w": weights, "id": np.arange(rows)}
    )
    return Truth(x, y, weights, table)


@dataclass
class Source:
    """Arguments of open_dataset, and properties of the resulting dataset."""

    args: tuple[Any, ...]
    options: dict[str, Any]
    named: bool = True
    counted: bool = True
    carries: bool = True


def table_source(source: Any, counted: bool = True) -> Source:
    return Source((source, "label", NAMES, "w"), {}, counted=counted)


def split(truth: Truth, write: Callable[[pa.Table, Path], None], folder: Path, ending: str) -> Path:
    folder.mkdir()
    cuts = [0, 700, 701, truth.rows]
    for i, (start, stop) in enumerate(pairwise(cuts)):
        write(truth.table.slice(start, stop - start), folder / f"part-{i}{ending}")
    return folder


def parquet(truth: Truth, tmp: Path) -> Source:
    pq.write_table(truth.table, tmp / "a.parquet", row_group_size=333)
    return table_source(tmp / "a.parquet")


def parquet_folder(truth: Truth, tmp: Path) -> Source:
    return table_source(str(split(truth, pq.write_table, tmp / "parts", ".parquet")))


def parquet_glob(truth: Truth, tmp: Path) -> Source:
    return table_source(f"{split(truth, pq.write_table, tmp / 'parts', '.parquet')}/part-*.parquet")


def parquet_list(truth: Truth, tmp: Path) -> Source:
    folder = split(truth, pq.write_table, tmp / "parts", ".parquet")
    (folder / "part-0.parquet").rename(folder / "z.parquet")
    return table_source([folder / "z.parquet", folder / "part-1.parquet", folder / "part-2.parquet"])


def feather(truth: Truth, tmp: Path) -> Source:
    pyarrow.feather.write_feather(truth.table, tmp / "a.feather", compression="lz4", chunksize=333)
    return table_source(tmp / "a.feather")


def arrow_stream_file(truth: Truth, tmp: Path) -> Source:
    with pa.ipc.new_stream(tmp / "a.arrows", truth.table.schema) as writer:
        writer.write_table(truth.table, max_chunksize=333)
    return table_source(tmp / "a.arrows", counted=False)


def csv(truth: Truth, tmp: Path) -> Source:
    pyarrow.csv.write_csv(truth.table, tmp / "a.csv")
    return table_source(tmp / "a.csv", counted=False)


def csv_gz_folder(truth: Truth, tmp: Path) -> Source:
    def write(table: pa.Table, path: Path) -> None:
        with gzip.open(path, "wb") as file:
            pyarrow.csv.write_csv(table, file)

    return table_source(split(truth, write, tmp / "parts", ".csv.gz"), counted=False)


def memory_url(truth: Truth, tmp: Path) -> Source:
    with fsspec.open(f"memory://{tmp.name}/a.parquet", "wb") as file:
        pq.write_table(truth.table, file, row_group_size=333)
    return table_source(f"memory://{tmp.name}/*.parquet")


def memory_url_arrow(truth: Truth, tmp: Path) -> Source:
    with fsspec.open(f"memory://{tmp.name}/a.arrow", "wb") as file:
        pyarrow.feather.write_feather(truth.table, file, chunksize=333)
    return table_source(f"memory://{tmp.name}/a.arrow")


def file_url(truth: Truth, tmp: Path) -> Source:
    pyarrow.csv.write_csv(truth.table, tmp / "a.csv")
    return table_source(f"file://{tmp}/a.csv", counted=False)


def pandas(truth: Truth, tmp: Path) -> Source:
    return table_source(truth.table.to_pandas())


def polars(truth: Truth, tmp: Path) -> Source:
    return table_source(pl.from_arrow(truth.table))


def lazy_frame(truth: Truth, tmp: Path) -> Source:
    pq.write_table(truth.table, tmp / "a.parquet", row_group_size=333)
    return table_source(pl.scan_parquet(tmp / "a.parquet"), counted=False)


def arrow_table(truth: Truth, tmp: Path) -> Source:
    return table_source(truth.table)


class Exporter:
    """An object that can only export a stream, any number of times."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        reader = pa.RecordBatchReader.from_batches(self._table.schema, self._table.to_batches(333))
        return reader.__arrow_c_stream__(requested_schema)


def arrow_stream(truth: Truth, tmp: Path) -> Source:
    return table_source(Exporter(truth.table), counted=False)


def matrix(source: Any, target: Any, weight: Any, named: bool = False, **extra: Any) -> Source:
    return Source((source, target, NAMES if named else None, weight), extra, named=named, carries=False)


def array(truth: Truth, tmp: Path) -> Source:
    return matrix(truth.x.astype(np.float64), truth.y, truth.weights)


def array_with_all(truth: Truth, tmp: Path) -> Source:
    whole = np.column_stack([truth.y, truth.x, truth.weights])
    return matrix(whole, 0, -1)


def memmap(truth: Truth, tmp: Path) -> Source:
    mapped = np.memmap(tmp / "x.dat", np.float32, "w+", shape=truth.x.shape)
    mapped[:] = truth.x
    return matrix(mapped, truth.y, truth.weights, named=True)


def npy(truth: Truth, tmp: Path) -> Source:
    for name, values in (("x", truth.x), ("y", truth.y), ("w", truth.weights)):
        np.save(tmp / f"{name}.npy", values)
    return matrix(tmp / "x.npy", tmp / "y.npy", str(tmp / "w.npy"), named=True)


def npy_by_column(truth: Truth, tmp: Path) -> Source:
    np.save(tmp / "x.npy", np.asfortranarray(truth.x))
    return matrix(tmp / "x.npy", truth.y, truth.weights)


def npz(truth: Truth, tmp: Path) -> Source:
    np.savez(tmp / "a.npz", X=truth.x, y=truth.y, w=truth.weights, id=np.arange(truth.rows))
    return Source((tmp / "a.npz", None, None, "w"), {}, named=False)


def npz_compressed(truth: Truth, tmp: Path) -> Source:
    np.savez_compressed(tmp / "a.npz", bands=np.asfortranarray(truth.x), y=truth.y, w=truth.weights)
    return Source((tmp / "a.npz", "y", "bands", "w"), {}, named=False, carries=False)


def hdf5(truth: Truth, tmp: Path) -> Source:
    with h5py.File(tmp / "a.h5", "w") as file:
        file.create_dataset("train/X", data=truth.x, chunks=(100, 5), compression="gzip")
        file["train/y"], file["train/w"], file["id"] = truth.y, truth.weights, np.arange(truth.rows)
    return Source((tmp / "a.h5", "train/y", "train/X", "/train/w"), {}, named=False)


def hdf5_columns(truth: Truth, tmp: Path) -> Source:
    with h5py.File(tmp / "a.h5", "w") as file:
        for i, name in enumerate(NAMES):
            file[name] = truth.x[:, i]
        file["label"], file["w"], file["id"] = truth.y.astype(">i4"), truth.weights, np.arange(truth.rows)
    return table_source(tmp / "a.h5")


def batch_callable(truth: Truth, tmp: Path) -> Source:
    def batches() -> Any:
        for start in range(0, truth.rows, 333):
            part = slice(start, start + 333)
            yield truth.x[part], truth.y[part], truth.weights[part]

    return Source((batches, None, NAMES, None), {}, counted=False, carries=False)


SOURCES: dict[str, Callable[[Truth, Path], Source]] = {
    make.__name__: make
    for make in (
        parquet, parquet_folder, parquet_glob, parquet_list, feather, arrow_stream_file, csv, csv_gz_folder,
        memory_url, memory_url_arrow, file_url, pandas, polars, lazy_frame, arrow_table, arrow_stream, array,
        array_with_all, memmap, npy, npy_by_column, npz, npz_compressed, hdf5, hdf5_columns, batch_callable,
    )
}  # fmt: skip


def plain(y: Any) -> np.ndarray:
    """Labels as an array, coded or not."""
    return y.decoded() if isinstance(y, CodedLabels) else np.asarray(y)
