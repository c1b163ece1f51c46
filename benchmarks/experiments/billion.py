"""A billion rows, the paper's last figure: seconds of each stage, with peak memory and disk.

    python benchmarks/experiments/billion.py

Pixels of nine 8-bit bands are generated on the fly in each of the two passes; 1 top tree x 4, balance 1, at
most 4 GB of memory. The speed of generating is measured separately. An interrupted or killed run is resumed
when the script is called again. A size for which the disk is too small is skipped with a message.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from runner import HERE, Runner, parse

from journal import Run
from oldgrowth.messages.text import human_bytes

WORKER = HERE / "billion_worker.py"
TREES, MEMORY_LIMIT = 4, 4 * 10**9
# On disk a row has nine bands, a key and a class; the trees may take five bytes a row each, twice: while
# they are grown, and as a forest. The library asks for as much before it begins.
BYTES_PER_ROW = 9 + 8 + 1 + 2 * 5 * TREES
STAGES = ("sample", "top trees", "distribute", "grow", "assemble")
STAGE_OF_LINE = re.compile(r"oldgrowth: ([a-z ]+): [0-9,]+ ")
LAST_LINES = 15  # that are shown of a worker that failed


def main(arguments: list[str] | None = None) -> int:
    options = parse(__doc__, arguments)
    runner = Runner("billion", options)
    sizes = options.of_size(
        full=(10**6, 10**7, 10**8, 250_000_000, 500_000_000, 750_000_000, 10**9),
        quick=(2_000_000, 4_000_000),
        tiny=(20_000, 40_000),
    )
    bucket_size = options.of_size(full="auto", quick="auto", tiny=4_000)
    made = options.of_size(full=20_000_000, quick=2_000_000, tiny=40_000)
    generated = runner.run(partial(worker, {"what": "generate", "rows": made}), what="generate", rows=made)
    work = options.output / "billion"
    fits: dict[int, Run] = {}
    skipped: dict[int, str] = {}
    for rows in sizes:
        fit = partial(measured_fit, rows, bucket_size, work)
        try:
            fits[rows] = runner.run(partial(with_room, rows, work, fit), what="fit", rows=rows)
        except NoRoomError as error:
            skipped[rows] = str(error)
            runner.console.print(f"{rows:,} rows are skipped: {error}.")
    show(runner, fits, skipped, generated)
    if fits:
        show_forests(runner, fits)
        runner.plot(draw(fits))
    return 0


class NoRoomError(Exception):
    """The disk is too small for a run."""


def with_room(rows: int, work: Path, measure: Callable[[], Run]) -> Run:
    """Check the free disk space first; files of an interrupted run will be reused."""
    work.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(work).free + on_disk(work)
    needed = rows * BYTES_PER_ROW
    if needed > free:
        raise NoRoomError(f"they may need {human_bytes(needed)} of disk, and {human_bytes(free)} are free")
    return measure()


def on_disk(work: Path) -> int:
    """The current size of all files there, which may change meanwhile."""
    total = 0
    for path in work.rglob("*"):
        try:
            total += path.stat().st_blocks * 512
        except FileNotFoundError:
            continue
    return total


def worker(wanted: Run) -> Run:
    done = subprocess.run(
        [sys.executable, str(WORKER), json.dumps(wanted)], stdout=subprocess.PIPE, text=True, check=True
    )
    result: Run = json.loads(done.stdout.splitlines()[-1])
    return result


class Attempts:
    """Seconds of each stage and bytes on disk in attempts that were interrupted, kept in a file."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / "attempts.json"
        self.earlier: list[Run] = json.loads(self._path.read_text()) if self._path.exists() else []
        self._now: Run = {"seconds": {}, "disk": 0}
        self._last = time.perf_counter()
        self._keep()

    def _keep(self) -> None:
        self._path.write_text(json.dumps([*self.earlier, self._now]))

    def heard(self, line: str) -> None:
        """A line about a stage: the time since the last line belongs to it."""
        if (match := STAGE_OF_LINE.match(line)) is None:
            return
        now, stage = time.perf_counter(), match.group(1)
        seconds = self._now["seconds"]
        seconds[stage] = seconds.get(stage, 0.0) + now - self._last
        self._last = now
        self._now["disk"] = max(self._now["disk"], on_disk(self._directory))
        self._keep()

    def in_all(self, stages: list[Run]) -> Run:
        """The totals, including the stages of the last, finished attempt."""
        seconds = {stage["name"]: stage["seconds"] for stage in stages}
        for attempt in self.earlier:
            for name, spent in attempt["seconds"].items():
                seconds[name] = seconds.get(name, 0.0) + spent
        disk = max(attempt["disk"] for attempt in (*self.earlier, self._now))
        return {"stage_seconds": seconds, "disk": disk, "attempts": len(self.earlier) + 1}


