"""The paper's last figure: a forest of 250, 500, 750 and 1,000 million pixels of 9 bands of bytes, 3x3.

One top tree with four trees, balance 1, from GeoTIFFs, with the paper's limit on memory. The pixels are those
of the first one to four of four scenes, one south of the other, with a file of labels for all of them; they
are written once. A finished size is not run again, and an interrupted one goes on from its checkpoint: its
seconds are then those of the last attempt alone, and the number of attempts says so.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from journal import Journal, Run
from oldgrowth.messages.text import human_bytes
from scene_files import Scenes, write_scenes
from scene_goals import stages_of

HERE = Path(__file__).parent
STAGES = ("sample", "top trees", "distribute", "grow", "assemble")
FIT = {"n_estimators": 4, "trees_per_top": 4, "random_state": 0}
PAPER_LIMIT = "16GB"
SPILL_LIMIT = "52GB"  # with the files of the scenes, 60 GB in all
SCENES, WIDTH = 4, 25_000


def run_worker(what: str, **arguments: Any) -> Run:
    command = [sys.executable, str(HERE / "raster_worker.py"), json.dumps({"what": what} | arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: Run = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def billion(work: Path, step: float, journal: Journal, console: Console) -> None:
    """Fit scenes of `step` megapixels each: one, two, three and four of them."""
    console.print(f"writing {SCENES} scenes of {step:g} megapixels")
    scenes = write_scenes(work / f"scenes-{step:g}", SCENES, round(step * 10**6 / WIDTH), WIDTH)
    console.print(f"scenes and labels: {human_bytes(scenes.nbytes)}")
    runs: dict[float, Run] = {}
    for count in range(1, SCENES + 1):
        first = scenes.first(count)
        parameters = {"megapixels": count * step, "scenes": count, "memory_limit": PAPER_LIMIT}
        runs[count * step] = journal.run(parameters, lambda first=first, count=count: fit(work, first, count))
        console.print("\n".join(in_markdown(runs)), soft_wrap=True)


def fit(work: Path, scenes: Scenes, count: int) -> Run:
    for file in scenes.files:
        forget(file)
    checkpoint, tries = work / f"checkpoint-{count}", work / f"attempts-{count}"
    attempts = 1 + (int(tries.read_text()) if tries.exists() else 0)
    tries.write_text(str(attempts))
    settings = FIT | {
        "balance": 1.0,
        "memory_limit": PAPER_LIMIT,
        "spill_limit": SPILL_LIMIT,
        "checkpoint_dir": str(checkpoint),
        "verbose": 1,
    }
    run = run_worker("fit from scene", bands=scenes.bands, labels=scenes.labels, fit=settings)
    del run["report"]["rows_by_bucket"]
    shutil.rmtree(checkpoint, ignore_errors=True)
    tries.unlink()
    return run | {"scene_bytes": scenes.nbytes, "attempts": attempts}


def forget(file: str) -> None:
    """Drop a file from the system's cache."""
    with open(file, "rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


HEADINGS = (
    "million pixels",
    *STAGES,
    "seconds",
    "ns a pixel and tree",
    "nodes",
    "store",
    "peak memory GB",
    "most disk GB",
    "files GB",
    "attempts",
)


def rows_of(runs: dict[float, Run]) -> list[list[str]]:
    return [_row(size, run) for size, run in runs.items()]


def _row(size: float, run: Run) -> list[str]:
    report, stages = run["report"], stages_of(run)
    each = report["seconds"] / report["rows"] / report["trees"] * 1e9
    return [
        f"{size:,g}",
        *(f"{stages[name]['seconds']:,.1f}" for name in STAGES),
        f"{report['seconds']:,.1f}",
        f"{each:.0f}",
        f"{report['nodes']:,}",
        report["store"],
        *(f"{run[what] / 1e9:.2f}" for what in ("peak", "most_disk", "scene_bytes")),
        str(run["attempts"]),
    ]


def in_markdown(runs: dict[float, Run]) -> list[str]:
    """The table of docs/results.md."""
    return [f"| {' | '.join(row)} |" for row in (list(HEADINGS), ["---"] * len(HEADINGS), *rows_of(runs))]
