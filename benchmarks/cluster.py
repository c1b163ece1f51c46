"""What a cluster costs on one machine, and what a larger one would take.

Fits of generated imagery from Parquet, each in its own process, alternate between one process with two
threads and clusters of one, two and four workers with one thread each. A model of larger clusters is fed by
the rates that were measured, and compared with the runs.

    python benchmarks/cluster.py            8 million rows of 81 features; half an hour, 4 GB of disk
    python benchmarks/cluster.py --quick    1 million rows
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from cluster_model import Fit, Modelled, Rates, modelled
from oldgrowth.messages.text import human_bytes
from scale import PER_FILE, TREES, forget, make_data

HERE = Path(__file__).parent
GOAL = 1.35
WORKERS = (0, 1, 2, 4)
STAGES = ("sample", "top trees", "distribute", "split", "grow", "assemble")
SPIN = 1.5  # seconds
TASKS, QUICK_TASKS = 100_000, 5_000
# Workers, threads of each, and rows, that the model is asked for.
LARGER = ((10, 16, 10**9), (100, 16, 10**10), (100, 16, 10**11))

Run = dict[str, Any]


def main() -> None:
    options = parse()
    console = Console(highlight=False, width=max(Console().width, 150))
    rows = PER_FILE if options.quick else options.rows
    files = make_data(options.directory / "imagery", rows)
    runs: dict[int, list[Run]] = {workers: [] for workers in WORKERS}
    for repeat in range(options.repeats):
        for workers in WORKERS[:: 1 if repeat % 2 == 0 else -1]:
            runs[workers].append(run_worker(files, workers, options.directory))
            console.print(f"{name_of(workers)}: {runs[workers][-1]['seconds']:.1f} s", soft_wrap=True)
    assert len({run["digest"] for some in runs.values() for run in some}) == 1, "forests differ"
    show(console, runs, rows)
    tasks = QUICK_TASKS if options.quick else TASKS
    found = run_script({"tasks": tasks})
    show_tasks(console, tasks, found)
    show_model(console, runs, rows, sum(Path(file).stat().st_size for file in files), found)
    if not options.keep:
        shutil.rmtree(options.directory)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--directory", type=Path, default=HERE / "results" / "cluster", help="for data")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep the data")
    return parser.parse_args()


def run_worker(files: list[str], workers: int, directory: Path) -> Run:
    for file in files:
        forget(file)
    cores = cores_given(workers or 2)
    wanted = {"files": files, "workers": workers, "fit": TREES, "directory": str(directory)}
    return run_script(wanted) | {"cores": cores}


def cores_given(processes: int) -> float:
    """Cores that so many processes get of this machine now: others may run on it."""
    code = f"import time\nend = time.perf_counter() + {SPIN}\nwhile time.perf_counter() < end: pass\n"
    command = [sys.executable, "-c", code + "print(time.process_time())"]
    spinning = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    return sum(float(process.communicate()[0]) for process in spinning) / SPIN


def run_script(wanted: dict[str, Any]) -> Run:
    command = [sys.executable, str(HERE / "cluster_worker.py"), json.dumps(wanted)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    result: Run = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def name_of(workers: int) -> str:
    return "one process, 2 threads" if workers == 0 else f"{workers} workers, 1 thread each"


def seconds_of(run: Run) -> dict[str, float]:
    return {stage["name"]: stage["seconds"] for stage in run["report"]["stages"]}


def best(some: list[Run]) -> Run:
    return min(some, key=lambda run: run["seconds"])


def show(console: Console, runs: dict[int, list[Run]], rows: int) -> None:
    table = Table(
        title=f"{rows:,} rows x 81 from Parquet, {TREES['n_estimators']} trees", title_justify="left"
    )
    for heading in ("what", "median s", "best s", "cores given", *STAGES):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for workers, some in runs.items():
        stages = seconds_of(best(some))
        cells = [f"{stages.get(name, 0.0):.1f}" for name in STAGES]
        middle = median(run["seconds"] for run in some)
        of_best = [f"{best(some)[name]:.1f}" for name in ("seconds", "cores")]
        table.add_row(name_of(workers), f"{middle:.1f}", *of_best, *cells)
    console.print(table)
    ratio = best(runs[2])["seconds"] / best(runs[0])["seconds"]
    console.print(f"2 workers of 1 thread take {ratio:.2f}x the time of one process (goal at most {GOAL}x)")


def show_tasks(console: Console, n: int, found: dict[str, float]) -> None:
    console.print(
        f"{n:,} tasks that do nothing: {1000 * found['task']:.2f} ms each of the processor of client and "
        f"scheduler, handed out by a fit; {1000 * found['dask']:.2f} ms each by Client.map, all at once"
    )


def show_model(
    console: Console, runs: dict[int, list[Run]], rows: int, source_bytes: int, found: dict[str, float]
) -> None:
    one = best(runs[1])
    report, n_trees = one["report"], TREES["n_estimators"]
    fit = Fit(rows, report["record_bytes"] + 9, source_bytes // rows, n_trees, 1)
    rates = rates_of(one, fit, found)
    table = Table(title="The model, fed by the run with one worker", title_justify="left")
    for heading in ("workers x threads", "rows", "measured s", "modelled s", *STAGES, "disk each", "network"):
        table.add_column(heading, justify="left" if heading == "workers x threads" else "right")
    for workers in WORKERS[1:]:
        predicted = modelled(fit, rates, workers, 1, best(runs[workers])["cores"])
        add_row(table, (workers, 1, rows), f"{best(runs[workers])['seconds']:.1f}", predicted)
    larger = []
    for workers, threads, many in LARGER:
        large = Fit(many, fit.row_bytes, fit.source_bytes, 24, 12)
        larger.append(modelled(large, replace(rates, network=Rates.network), workers, threads))
        add_row(table, (workers, threads, many), "", larger[-1])
    console.print(table)
    for (workers, _, many), predicted in zip(LARGER, larger, strict=True):
        share = f"{predicted.tasks:,} tasks keep the client busy for {predicted.busy / predicted.seconds:.1%}"
        console.print(f"{many:,} rows on {workers} workers: {share} of the time")
    share = TASKS * rates.task / larger[-1].seconds
    console.print(f"{TASKS:,} tasks would take {share:.1%} of the last one (goal less than 5 %)")


def rates_of(one: Run, fit: Fit, found: dict[str, float]) -> Rates:
    """The rates of the run with one worker, for each core that it was given; of tasks, and of messages."""
    stages, cores = seconds_of(one), one["cores"]
    return Rates(
        sample=fit.rows / stages["sample"] / cores,
        top=fit.top_sample / stages["top trees"] / cores,
        route=fit.rows / stages["distribute"] / cores,
        grow=fit.rows * fit.trees / stages["grow"] / cores,
        network=found["network"],
        client=2 * fit.model_bytes / stages["assemble"],
        task=found["task"],
        turn=found["turn"],
        start=one["seconds"] - sum(stages.values()),
    )


def add_row(table: Table, what: tuple[int, int, int], measured: str, found: Modelled) -> None:
    workers, threads, rows = what
    moved = human_bytes(int(found.disk)), human_bytes(int(found.network))
    stages = (f"{found.stages[name]:,.1f}" for name in STAGES)
    table.add_row(f"{workers} x {threads}", f"{rows:,}", measured, f"{found.seconds:,.1f}", *stages, *moved)


if __name__ == "__main__":
    main()
