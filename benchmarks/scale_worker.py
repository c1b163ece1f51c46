"""Runs one fit from files: python scale_worker.py PARAMETERS prints one line of JSON.

PARAMETERS is JSON: `files`, `model` (where to save), `fit` (parameters of the forest), and `who`: ours or
scikit-learn, which gets no more memory than `limit` bytes.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any


def main() -> None:
    wanted = json.loads(sys.argv[1])
    run = ours if wanted["who"] == "oldgrowth" else scikit_learn
    print("\n" + json.dumps(run(wanted)), flush=True)


def ours(wanted: dict[str, Any]) -> dict[str, Any]:
    from oldgrowth import RandomForestClassifier, open_dataset
    from oldgrowth.system.memory import peak_memory

    started = time.perf_counter()
    forest = RandomForestClassifier(**wanted["fit"]).fit(open_dataset(wanted["files"], target="label"))
    forest.save(wanted["model"])
    seconds = time.perf_counter() - started
    report = forest.fit_report_.as_dict()
    return {"seconds": seconds, "peak": peak_memory(), "report": report}


def scikit_learn(wanted: dict[str, Any]) -> dict[str, Any]:
    import pyarrow.parquet as pq
    from sklearn.ensemble import RandomForestClassifier

    resource.setrlimit(resource.RLIMIT_DATA, (wanted["limit"], wanted["limit"]))
    started, stage = time.perf_counter(), "reading the rows"
    try:
        table = pq.ParquetDataset(wanted["files"]).read()
        y = table.column("label").to_numpy()
        x = table.drop_columns(["label"]).to_pandas().to_numpy()
        stage = "fit"
        RandomForestClassifier(4, n_jobs=-1, random_state=0).fit(x, y)
    except MemoryError as error:  # Arrow's own error is one too
        return {"failed": f"out of memory while {stage}: {error}", "seconds": time.perf_counter() - started}
    return {"failed": None, "seconds": time.perf_counter() - started}


if __name__ == "__main__":
    main()
