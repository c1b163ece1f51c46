"""Beyond memory: generated imagery in Parquet, under a memory limit, on disk.

    python benchmarks/scale.py            40 million rows of 81 features; an hour or less, 20 GB of disk
    python benchmarks/scale.py --quick    4 million rows

Each fit runs in its own process, from start to saved model. Finished runs are kept in results/scale.jsonl and
not repeated, unless with --fresh.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from imagery import write_parquet
from journal import Journal, Run
from oldgrowth.messages.text import human_bytes

HERE = Path(__file__).parent
LIMIT = 10**9
TREES = {"n_estimators": 4, "trees_per_top": 4, "random_state": 0}  # on one top tree: one copy of the rows
PER_FILE = 1_000_000
FILE_BYTES = 8 * 2**20


def main() -> None:
    options = parse()
    rows = 4 * PER_FILE if options.quick else options.rows
    compared = rows // 4 if options.quick else 4 * PER_FILE
    work = options.directory
    files = make_data(work / "imagery", rows)
    journal = Journal(HERE / "results" / "scale.jsonl", options.fresh)
    console = Console(highlight=False)
    growth = [share for share in (rows // 8, rows // 4, rows // 2, rows) if share >= PER_FILE]
    fits = {}
    for n in growth:
        fit = partial(limited_fit, files[: n // PER_FILE], work)
        fits[n] = journal.run({"what": "fit", "rows": n}, fit)
    show_stages(console, rows, fits[rows])
    show_growth(console, fits)
    distributed, copied = [fits[rows]], []
    for repeat in range(options.repeats):
        if repeat > 0:
            again = {"what": "fit", "rows": rows, "repeat": repeat}
            distributed.append(journal.run(again, partial(limited_fit, files, work)))
        run = {"what": "copy", "rows": rows, "repeat": repeat}
        copied.append(journal.run(run, partial(plain_copy, files, fits[rows], work)))
    show_copy(console, distributed, copied)
    both: list[dict[str, Run]] = [{} for _ in range(options.repeats)]
    for repeat, runs in enumerate(both):
        for store in ("memory", "disk"):
            run = {"what": "compare", "store": store, "rows": compared, "repeat": repeat}
            fit = partial(compared_fit, files[: max(1, compared // PER_FILE)], store, work)
            runs[store] = journal.run(run, fit)
    show_comparison(console, compared, both)
    rival = journal.run({"what": "scikit-learn", "rows": rows}, lambda: rival_fit(files))
    outcome = rival["failed"] or f"fitted in {rival['seconds']:.0f} s"
    console.print(f"scikit-learn with {human_bytes(LIMIT)} and {rows:,} rows: {outcome}")
    if not options.keep:
        shutil.rmtree(work)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=40_000_000)
    parser.add_argument(
        "--directory", type=Path, default=HERE / "results" / "scale", help="for data and buckets"
    )
    parser.add_argument(
        "--repeats", type=int, default=3, help="of the comparisons with memory and with a copy"
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--fresh", action="store_true", help="forget finished runs")
    parser.add_argument("--keep", action="store_true", help="keep the data")
    return parser.parse_args()


def make_data(directory: Path, rows: int) -> list[str]:
    write_parquet(directory, rows)
    return [str(path) for path in sorted(directory.glob("*.parquet"))][: rows // PER_FILE]


def run_worker(wanted: Run) -> Run:
    """Run a fit; the files are read from the disk, not from the system's cache."""
    for file in wanted["files"]:
        forget(file)
    command = [sys.executable, str(HERE / "scale_worker.py"), json.dumps(wanted)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: Run = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def forget(file: str) -> None:
    with open(file, "rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def limited_fit(files: list[str], work: Path) -> Run:
    """With a checkpoint, so that everything written has reached the disk."""
    checkpoint = work / "checkpoint"
    shutil.rmtree(checkpoint, ignore_errors=True)
    fit = TREES | {"memory_limit": LIMIT, "store": "disk", "checkpoint_dir": str(checkpoint), "verbose": 1}
    return run_worker({"who": "oldgrowth", "files": files, "model": str(work / "forest.og"), "fit": fit})


def compared_fit(files: list[str], store: str, work: Path) -> Run:
    fit = TREES | {"store": store, "spill_dir": str(work)}
    return run_worker({"who": "oldgrowth", "files": files, "model": str(work / "forest.og"), "fit": fit})


def rival_fit(files: list[str]) -> Run:
    return run_worker({"who": "scikit-learn", "files": files, "limit": LIMIT})


def plain_copy(files: list[str], fit: Run, work: Path) -> Run:
    """Read the bytes that distribution read and write as many as it wrote, with nothing in between."""
    stage = stages_of(fit)["distribute"]
    for file in files:
        forget(file)
    started = time.perf_counter()
    for file in files:
        with open(file, "rb", buffering=0) as source:
            while source.read(FILE_BYTES):
                pass
    block = os.urandom(FILE_BYTES)
    target = work / "copy"
    with open(target, "wb", buffering=0) as out:
        for _ in range(-(-stage["bytes_written"] // FILE_BYTES)):
            out.write(block)
        os.fdatasync(out.fileno())
    seconds = time.perf_counter() - started
    target.unlink()
    return {"seconds": seconds, "bytes": stage["bytes_read"] + stage["bytes_written"]}


def stages_of(fit: Run) -> dict[str, Any]:
    return {stage["name"]: stage for stage in fit["report"]["stages"]}


def show_stages(console: Console, rows: int, fit: Run) -> None:
    table = Table(title=f"{rows:,} rows x 81, memory limit {human_bytes(LIMIT)}", title_justify="left")
    for heading in ("stage", "seconds", "rows/s", "read", "written", "peak memory"):
        table.add_column(heading, justify="left" if heading == "stage" else "right")
    for stage in fit["report"]["stages"]:
        cells = (
            f"{stage['seconds']:.1f}",
            f"{stage['rows'] / max(stage['seconds'], 1e-9):,.0f}",
            *(human_bytes(stage[name]) for name in ("bytes_read", "bytes_written", "peak_memory")),
        )
        table.add_row(stage["name"], *cells)
    console.print(table)
    peak, goal = human_bytes(fit["peak"]), human_bytes(1.05 * LIMIT)
    console.print(f"from start to saved model: {fit['seconds']:.0f} s, peak {peak} (goal {goal})")


def show_growth(console: Console, fits: dict[int, Run]) -> None:
    first = min(fits)
    table = Table(title="Growth of total time (goal: at most n log n)", title_justify="left")
    for heading in ("rows", "seconds", "times", "n log n"):
        table.add_column(heading, justify="right")
    for n, fit in fits.items():
        bound = n * math.log(n) / (first * math.log(first))
        times = fit["seconds"] / fits[first]["seconds"]
        table.add_row(f"{n:,}", f"{fit['seconds']:.1f}", f"{times:.2f}", f"{bound:.2f}")
    console.print(table)


def show_copy(console: Console, fits: list[Run], copies: list[Run]) -> None:
    stages = [stages_of(fit)["distribute"] for fit in fits]
    ours = max((stage["bytes_read"] + stage["bytes_written"]) / stage["seconds"] for stage in stages)
    plain = max(copy["bytes"] / copy["seconds"] for copy in copies)
    console.print(
        f"distribute: {human_bytes(ours)}/s read and written, a plain copy {human_bytes(plain)}/s, "
        f"best of {len(fits)} each: {ours / plain:.2f}x (goal 0.5x)"
    )


def show_comparison(console: Console, rows: int, both: list[dict[str, Run]]) -> None:
    best = {store: min(run[store]["seconds"] for run in both) for store in ("memory", "disk")}
    console.print(
        f"{rows:,} rows, best of {len(both)}: memory {best['memory']:.1f} s, disk {best['disk']:.1f} s, "
        f"{best['memory'] / best['disk']:.2f}x the speed of memory (goal 0.7x)"
    )


if __name__ == "__main__":
    main()
