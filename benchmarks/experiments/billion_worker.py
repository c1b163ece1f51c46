"""Runs one fit on rows generated on the fly: python billion_worker.py PARAMETERS prints one line of JSON.

PARAMETERS is JSON: `rows`, pixels of nine 8-bit bands; `what`: `generate` measures generating them on one
core, `fit` fits a forest to them with the parameters `fit` and tests it on pixels of later lines.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import oldgrowth
from oldgrowth.system.memory import peak_memory

sys.path.insert(0, str(Path(__file__).parents[1]))
from imagery import WIDTH, Bytes, pixels

LINES = 32  # made at a time: what fits a core's cache
TEST_LINES, TEST_STEP = 25, 40  # lines apart, so that they do not lie in the same parcels


def main() -> None:
    wanted = json.loads(sys.argv[1])
    print(json.dumps({"generate": generate, "fit": fit}[wanted["what"]](wanted)), flush=True)


def batches_of(rows: int) -> Callable[[], Iterator[tuple[Bytes, Bytes]]]:
    """The first `rows` pixels, in batches, the same each time."""

    def batches() -> Iterator[tuple[Bytes, Bytes]]:
        for first in range(0, -(-rows // WIDTH), LINES):
            left = rows - first * WIDTH
            x, y = pixels(first, LINES)
            yield x[:left], y[:left]

    return batches


def generate(wanted: dict[str, Any]) -> dict[str, Any]:
    """In CPU seconds, so that other processes do not matter."""
    started = time.process_time()
    rows = sum(len(y) for _, y in batches_of(wanted["rows"])())
    return {"rows": rows, "seconds": time.process_time() - started}


def fit(wanted: dict[str, Any]) -> dict[str, Any]:
    rows = wanted["rows"]
    forest = oldgrowth.RandomForestClassifier(**wanted["fit"])
    forest.fit(oldgrowth.open_dataset(batches_of(rows)))
    report = forest.fit_report_.as_dict()
    del report["rows_by_bucket"]
    peak = peak_memory()
    after = -(-rows // WIDTH) + TEST_STEP
    parts = [pixels(after + TEST_STEP * i, 1) for i in range(TEST_LINES)]
    x, y = (np.concatenate(part) for part in zip(*parts, strict=True))
    right = forest.predict(x) == y
    return {"report": report, "peak": peak, "test_rows": len(y), "accuracy": float(right.mean())}


if __name__ == "__main__":
    main()
