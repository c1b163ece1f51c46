"""Runs one fit, on this machine or on a cluster of processes: python cluster_worker.py PARAMETERS.

PARAMETERS is JSON: `files`, `fit` (parameters of the forest), `workers` (0 for one process with two threads)
and `directory` for buckets. Prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import nullcontext
from typing import Any

LIMIT = "4GB"


def main() -> None:
    wanted = json.loads(sys.argv[1])
    print("\n" + json.dumps(measured(wanted)), flush=True)


def measured(wanted: dict[str, Any]) -> dict[str, Any]:
    import oldgrowth

    parameters = wanted["fit"] | {"spill_dir": wanted["directory"], "memory_limit": LIMIT}
    with cluster_of(wanted["workers"]) as client:
        if client is None:
            forest = oldgrowth.RandomForestClassifier(**parameters, store="disk", n_jobs=2)
        else:
            import oldgrowth.dask

            forest = oldgrowth.dask.RandomForestClassifier(**parameters, client=client)
        started = time.perf_counter()
        forest.fit(oldgrowth.open_dataset(wanted["files"], target="label"))
        seconds = time.perf_counter() - started
    report = forest.fit_report_.as_dict()
    return {"seconds": seconds, "report": report, "digest": forest.forest_.digest()}


def cluster_of(workers: int) -> Any:
    if workers == 0:
        return nullcontext()
    from distributed import LocalCluster

    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, protocol="tcp", dashboard_address=None, memory_limit="6GB"
    )
    return cluster.get_client()


if __name__ == "__main__":
    main()
