"""Rows of the fits whose memory is measured, as files of all kinds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_ROWS_AT_A_TIME = 200_000


@dataclass(frozen=True)
class Data:
    """Rows that are the same each time. No classes: a regression.

    `values` is "bytes", "words", "floats" or "nodata", where half of the rows are one and the same. `source`
    is "array", "memmap", "parquet", "csv", "arrow" (a single batch), "npz" (compressed, in Fortran's order)
    or "scene" (a GeoTIFF with a band for each feature, and labels).
    """

    rows: int
    features: int
    values: str = "bytes"
    classes: int = 3
    source: str = "parquet"
    weights: bool = False
    text: bool = False  # labels are words
    text_columns: int = 0  # features that are words, of tables
    ids: bool = False  # each row has a label of its own
    group: int | None = None  # rows of a row group of Parquet, or lines of a block of a scene
    width: int = 2000  # pixels of a line of a scene
    patch: int = 3  # of a scene
    seed: int = 0

    def write(self, path: Path) -> None:
        path.mkdir()
        if self.source == "npz":
            x = np.empty((self.rows, self.features), dtype=np.uint8, order="F")
            y = np.empty(self.rows, dtype=np.uint8)
            for first, block, targets, _ in self._blocks():
                x[first : first + len(block)], y[first : first + len(block)] = block, targets
            np.savez_compressed(path / "rows.npz", X=x, y=y)
            return
        if self.source == "scene":
            self._write_scene(path)
            return
        if self.source in ("array", "memmap"):
            dtype = {"bytes": np.uint8, "nodata": np.uint8, "words": np.uint16, "floats": np.float32}[
                self.values
            ]
            shape = (self.rows, self.features)
            x = np.lib.format.open_memmap(path / "x.npy", mode="w+", dtype=dtype, shape=shape)
            sides = np.empty((2, self.rows))
            for first, block, y, w in self._blocks():
                part = slice(first, first + len(block))
                x[part], sides[0, part], sides[1, part] = block, y, w
            x.flush()
            np.save(path / "y.npy", self._targets(sides[0]))
            np.save(path / "w.npy", sides[1])
            return
        self._write_table(path / f"rows.{self.source}")

    def _write_scene(self, path: Path) -> None:
        import rasterio

        dtype = {"words": "uint16", "floats": "float32"}.get(self.values, "uint8")
        shape = {
            "width": self.width,
            "height": self.rows // self.width,
            "crs": "EPSG:32637",
            "compress": "deflate",
        }
        shape |= {
            "driver": "GTiff",
            "transform": rasterio.Affine(30, 0, 8e5, 0, -30, 8e5),
            "blockysize": self.group or 256,
        }
        shape |= {"tiled": True, "blockxsize": 256} if self.group is None else {}
        x, y = np.empty((self.features, self.rows), dtype), np.empty(self.rows)
        for first, block, targets, _ in self._blocks():
            x[:, first : first + len(block)], y[first : first + len(block)] = block.T, targets
        lines = (-1, self.rows // self.width, self.width)
        with rasterio.open(
            path / "rows.tif",
            "w",
            count=self.features,
            dtype=dtype,
            nodata=255 if self.values == "nodata" else None,
            **shape,
        ) as file:
            file.write(x.reshape(lines))
        with rasterio.open(path / "y.tif", "w", count=1, dtype="float32", **shape) as file:
            file.write(y.reshape(lines).astype(np.float32))

    def _write_table(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet as pq

        writer: Any = None
        tables: list[Any] = []
        for first, block, y, w in self._blocks():
            columns = {f"f{i:04}": self._column(block[:, i], i) for i in range(self.features)}
            columns["y"] = self._targets(np.arange(first, first + len(y)) if self.ids else y)
            table = pa.table(columns | ({"w": w} if self.weights else {}))
            tables.append(table)
            if self.source == "arrow":
                continue
            if writer is None:
                make = pq.ParquetWriter if self.source == "parquet" else pyarrow.csv.CSVWriter
                writer = make(path, table.schema)
            writer.write_table(tables.pop(), *([self.group] if self.group else []))
        if writer is not None:
            writer.close()
            return
        with pa.ipc.new_file(path, tables[0].schema) as file:
            file.write_batch(pa.concat_tables(tables).combine_chunks().to_batches()[0])

    def _column(self, values: Any, number: int) -> Any:
        """Words have as many levels as there are values."""
        if number >= self.text_columns:
            return np.ascontiguousarray(values)
        import pyarrow as pa

        levels, codes = np.unique(values, return_inverse=True)
        words = [f"{int(level)} is the word for a level" for level in levels]
        return pa.DictionaryArray.from_arrays(codes.astype(np.int32), words).cast(pa.string())

    def _targets(self, y: Any) -> Any:
        if not self.classes:
            return y
        return np.char.add("label ", y.astype(np.int64).astype(str)) if self.text else y.astype(np.int64)

    def _blocks(self) -> Iterator[tuple[int, Any, Any, Any]]:
        for first in range(0, self.rows, _ROWS_AT_A_TIME):
            n = min(_ROWS_AT_A_TIME, self.rows - first)
            rng = np.random.default_rng([self.seed, first])
            block = self._values(rng, n)
            key = block[:, : min(4, self.features)].astype(np.float64).sum(axis=1)
            noise = rng.random(n)
            y = key * (1 + 0.3 * noise)
            if self.classes:
                y = np.where(noise < 0.3, rng.integers(0, self.classes, n), y.astype(np.int64) % self.classes)
            yield first, block, y, rng.integers(1, 4, n).astype(np.float64)

    def _values(self, rng: np.random.Generator, n: int) -> Any:
        shape = (n, self.features)
        if self.values == "floats":
            return rng.random(shape, dtype=np.float32)
        if self.values == "words":
            return rng.integers(0, 3000, shape, dtype=np.uint16)
        block = rng.integers(0, 200, shape, dtype=np.uint8)
        if self.values == "nodata":
            block[rng.random(n) < 0.5] = 255
        return block
