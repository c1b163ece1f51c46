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
STAGES = ("sample", "top trees", "distribute", "grow", "assemble")

Run = dict[str, Any]


def main() -> None:
    options = parse()
    console = Console(highlight=False, width=max(Console().width, 110))
    rows = PER_FILE if options.quick else options.rows
    files = make_data(options.directory / "imagery", rows)
    runs: dict[int, list[Run]] = {workers: [] for workers in WORKERS}
    for repeat in range(options.repeats):
        for workers in WORKERS[:: 1 if repeat % 2 == 0 else -1]:
            runs[workers].append(run_worker(files, workers, options.directory))
            console.print(f"{name_of(workers)}: {runs[workers][-1]['seconds']:.1f} s", soft_wrap=True)
    assert len({run["digest"] for some in runs.values() for run in some}) == 1, "forests differ"
    show(console, runs, rows)
    show_model(console, runs, rows, sum(Path(file).stat().st_size for file in files))
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
    wanted = {"files": files, "workers": workers, "fit": TREES, "directory": str(directory)}
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
    for heading in ("what", "median s", "best s", *STAGES):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for workers, some in runs.items():
        stages = seconds_of(best(some))
        cells = [f"{stages.get(name, 0.0):.1f}" for name in STAGES]
        middle = median(run["seconds"] for run in some)
        table.add_row(name_of(workers), f"{middle:.1f}", f"{best(some)['seconds']:.1f}", *cells)
    console.print(table)
    ratio = best(runs[2])["seconds"] / best(runs[0])["seconds"]
    console.print(f"2 workers of 1 thread take {ratio:.2f}x the time of one process (goal at most {GOAL}x)")


def show_model(console: Console, runs: dict[int, list[Run]], rows: int, source_bytes: int) -> None:
    one = best(runs[1])
    stages, report = seconds_of(one), one["report"]
    trees = TREES["n_estimators"]
    rates = Rates(rows / stages["sample"], rows / stages["distribute"], rows * trees / stages["grow"])
    fit = Fit(rows, report["record_bytes"] + 9, source_bytes // rows, trees, 1)
    table = Table(title="The model, fed by the run with one worker", title_justify="left")
    for heading in ("workers x threads", "rows", "measured s", "modelled s", "disk each", "network", "tasks"):
        table.add_column(heading, justify="left" if heading == "workers x threads" else "right")
    for workers in WORKERS[1:]:
        found = modelled(fit, rates, workers, 1, cores=2)
        add_row(table, (workers, 1, rows), f"{best(runs[workers])['seconds']:.1f}", found)
    for workers, threads, many in ((10, 16, 10**9), (100, 16, 10**10), (100, 16, 10**11)):
        large = Fit(many, fit.row_bytes, fit.source_bytes, 24, 12)
        add_row(table, (workers, threads, many), "", modelled(large, rates, workers, threads))
    console.print(table)


def add_row(table: Table, what: tuple[int, int, int], measured: str, found: Modelled) -> None:
    workers, threads, rows = what
    moved = human_bytes(int(found.disk)), human_bytes(int(found.network))
    table.add_row(
        f"{workers} x {threads}", f"{rows:,}", measured, f"{found.seconds:,.0f}", *moved, f"{found.tasks:,}"
    )


if __name__ == "__main__":
    main()
