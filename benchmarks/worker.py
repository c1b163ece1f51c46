"""Runs one measurement: python worker.py MODEL DIR SEED [BYTES] prints one line of JSON.

DIR contains the arrays as .npy files; BYTES is the memory limit of the process. A tiny fit comes first, so
that imports and the start of thread pools are not measured.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from datasets import Split
from rivals import RIVALS, TREES, Model, Rival

PREDICTIONS = 3


def main() -> None:
    signal.signal(signal.SIGTERM, end_early)
    name, folder, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    for limit in sys.argv[4:]:
        resource.setrlimit(resource.RLIMIT_DATA, (int(limit), int(limit)))
    split = Split.load(folder)
    result = measure_ranger(split, seed) if name == "ranger" else measure(RIVALS[name], split, seed)
    # A library may have written to stdout without a newline: the report starts on a line of its own.
    print("\n" + json.dumps(result), flush=True)


def end_early(*_: object) -> None:
    """End the processes started here, too: h2o's server has its own session and would survive."""
    for child in children():
        os.kill(int(child), signal.SIGKILL)
    sys.exit(1)


def children() -> list[str]:
    """The processes started here, if the system reports them."""
    listed = Path(f"/proc/self/task/{os.getpid()}/children")
    return listed.read_text().split() if listed.exists() else []


def measure(rival: Rival, split: Split, seed: int) -> dict[str, Any]:
    model = rival.make()
    try:
        warm_up(model)
        train, test = model.prepare(split.x_train, split.y_train), model.prepare(split.x_test, None)
        processes = ["self"] if rival.in_process else children()
        before = [reset_peak_memory(process) for process in processes]
        started = time.perf_counter()
        model.fit(train, seed)
        fit_seconds = time.perf_counter() - started
        peak = [memory_field("VmHWM", process) for process in processes]
        predict_seconds = []
        for _ in range(PREDICTIONS):
            started = time.perf_counter()
            predicted = model.predict(test)
            predict_seconds.append(time.perf_counter() - started)
        accuracy = float(np.mean(model.labels(predicted) == split.y_test))
    finally:
        model.close()
    known = bool(processes) and None not in before and None not in peak
    return {
        "fit_seconds": fit_seconds,
        "predict_seconds": predict_seconds,
        "accuracy": accuracy,
        "memory_bytes": sum(peak) - sum(before) if known else None,
    }


def warm_up(model: Model) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((500, 8), dtype=np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    model.fit(model.prepare(x, y), 0)
    model.labels(model.predict(model.prepare(x, None)))


def reset_peak_memory(process: str) -> int | None:
    """The current resident memory, from which the peak is counted; None if the system does not report it."""
    gc.collect()
    try:
        Path(f"/proc/{process}/clear_refs").write_text("5")
    except OSError:
        return None
    return memory_field("VmRSS", process)


def memory_field(field: str, process: str) -> int | None:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":")), None)


def measure_ranger(split: Split, seed: int) -> dict[str, Any]:
    script = Path(__file__).with_name("ranger.R")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("x_train", "x_test"):
            getattr(split, name).T.tofile(Path(folder, f"{name}.bin"))
        for name in ("y_train", "y_test"):
            getattr(split, name).astype(np.int32).tofile(Path(folder, f"{name}.bin"))
        sizes = (len(split.x_train), len(split.x_test), split.x_train.shape[1])
        Path(folder, "sizes.txt").write_text(" ".join(map(str, sizes)))
        command = ["Rscript", str(script), folder, str(TREES), str(seed), str(os.cpu_count())]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