def measured_fit(rows: int, bucket_size: int | str, work: Path) -> Run:
    """A fit in its own process, whose output is read for its stages, and to check the disk."""
    directory = work / str(rows)
    directory.mkdir(parents=True, exist_ok=True)
    fit = {"n_estimators": TREES, "trees_per_top": TREES, "balance": 1.0, "bucket_size": bucket_size}
    fit |= {"memory_limit": MEMORY_LIMIT, "store": "disk", "checkpoint_dir": str(directory / "checkpoint")}
    wanted = {"what": "fit", "rows": rows, "fit": fit | {"random_state": 0, "verbose": 1}}
    attempts, words = Attempts(directory), [""]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, str(WORKER), json.dumps(wanted)], **pipes) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            for line in process.stderr:
                attempts.heard(line)
                words = [*words[-LAST_LINES:], line]
                print(line, end="", file=sys.stderr)
            output = process.stdout.read()
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        raise RuntimeError(f"The fit of {rows:,} rows failed:\n{''.join(words)}")
    result: Run = json.loads(output.splitlines()[-1])
    shutil.rmtree(directory)
    return result | attempts.in_all(result["report"]["stages"])


def show(runner: Runner, fits: dict[int, Run], skipped: dict[int, str], generated: Run) -> None:
    per_row = generated["seconds"] / generated["rows"]
    rows = []
    for n, fit in fits.items():
        seconds = fit["stage_seconds"]
        total = sum(seconds.values())
        cells = [f"{seconds[stage]:.1f}" for stage in STAGES]
        each = f"{total / n / TREES * 1e9:.0f}"
        rows.append([f"{n:,}", *cells, f"{total:.1f}", each, f"{n * per_row:.1f}", fit["attempts"]])
    for n, why in skipped.items():
        rows.append([f"{n:,}", f"not run: {why}", *[""] * len(STAGES[1:]), extrapolated(n, fits), "", "", ""])
    headings = ("rows", *STAGES, "seconds", "ns a row and tree", "of a pass: making rows", "attempts")
    rate = f"rows are made at {1 / per_row / 1e6:.1f} million a second on one core, in sample and distribute"
    runner.table(f"Seconds of each stage, {TREES} trees on one top tree; {rate}", headings, rows)


def extrapolated(n: int, fits: dict[int, Run]) -> str:
    if not fits:
        return ""
    largest = max(fits)
    seconds = sum(fits[largest]["stage_seconds"].values())
    return f"{seconds * n * math.log(n) / (largest * math.log(largest)):.0f} (extrapolated as n log n)"


def show_forests(runner: Runner, fits: dict[int, Run]) -> None:
    rows = []
    for n, fit in fits.items():
        report = fit["report"]
        buckets = report["bucket_rows"]
        numbers = (n, report["buckets"], report["bucket_size"], buckets["50%"], buckets["100%"])
        cells = [f"{number:,}" for number in (*numbers, report["buckets_split"], report["nodes"])]
        sizes = (human_bytes(fit["peak"]), human_bytes(fit["disk"]), f"{fit['accuracy']:.4f}")
        rows.append([*cells, report["depth"], *sizes])
    buckets_of = ("buckets", "bucket size", "median rows", "most rows", "split again")
    headings = ("rows", *buckets_of, "nodes", "depth", "peak memory", "most disk", "accuracy")
    runner.table(f"Memory limit {human_bytes(MEMORY_LIMIT)}, balance 1", headings, rows)


def draw(fits: dict[int, Run]) -> Figure:
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    ax = figure.subplots()
    places = [f"{n / 1e6:g}" for n in fits]
    below = [0.0] * len(fits)
    for stage in STAGES:
        heights = [fit["stage_seconds"][stage] for fit in fits.values()]
        ax.bar(places, heights, bottom=below, label=stage, width=0.6)
        below = [a + b for a, b in zip(below, heights, strict=True)]
    ax.set(xlabel="million rows", ylabel="seconds", title=f"{TREES} trees on one top tree, 9 features")
    ax.legend()
    return figure


if __name__ == "__main__":
    sys.exit(main())
