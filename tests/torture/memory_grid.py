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
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from memory_data import Data

HIGHEST, WRONGLY_REFUSED = 1.05, 0.8
_CHILD = Path(__file__).with_name("memory_case.py")


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
        *_of_text_columns(),
        Case("60 top trees, full", Data(3_000_000, 4), 400, params={"bucket_size": 500, "n_estimators": 60, "trees_per_top": 1}),
    ]  # fmt: skip


def _of_text_columns() -> list[Case]:
    return [
        Case("text columns", Data(400_000, 12, classes=9, text_columns=6), 350, params={"store": "disk", "oob_score": True}),
        Case("text columns, regression", Data(600_000, 8, "words", 0, text_columns=4), 400, "RandomForestRegressor"),
        Case("text columns, csv", Data(300_000, 8, "words", 40, "csv", weights=True, text_columns=8), 350, "ExtraTreesClassifier"),
        Case("text columns, one batch of Arrow", Data(1_000_000, 10, source="arrow", text_columns=5), 400, params={"max_depth": 6}),
        Case("text columns, 16 threads", Data(300_000, 20, "words", 9, text_columns=20), 400, params={"n_jobs": 16, "oob_score": True}),
        Case("text columns, full", Data(3_000_000, 20, "words", 9, text_columns=10), 500, params={"n_jobs": 16, "store": "disk"}),
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
