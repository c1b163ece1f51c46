"""Compares two revisions of oldgrowth: python benchmarks/revisions.py BEFORE [AFTER] --data DIR.

Each revision is installed from the repository into an environment of its own. The fits of compare.py and
scale.py then alternate between the two, each in its own process. The output is a table with the ratio of the
best wall times and of the best processor times: the latter suffers less from what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from compare import COMPARED_SETS, write_sets
from scale import LIMIT, PER_FILE, TREES, make_data

Job = tuple[str, list[str]]  # what is measured, and the arguments of a revision's worker
# Of the fits of scale.py: those of both stores have 4 million rows, those with a limit more.
COMPARED_ROWS, LIMITED_ROWS = 4 * PER_FILE, 10 * PER_FILE


def main() -> None:
    options = parse()
    console = Console(highlight=False, width=max(Console().width, 110))
    with tempfile.TemporaryDirectory(prefix="oldgrowth-revisions-", dir=options.directory) as folder:
        work = Path(folder)
        sides = {
            name: install(name, work, console) for name in dict.fromkeys((options.before, options.after))
        }
        jobs = list(compared_jobs(options, work, console)) + list(scale_jobs(work))
        runs: dict[tuple[str, str], list[dict[str, float]]] = {}
        for repeat in range(options.repeats):
            for what, arguments in jobs:
                # The order alternates, so that neither always finds the machine as the other left it.
                for side in list(sides)[:: 1 if repeat % 2 == 0 else -1]:
                    shutil.rmtree(work / "checkpoint", ignore_errors=True)
                    run = run_worker(sides[side], arguments)
                    runs.setdefault((what, side), []).append(run)
                    figures = ", ".join(f"{name} {value:.3f}" for name, value in run.items())
                    console.print(f"repeat {repeat}  {side:<12.12} {what}: {figures}", soft_wrap=True)
    show(console, runs, options.before, options.after)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", help="revision of git")
    parser.add_argument("after", nargs="?", default="HEAD")
    parser.add_argument("--data", type=Path, help="folder with covtype.parquet")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--directory", type=Path, help="for environments and data, instead of the system's")
    options = parser.parse_args()
    options.sets, options.rows = list(COMPARED_SETS), None
    return options


def install(revision: str, work: Path, console: Console) -> Path:
    """An environment with a revision, and its sources; gives the folder of both."""
    console.print(f"installing {revision}")
    folder = work / f"revision-{revision.replace('/', '-')}"
    folder.mkdir()
    archive = subprocess.run(
        ["git", "archive", revision], cwd=Path(__file__).parent.parent, stdout=subprocess.PIPE, check=True
    )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    venv.create(folder / "venv", with_pip=True)
    subprocess.run([python_of(folder), "-m", "pip", "install", "--quiet", f"{folder}[bench]"], check=True)
    return folder


def python_of(folder: Path) -> str:
    return str(folder / "venv" / "bin" / "python")


def compared_jobs(options: argparse.Namespace, work: Path, console: Console) -> Iterator[Job]:
    for name in write_sets(options, work, console):
        yield name, ["worker.py", "oldgrowth", str(work / name), "0"]


def scale_jobs(work: Path) -> Iterator[Job]:
    files = make_data(work / "imagery", LIMITED_ROWS)
    limited = {"memory_limit": LIMIT, "store": "disk", "checkpoint_dir": str(work / "checkpoint")}
    fits: tuple[tuple[str, int, dict[str, Any]], ...] = (
        ("memory", COMPARED_ROWS, {"store": "memory"}),
        ("disk", COMPARED_ROWS, {"store": "disk", "spill_dir": str(work)}),
        ("limited, checkpointed", LIMITED_ROWS, limited),
    )
    for name, rows, fit in fits:
        wanted = {
            "who": "oldgrowth",
            "files": files[: rows // PER_FILE],
            "model": str(work / "forest.og"),
            "fit": TREES | fit,
        }
        yield f"{rows // 10**6} M x 81, {name}", ["scale_worker.py", json.dumps(wanted)]


def run_worker(folder: Path, arguments: list[str]) -> dict[str, float]:
    """The seconds that a worker tells, and the processor time of its process."""
    script, *rest = arguments
    command = [python_of(folder), str(folder / "benchmarks" / script), *rest]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    output = worker.stdout.read()
    _, status, usage = os.wait4(worker.pid, 0)
    worker.returncode = os.waitstatus_to_exitcode(status)
    if worker.returncode:
        sys.exit(f"{' '.join(command)} failed with exit code {worker.returncode}")
    told = json.loads(output.strip().splitlines()[-1])
    if "fit_seconds" in told:
        seconds = {"fit": told["fit_seconds"], "predict": min(told["predict_seconds"])}
    else:
        stages = told["report"]["stages"]
        seconds = {"fit": told["seconds"]} | {stage["name"]: stage["seconds"] for stage in stages}
    return seconds | {"processor": usage.ru_utime + usage.ru_stime}


def show(
    console: Console, runs: dict[tuple[str, str], list[dict[str, float]]], before: str, after: str
) -> None:
    table = Table(title="Best seconds", title_justify="left")
    for heading in ("what", "of", before, after, "ratio"):
        table.add_column(heading, justify="left" if heading in ("what", "of") else "right")
    for what in dict.fromkeys(what for what, _ in runs):
        for name in runs[what, before][0]:
            old, new = (min(run[name] for run in runs[what, side]) for side in (before, after))
            table.add_row(what, name, f"{old:.3f}", f"{new:.3f}", f"{new / old:.3f}")
    console.print(table)


if __name__ == "__main__":
    main()
