"""Models that take turns at the same rows, at more and more of them, each fit in a process with limits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from compare import run_to_the_end
from journal import Run
from oldgrowth.messages.text import human_bytes

OUT_OF_MEMORY = ("MemoryError", "bad_alloc", "annot allocate", "nable to allocate", "OutOfMemory")


@dataclass(frozen=True)
class Limits:
    """Seconds of a run, and up to how many seconds and rows a fit is done with other seeds; the yardstick,
    with whose seeds others are compared, always is. Memory of a run in bytes, as the paper's machine has."""

    seconds: float
    repeated_seconds: float
    repeated_rows: int
    yardstick: str | None = None
    memory: int = 16 * 10**9


Results = dict[tuple[int, str], list[Run]]  # by training rows and model: one for each seed


def take_turns(
    sizes: Iterable[int],
    models: Iterable[str],
    seeds: range,
    limits: Limits,
    fit: Callable[[int, str, int], Run],
) -> Results:
    """Models take turns, so that a slow minute of the machine hits all of them. Smaller sizes first: a model
    that fails is not tried with more rows, nor one that would be too slow if its time grew as its rows do."""
    results: Results = {}
    latest: dict[str, tuple[int, float]] = {}  # rows and seconds
    failed: set[str] = set()
    for rows in sizes:
        for seed in seeds:
            for model in models:
                done = results.setdefault((rows, model), [])
                if model in failed or (seed and not _repeated(model, done, rows, limits)):
                    continue
                before, seconds = latest.get(model, (rows, 0.0))
                too_slow = {"failed": f"would take over {limits.seconds:g} s"}
                done.append(too_slow if seconds * rows / before > limits.seconds else fit(rows, model, seed))
                if "failed" in done[-1]:
                    failed.add(model)
                else:
                    latest[model] = rows, done[-1]["fit_seconds"]
    return results


def _repeated(model: str, done: list[Run], rows: int, limits: Limits) -> bool:
    return model == limits.yardstick or (
        rows <= limits.repeated_rows and done[0]["fit_seconds"] <= limits.repeated_seconds
    )


def measured_within(command: list[str], seconds: float, memory: int) -> Run:
    """What a worker prints, a line of JSON, or why it `failed`; it holds itself to its memory."""
    code, output, errors = run_to_the_end(command, seconds)
    if code is None:
        return {"failed": f"over {seconds:g} s"}
    if code:
        return {"failed": _reason(code, errors, memory)}
    result: Run = json.loads(output.strip().splitlines()[-1])
    return result


def _reason(code: int, errors: str, memory: int) -> str:
    """Why a worker ended early, in a few words; a process that the system kills had no memory left."""
    if code == -9 or any(words in errors for words in OUT_OF_MEMORY):
        return f"out of memory ({human_bytes(memory)})"
    return f"exit code {code}: {(errors.strip().splitlines() or ['no message'])[-1][:200]}"


def finished(runs: list[Run]) -> list[Run]:
    return [run for run in runs if "failed" not in run]
