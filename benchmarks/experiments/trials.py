"""Models that alternate on the same rows, with increasing sizes, each fit in a process with limits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from compare import run_to_the_end
from journal import Run
from oldgrowth.messages.text import human_bytes

# Words of libraries and, for "map segment", of the loader of libraries.
OUT_OF_MEMORY = (
    *("MemoryError", "bad_alloc", "annot allocate", "nable to allocate", "OutOfMemory"),
    "failed to map segment",
)


@dataclass(frozen=True)
class Limits:
    """Maximum seconds of a run, and seconds and rows up to which a fit is repeated with other seeds; the
    reference, with which others are compared, always is. Maximum bytes of a run, those of the paper."""

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
    """Models alternate, so that a slow phase of the machine affects all. Smaller sizes come first: a model
    that fails is not tried with more rows, nor one that would be too slow if its time grew linearly."""
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
    """The JSON that a worker prints, or why it `failed`; the worker limits its own memory."""
    code, output, errors = run_to_the_end(command, seconds)
    if code is None:
        return {"failed": f"over {seconds:g} s"}
    if code:
        return {"failed": _reason(code, errors, memory)}
    result: Run = json.loads(output.strip().splitlines()[-1])
    return result


def _reason(code: int, errors: str, memory: int) -> str:
    """Why a worker ended early; a process that the system kills ran out of memory."""
    if code == -9 or any(words in errors for words in OUT_OF_MEMORY):
        return f"out of memory ({human_bytes(memory)})"
    return f"exit code {code}: {(errors.strip().splitlines() or ['no message'])[-1][:200]}"


def finished(runs: list[Run]) -> list[Run]:
    return [run for run in runs if "failed" not in run]
