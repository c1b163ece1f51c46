# ruff: noqa: E501 - a table of cases
"""Fits drawn over everything that memory depends on, each in a process of its own, against its memory limit.

    python tests/torture/memory_grid.py --cases 100 --seed 0     # drawn
    python tests/torture/memory_grid.py --named all              # fits that once went beyond their limit

A case is wrong if its peak is above 1.05 times the limit, if it was refused although it takes at most 0.8 times the
limit when nothing is refused, or if the limit that the refusal names is refused again or does not do.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

HIGHEST, WRONGLY_REFUSED = 1.05, 0.8
_CHILD = Path(__file__).with_name("memory_case.py")
_ROWS_AT_A_TIME = 200_000


@dataclass(frozen=True)
class Data:
    """Rows that are the same each time: `values` is "bytes", "words", "floats" or "nodata", where half of the rows
    are one and the same. No classes: a regression. `source` is "array", "memmap", "parquet", "csv", "arrow" (a single
    batch), "npz" (compressed, in Fortran's order) or "scene" (a GeoTIFF with a band for each feature, and labels)."""

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


@dataclass(frozen=True)
class Case:
    name: str
    data: Data
    limit: float  # in MB
    kind: str = "RandomForestClassifier"  # or "cli", which saves the forest
    params: dict[str, Any] = field(default_factory=dict)
    named_runs: bool = True  # False: at the limit that is named the fit would take days


@dataclass(frozen=True)
class Verdict:
    case: Case
    wrong: str  # nothing if all is well
    found: dict[str, Any]

    def __str__(self) -> str:
        found, case = self.found, self.case
        said = f"peak {found['peak']:.0f} of {case.limit:.0f} MB = {found['peak'] / case.limit:.2f}x"
        said += f", from {found['start']:.0f}, {found['seconds']:.1f} s, " + found.get("store", "not fitted")
        if "least" in found:
            said += f", refused, {found['least']:.0f} MB named"
            if "named" in found:
                said += f" = {found['named']:.2f}x there, {found['unchecked']:.2f}x if not refused"
        return f"{'WRONG' if self.wrong else 'ok':<6}{case.name:<28} {said}" + (
            f"\n      {self.wrong}\n      {asdict(case)}\n      {found}" if self.wrong else ""
        )


def run(case: Case, path: Path, **more: Any) -> dict[str, Any]:
    asked = {
        "path": str(path),
        "source": case.data.source,
        "weights": case.data.weights,
        "patch": case.data.patch,
    }
    asked |= {"kind": case.kind, "params": case.params, "limit": case.limit} | more
    done = subprocess.run([sys.executable, str(_CHILD), json.dumps(asked)], capture_output=True, text=True)
    if done.returncode != 0:
        return {
            "error": done.stderr[-2000:] or f"ended by signal {-done.returncode}",
            "peak": 0,
            "start": 0,
            "seconds": 0,
        }
    return json.loads(done.stdout)


def judge(case: Case, path: Path) -> Verdict:
    """Fits, and when that is refused, fits at the limit that was named, and at this one without the check."""
    found = run(case, path)
    if "error" in found:
        return Verdict(case, f"failed: {found['error']}", found)
    if found["peak"] > HIGHEST * max(case.limit, found["start"]):  # a process may be larger than the limit is
        return Verdict(case, "peak too high", found)
    if "refused" not in found or not case.named_runs:
        return Verdict(case, "", found)
    named = -(-found["least"] // 1)
    again = run(case, path, limit=named)
    if "refused" in again:
        return Verdict(case, f"refused again at {named:.0f} MB: {again['refused']}", found)
    if "error" in again or again["peak"] > HIGHEST * named:
        return Verdict(case, f"at the named {named:.0f} MB: {again}", found)
    found["named"] = again["peak"] / named
    free = run(case, path, unchecked=True)
    found["unchecked"] = free.get("peak", 0) / case.limit
    if "Traceback" in free.get("error", ""):
        return Verdict(case, f"without the check: {free['error']}", found)
    if "error" not in free and free["peak"] <= WRONGLY_REFUSED * case.limit:
        return Verdict(case, f"refused wrongly: would take {free['peak']:.0f} MB ({free})", found)
    return Verdict(case, "", found)


def check(cases: list[Case], directory: Path | None) -> list[Verdict]:
    """Judges all; data is made once for neighbours that share it."""
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory(prefix="oldgrowth-grid-", dir=directory) as root:
        written: Data | None = None
        for i, case in enumerate(cases):
            path = Path(root, "data")
            if case.data != written:
                shutil.rmtree(path, ignore_errors=True)
                case.data.write(path)
                written = case.data
            verdicts.append(judge(case, path))
            print(f"{i + 1:>4} {verdicts[-1]}", flush=True)
    return verdicts


def drawn(seed: int) -> Case:
    """A case from everything that memory depends on."""
    rng = np.random.default_rng([16, seed])

    def one_of(*choices: Any) -> Any:
        return choices[int(rng.integers(len(choices)))]

    kind = one_of(*["RandomForestClassifier"] * 3, "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor",
                  "SubsetForestClassifier", "SubsetForestRegressor")  # fmt: skip
    source = one_of("parquet", "parquet", "parquet", "array", "array", "memmap", "csv")
    features = one_of(1, 4, 9, 20, 20, 81, 400)
    cells = one_of(5e6, 2e7, 4e7) if source != "csv" else 3e6
    rows = int(min(3_000_000, max(20_000, cells / features)))
    values = one_of("bytes", "bytes", "words", "floats", "floats", "nodata")
    classes = one_of(2, 3, 9, 9, 40, 200, 1000) if kind.endswith("Classifier") else 0
    data = Data(rows, features, values, classes, source, weights=bool(rng.random() < 0.2), seed=seed)
    params: dict[str, Any] = {"n_jobs": one_of(1, 2, 2, 16, 32), "n_estimators": one_of(2, 4, 8, 24)}
    params["oob_score"] = one_of(False, False, True, True, "metric") if "Extra" not in kind else False
    if rows * classes > 3e8:  # votes of some 20 GB on disk, which take an hour
        params["oob_score"] = False
    if kind.startswith("Subset"):
        params |= {"subset_size": int(rows * one_of(0.02, 0.1, 0.5)), "n_estimators": one_of(2, 4, 8)}
    else:
        params |= {
            "trees_per_top": one_of("auto", 1, 2, 4),
            "bucket_size": one_of("auto", "auto", 1000, 20_000, 60_000, 150_000),
            "store": one_of("auto", "auto", "disk", "disk"),
        }
        if params["bucket_size"] == 1000:
            params["n_estimators"] = min(8, params["n_estimators"])
    if rng.random() < 0.3:
        params["max_depth"] = one_of(1, 3, 8)
    if rng.random() < 0.1:
        params["min_samples_leaf"] = one_of(5, 0.01)
    if rng.random() < 0.1:
        params["chunk_size"] = one_of(1000, 100_000, 1_000_000)
    if classes and rng.random() < 0.15:
        params["class_weight"] = one_of("balanced", "balanced_subsample")
    limit = one_of(250, 300, 350, 400, 500)
    if source in ("parquet", "csv") and values != "floats" and rng.random() < 0.3:
        data = replace(data, text_columns=one_of(1, features // 2, features))
    if source == "array":  # what the caller has counts
        limit += int(rows * features * {"floats": 4, "words": 2}.get(values, 1) / 1e6)
    return Case(f"drawn {seed}", data, limit, kind, params)


def named() -> list[Case]:
    """Fits that went beyond their limit once; those called 'full' take longer."""
    disk, oob = {"store": "disk"}, {"oob_score": True}
    return [
        Case("classes, oob", Data(300_000, 20, classes=200), 400, params={**disk, **oob, "bucket_size": 75_000}),
        Case("classes, oob, full", Data(1_000_000, 20, classes=200), 500, params={**disk, **oob, "bucket_size": 250_000}),
        Case("32 threads, oob", Data(600_000, 20, "floats", 9), 350, params={**oob, "n_jobs": 32}),
        Case("32 threads, oob, full", Data(2_000_000, 20, "floats", 9), 500, params={**oob, "n_jobs": 32}),
        Case("16 threads, oob", Data(2_000_000, 20, "floats", 3), 500, params={**oob, "n_jobs": 16}),
        Case("16 threads", Data(300_000, 81), 350, params={"n_jobs": 16, "n_estimators": 12}),
        Case("16 threads, full", Data(1_200_000, 81), 520, params={"n_jobs": 16, "n_estimators": 12}),
        Case("many trees", Data(500_000, 20), 300, params={**disk, "n_estimators": 400, "max_depth": 5}),
        Case("many trees, full", Data(3_000_000, 20), 400, params={**disk, "n_estimators": 400, "max_depth": 5}),
        Case("wide", Data(40_000, 400, "floats", 200), 500, params=oob),
        Case("wide, full", Data(400_000, 400, "floats", 200), 805, params=oob),
        Case("nodata", Data(3_000_000, 9, "nodata"), 350),
        Case("nodata, oob", Data(3_000_000, 9, "nodata"), 350, params=oob),
        Case("nodata, full", Data(20_000_000, 9, "nodata"), 500),
        Case("depth 1", Data(3_000_000, 4), 350, params={"max_depth": 1}),
        Case("depth 1, full", Data(20_000_000, 4), 500, params={"max_depth": 1}),
        Case("depth 2, oob", Data(3_000_000, 4), 350, params={"max_depth": 2, **oob}),
        Case("depth 2, oob, full", Data(10_000_000, 4), 500, params={"max_depth": 2, **oob}),
        Case("depth 2, regression", Data(3_000_000, 4, classes=0), 350, "RandomForestRegressor", {"max_depth": 2, **oob}),
        Case("balanced", Data(1_000_000, 20), 350, params={"class_weight": "balanced_subsample", "n_jobs": 16, **disk}),
        Case("long chunks", Data(2_000_000, 20), 400, params={"chunk_size": 1_000_000}),
        Case("1000 classes", Data(60_000, 20, classes=1000), 350, params=oob),
        Case("1000 classes, full", Data(200_000, 20, classes=1000), 500, params=oob),
        Case("metric", Data(2_000_000, 4), 300, params={"oob_score": "metric", "n_estimators": 2}),
        Case("metric, full", Data(8_000_000, 4), 400, params={"oob_score": "metric", "n_estimators": 2}),
        Case("tiny buckets", Data(300_000, 4), 400, params={"bucket_size": 100, "n_estimators": 20, "trees_per_top": 1}),
        Case("tiny buckets, full", Data(1_000_000, 4), 400, params={"bucket_size": 100, "n_estimators": 100, "trees_per_top": 1}),
        Case("buckets of 20", Data(200_000, 4), 400, params={"bucket_size": 20, "n_estimators": 8, "trees_per_top": 1}),
        Case("buckets of 20, full", Data(1_000_000, 4), 400, params={"bucket_size": 20, "n_estimators": 8, "trees_per_top": 1}),
        Case("in memory, 32 threads", Data(1_000_000, 2), 350, params={"store": "memory", "n_jobs": 32, "max_depth": 10}),
        Case("in memory, oob", Data(300_000, 10, "floats"), 400, params={"store": "memory", "n_jobs": 32, **oob}),
        Case("text labels, weights", Data(300_000, 15, "floats", 9, "csv", weights=True, text=True), 280, params={"class_weight": "balanced"}),
        Case("weights of an array", Data(500_000, 20, "floats", 9, "array", weights=True), 350, "ExtraTreesClassifier", {"n_jobs": 16}),
        Case("ids as labels", Data(300_000, 4, text=True, ids=True), 260, named_runs=False),
        Case("ids as labels, full", Data(2_000_000, 4, text=True, ids=True), 500, named_runs=False),
        Case("one batch of Arrow", Data(2_000_000, 20, "floats", source="arrow"), 350, params={"max_depth": 4}),
        Case("one batch of Arrow, full", Data(8_800_000, 20, "floats", source="arrow"), 500, params={"max_depth": 4}),
        Case("row groups", Data(5_000, 400, "floats", group=10), 400, params={"max_depth": 4}),
        Case("row groups, full", Data(25_000, 400, "floats", group=10), 800, params={"max_depth": 4}),
        Case("packed", Data(10_000_000, 10, source="npz"), 300, params={"max_depth": 2, "n_estimators": 1}),
        Case("packed, full", Data(100_000_000, 10, source="npz"), 500, params={"max_depth": 1, "n_estimators": 1}),
        Case("saved", Data(800_000, 10, classes=9), 300, "cli", {"n_estimators": 24}),
        Case("saved, full", Data(3_200_000, 10, classes=9), 450, "cli", {"n_estimators": 24}),
        Case("nodata, mapped, full", Data(20_000_000, 9, "nodata", source="memmap"), 500),
        Case("scene", Data(600_000, 9, "nodata", source="scene"), 450),
        Case("scene, disk", Data(600_000, 9, source="scene"), 330, params=disk),
        Case("scene, regression", Data(600_000, 3, "floats", 0, source="scene", patch=5), 350, "RandomForestRegressor"),
        Case("scene, long lines", Data(600_000, 9, "words", source="scene", width=60_000), 400, params=disk),
        Case("scene, one block", Data(600_000, 9, "words", source="scene", group=300), 450, params=disk),
        Case("scene, full", Data(20_000_000, 9, source="scene", width=8000), 700, params={"n_estimators": 2}),
        Case("text columns", Data(400_000, 12, classes=9, text_columns=6), 350, params={**disk, **oob}),
        Case("text columns, regression", Data(600_000, 8, "words", 0, text_columns=4), 400, "RandomForestRegressor"),
        Case("text columns, csv", Data(300_000, 8, "words", 40, "csv", weights=True, text_columns=8), 350, "ExtraTreesClassifier"),
        Case("text columns, one batch of Arrow", Data(1_000_000, 10, source="arrow", text_columns=5), 400, params={"max_depth": 6}),
        Case("text columns, 16 threads", Data(300_000, 20, "words", 200, text_columns=20), 400, params={"n_jobs": 16, **oob}),
        Case("text columns, full", Data(3_000_000, 20, "words", 9, text_columns=10), 500, params={"n_jobs": 16, **disk}),
        Case("60 top trees, full", Data(3_000_000, 4), 400, params={"bucket_size": 500, "n_estimators": 60, "trees_per_top": 1}),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=0, help="drawn cases")
    parser.add_argument("--seed", type=int, default=0, help="of the first drawn case")
    parser.add_argument("--named", help="all, quick (those not called full), or a part of a name")
    parser.add_argument("--dir", type=Path, help="for the data")
    asked = parser.parse_args()
    cases = [drawn(seed) for seed in range(asked.seed, asked.seed + asked.cases)]
    if asked.named:
        wanted = {"all": lambda name: True, "quick": lambda name: "full" not in name}
        choose = wanted.get(asked.named, lambda name: asked.named in name)
        cases = [case for case in named() if choose(case.name)] + cases
    verdicts = check(cases, asked.dir)
    wrong = [verdict.case.name for verdict in verdicts if verdict.wrong]
    refused = sum("refused" in verdict.found for verdict in verdicts)
    print(f"{len(verdicts)} cases, {refused} refused, {len(wrong)} wrong: {', '.join(wrong) or 'none'}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
