"""Runs one fit, on this machine or on a cluster of processes: python cluster_worker.py PARAMETERS.

PARAMETERS is JSON: `files`, `fit` (parameters of the forest), `workers` (0 for one process with two threads)
and `directory` for buckets; or `tasks`, a number of tasks that do nothing. Prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import nullcontext
from typing import Any

from distributed import LocalCluster, wait

LIMIT = "4GB"
SENT = 2**27


def main() -> None:
    wanted = json.loads(sys.argv[1])
    found = costs(wanted["tasks"]) if "tasks" in wanted else measured(wanted)
    print("\n" + json.dumps(found), flush=True)


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


def costs(n: int) -> dict[str, float]:
    """Processor seconds of client and scheduler, which are this process, for a task that does nothing, handed
    out by a fit or by Dask alone; seconds of a worker for the former; bytes a second between two workers."""
    from oldgrowth.cluster.fleet import Job
    from oldgrowth.cluster.handing_out import run
    from oldgrowth.cluster.values import Settings
    from oldgrowth.dask.fleet import on_workers

    with cluster_of(2) as client:
        settings = Settings("0" * 32, client.id, "auto", None, "auto", None)
        with on_workers(client, settings, 60.0, False) as fleet:
            fleet.workers()
            started, before = time.perf_counter(), time.process_time()
            run(fleet, [Job(f"nothing-{i}", nothing, tuple) for i in range(n)], lambda *_: None)
            own, seconds_of_all = time.process_time() - before, time.perf_counter() - started
        before = time.process_time()
        client.gather(client.map(nothing, range(n), pure=False))
        dask = time.process_time() - before
        one, other = client.scheduler_info()["workers"]
        seconds = []
        for _ in range(5):
            made = client.submit(bytes, SENT, workers=[one], pure=False)
            wait(made)
            started = time.perf_counter()
            client.submit(len, made, workers=[other], pure=False).result()
            seconds.append(time.perf_counter() - started)
    turn = 2 * seconds_of_all / n
    return {"task": own / n, "turn": turn, "dask": dask / n, "network": SENT / min(seconds)}


def nothing(_: Any) -> None:
    pass


def cluster_of(workers: int) -> Any:
    if workers == 0:
        return nullcontext()
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, protocol="tcp", dashboard_address=None, memory_limit="6GB"
    )
    return cluster.get_client()


if __name__ == "__main__":
    main()
