"""Compares oldgrowth with other libraries in one run: python benchmarks/compare.py --data DIR.

Each measurement has its own process and models alternate, so that a slow phase of the machine affects all of
them. The output is a table per data set with the goals, all raw measurements as JSON, and a plot.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from compare_report import plot, print_tables
from datasets import load_or_say
from machine import describe_machine
from rivals import RIVALS, TREES, installed
from tables import compare_tables

COMPARED_SETS = ("covtype", "generated")
TABLES = "tables"  # with text columns, and models of their own
WORKER = Path(__file__).with_name("worker.py")


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    # Where the output is not a terminal rich would squeeze the tables into 80 columns.
    console = Console(width=max(Console().width, 150))
    if TABLES in options.sets:
        run = partial(run_measured, timeout=options.timeout)
        failed = compare_tables(options, console, run)
        options.sets = [name for name in options.sets if name != TABLES]
        if failed or not options.sets:
            return failed
    models = choose_models(options, console)
    name = "compare" if options.rows is None else f"compare-{options.rows}-rows"
    options.output.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {
        "machine": describe_machine(),
        "trees": TREES,
        "rows": options.rows,
        "repeats": options.repeats,
        "shapes": {},
        "measurements": [],
    }
    with tempfile.TemporaryDirectory(prefix="oldgrowth-compare-") as folder:
        result["shapes"] = write_sets(options, Path(folder), console)
        for job in jobs(options.repeats, list(result["shapes"]), models):
            measurement = run_worker(Path(folder), *job, timeout=options.timeout)
            result["measurements"].append(measurement)
            console.print(progress_line(measurement), highlight=False, soft_wrap=True)
            # After every measurement: an interrupted run keeps what it has.
            (options.output / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    if not result["measurements"]:
        console.print("Nothing was measured.")
        return 1
    print_tables(result, console)
    written = f"{name}.json"
    if plot(result, options.output / f"{name}.png"):
        written += f" and {name}.png"
    console.print(f"Written: {written} in {options.output}", soft_wrap=True)
    return int(any("error" in m for m in result["measurements"]))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with covtype.parquet, and the tables")
    parser.add_argument("--sets", nargs="+", choices=(*COMPARED_SETS, TABLES), default=list(COMPARED_SETS))
    parser.add_argument("--models", nargs="+", choices=list(RIVALS), help="only these")
    parser.add_argument("--rivals", action="store_true", help="also the optional rivals that are installed")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, help="training rows of a scaled-down run; goals are not judged")
    parser.add_argument(
        "--timeout", type=float, default=3600, help="seconds before a measurement is given up"
    )
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


def choose_models(options: argparse.Namespace, console: Console) -> list[str]:
    """The requested models that are installed, in the order of RIVALS."""
    if options.models:
        wanted = [name for name in RIVALS if name in options.models]
    else:
        wanted = [name for name, rival in RIVALS.items() if options.rivals or not rival.optional]
    return installed(wanted, partial(console.print, highlight=False))


def write_sets(options: argparse.Namespace, folder: Path, console: Console) -> dict[str, dict[str, int]]:
    """Write the arrays once for all workers; a set whose file is missing is skipped."""
    shapes = {}
    for name in options.sets:
        split = load_or_say(name, options.data, options.rows, console)
        if split is None:
            continue
        split.save(folder / name)
        train, test = split.x_train.shape, split.x_test.shape
        shapes[name] = {"rows": train[0], "features": train[1], "test_rows": test[0]}
    return shapes


def jobs(repeats: int, sets: list[str], models: list[str]) -> list[tuple[int, str, str]]:
    return [
        (repeat, set_name, model)
        for repeat in range(repeats)
        for set_name in sets
        for model in models
        if RIVALS[model].takes_part(set_name)
    ]


def run_worker(folder: Path, repeat: int, set_name: str, model: str, timeout: float) -> dict[str, Any]:
    measurement: dict[str, Any] = {"set": set_name, "model": model, "repeat": repeat}
    measurement["load_before"] = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    command = [sys.executable, str(WORKER), model, str(folder / set_name), str(repeat)]
    return measurement | run_measured(command, timeout)


def run_measured(command: list[str], timeout: float) -> dict[str, Any]:
    """What a worker prints as JSON on its last line, or an error."""
    code, output, errors = run_to_the_end(command, timeout)
    if code is None:
        return {"error": f"took longer than {timeout:g} s"}
    if code:
        last_words = (errors.strip().splitlines() or ["no message"])[-1]
        return {"error": f"exit code {code}: {last_words}"}
    return json.loads(output.strip().splitlines()[-1])


def run_to_the_end(command: list[str], timeout: float) -> tuple[int | None, str, str]:
    """Exit code, or None after the timeout, and what was printed.

    Processes started by the worker must not survive it: they would slow down the next model. So it has
    its own session, and time to stop a server before everything is killed.
    """
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    worker = subprocess.Popen(command, **pipes, text=True, start_new_session=True)
    try:
        output, errors = worker.communicate(timeout=timeout)
        return worker.returncode, output, errors
    except subprocess.TimeoutExpired:
        return None, "", ""
    finally:
        for how in (signal.SIGTERM, signal.SIGKILL):
            if worker.poll() is None:
                os.killpg(worker.pid, how)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    worker.communicate(timeout=10)


def progress_line(measurement: dict[str, Any]) -> str:
    head = f"repeat {measurement['repeat']}  {measurement['set']:<10} {measurement['model']:<24}"
    if "error" in measurement:
        return f"{head} failed: {measurement['error']}"
    fit, predict = measurement["fit_seconds"], min(measurement["predict_seconds"])
    return f"{head} fit {fit:8.3f} s  predict {predict:7.3f} s  accuracy {measurement['accuracy']:.4f}"


if __name__ == "__main__":
    sys.exit(main())
