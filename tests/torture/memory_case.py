"""Runs one fit: its peak memory, or its message if it was refused.

Reads a case as JSON from its first argument and prints the result as JSON. With `"unchecked": true` no
limit is refused, which tells whether a refusal was right.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import oldgrowth
from oldgrowth.cli.main import run
from oldgrowth.planning import memory_model
from oldgrowth.system.memory import peak_memory, resident_memory


def accuracy(truth: Any, guess: Any) -> float:
    return float(np.mean(truth == guess))


def source_of(case: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of `fit`."""
    path = Path(case["path"])
    if case["source"] in ("array", "memmap"):
        x = np.load(path / "x.npy", mmap_mode="r" if case["source"] == "memmap" else None)
        weights = [np.load(path / "w.npy")] if case.get("weights") else []
        return x, np.load(path / "y.npy"), *weights
    weight = {"weight": "w"} if case.get("weights") else {}
    if case["source"] == "scene":
        from oldgrowth import raster

        scene = raster.open_scene(path / "rows.tif", patch=case["patch"])
        return (scene.with_labels(path / "y.tif"),)
    if case["source"] == "npz":
        return (oldgrowth.open_dataset(path / "rows.npz", target="y"),)
    return (oldgrowth.open_dataset(path / f"rows.{case['source']}", target="y", **weight),)


def command(case: dict[str, Any]) -> dict[str, Any]:
    """`oldgrowth fit`, with the forest saved."""
    path = Path(case["path"])
    given = [f"--memory-limit={case['limit']}MB", f"--trees={case['params']['n_estimators']}", "--seed=0"]
    given += ["-q", "--task=classification", f"--spill-dir={path}", "-o", str(path / "forest.og"), "--force"]
    told = io.StringIO()
    with contextlib.redirect_stderr(told):
        failed = run(["fit", str(path / f"rows.{case['source']}"), "--target=y", *given])
    if not failed:
        return {"store": "saved", "bytes": (path / "forest.og").stat().st_size}
    named = re.search(r"--memory-limit '?(\d+)MB", told.getvalue())
    return {"refused": told.getvalue(), "least": float(named[1])} if named else {"error": told.getvalue()}


def main() -> None:
    case = json.loads(sys.argv[1])
    if case.get("unchecked"):
        memory_model.refuses = False
    if case["kind"] == "cli":
        found = {"start": resident_memory() / 1e6} | command(case)
        print(json.dumps(found | {"peak": peak_memory() / 1e6, "seconds": time.process_time()}))
        return
    params = {"n_estimators": 4, "random_state": 0, "spill_dir": case["path"]} | case["params"]
    if params.get("oob_score") == "metric":
        params["oob_score"] = accuracy
    model = getattr(oldgrowth, case["kind"])(memory_limit=int(case["limit"] * 1e6), **params)
    source = source_of(case)
    with suppress(OSError):  # what was before counts no more
        Path("/proc/self/clear_refs").write_text("5")
    found: dict[str, Any] = {"start": resident_memory() / 1e6}
    began = time.monotonic()
    try:
        report = model.fit(*source).fit_report_
        found |= {"store": report.store, "stages": {s.name: s.peak_memory / 1e6 for s in report.stages}}
        if case.get("digest"):
            found["digest"] = model.forest_.digest()
    except (oldgrowth.errors.MemoryLimitError, oldgrowth.errors.TooManyLabelsError) as error:
        found |= {"refused": str(error), "least": error.least / 1e6}
    except oldgrowth.OldgrowthError as error:
        found["error"] = f"{type(error).__name__}: {error}"
    found |= {"peak": peak_memory() / 1e6, "seconds": time.monotonic() - began}
    print(json.dumps(found))


main()
