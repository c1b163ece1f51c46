"""Uses a saved forest: python model_worker.py PARAMETERS prints one line of JSON.

PARAMETERS is JSON: `model` and `rows` (a .npy file), and `what`: `open` times loading and a first prediction
of one row, `predict` times all rows under `memory_limit`.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

import oldgrowth
from oldgrowth.system.memory import peak_memory


def main() -> None:
    wanted = json.loads(sys.argv[1])
    print(json.dumps({"open": open_model, "predict": predict}[wanted["what"]](wanted)), flush=True)


def open_model(wanted: dict[str, Any]) -> dict[str, Any]:
    row = np.load(wanted["rows"], mmap_mode="r")[:1].copy()
    started = time.perf_counter()
    forest = oldgrowth.load(wanted["model"])
    loaded = time.perf_counter() - started
    forest.predict(row)
    return {"loaded": loaded, "seconds": time.perf_counter() - started}


def predict(wanted: dict[str, Any]) -> dict[str, Any]:
    forest = oldgrowth.load(wanted["model"])
    forest.set_params(memory_limit=wanted["memory_limit"], n_jobs=-1)
    rows = oldgrowth.open_dataset(wanted["rows"])
    started = time.perf_counter()
    predicted = forest.predict(rows)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "peak": peak_memory(), "sum": int(predicted.sum())}


if __name__ == "__main__":
    main()
