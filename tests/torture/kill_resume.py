"""Kills fits with SIGKILL, resumes them and compares every bit of the results.

    python tests/torture/kill_resume.py --kills 50

kills at random instants, at every entry and exit of a stage, and in the middle of writes. A fit is often
taken up with other threads, chunks and disk limits than it began with, and killed again.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from cases import CASES, outcome, parsed, quick_directory, remember_often, verdict, write_files

from oldgrowth.reporting.report import Recorder

Arm = Callable[[], None]  # prepares a child's death
CRASHED = "ended by"
_HANGS_AFTER = 300  # seconds, of fits that take one


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def at_stage_boundary(k: int) -> Arm:
    """Die at the k-th entry or exit of a stage."""

    def arm() -> None:
        whole, left = Recorder.stage, [k]

        def count() -> None:
            if left[0] == 0:
                die()
            left[0] -= 1

        @contextmanager
        def stage(*args: Any, **options: Any) -> Iterator[Any]:
            count()
            with whole(*args, **options) as progress:
                yield progress
            count()

        Recorder.stage = stage  # type: ignore[method-assign, assignment]

    return arm


def in_write(k: int) -> Arm:
    """Die in the k-th call that changes a file; a write is half done by then."""

    def arm() -> None:
        left = [k]

        def dying(name: str) -> None:
            real = getattr(os, name)

            def call(*args: Any, **options: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    if name == "pwrite":
                        real(args[0], args[1][: len(args[1]) // 2], args[2])
                    die()
                return real(*args, **options)

            setattr(os, name, call)

        for name in ("pwrite", "fsync", "fdatasync", "replace", "ftruncate", "unlink"):
            dying(name)

    return arm


def run(case: str, folder: Path, params: dict[str, Any], arm: Arm | None, after: float | None) -> str | None:
    """Fit in a child; what came out, or None if it was killed, `after` some seconds or as it was armed to.

    A child that crashes, or hangs, is ended by another signal, which is named.
    """
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        _child(case, folder, params, arm, writer)
    os.close(writer)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reader) as out:
        said = out.read()
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        return said
    ended_by = signal.Signals(os.WTERMSIG(status))
    return None if ended_by == signal.SIGKILL else f"{CRASHED} {ended_by.name}"


def _child(case: str, folder: Path, params: dict[str, Any], arm: Arm | None, writer: int) -> None:
    try:
        signal.alarm(_HANGS_AFTER)
        warnings.simplefilter("ignore")
        remember_often()
        if arm is not None:
            arm()
        os.write(writer, outcome(CASES[case](folder, **params)).encode())
    except BaseException:  # noqa: BLE001 - the parent prints it
        os.write(writer, traceback.format_exc().encode())
    finally:
        os._exit(0)


class Torture:
    def __init__(self, folder: Path, seed: int | str, cases: list[str]) -> None:
        self.folder = folder
        self.cases = cases
        self.random = random.Random(seed)
        self.killed = self.bad = self.trials = 0
        if (child := os.fork()) == 0:  # here it would start threads, which a fork does not survive
            write_files(folder)
            os._exit(0)
        os.waitpid(child, 0)
        self.expected: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        for case in cases:
            in_memory = run(case, folder, {"store": "memory"} if case != "subsets" else {}, None, None)
            started = time.monotonic()
            found = run(case, folder, {"checkpoint_dir": folder / "first"}, None, None)
            self.seconds[case] = time.monotonic() - started
            assert found == in_memory, f"{case}: {found}"
            assert found is not None and "Traceback" not in found, found
            self.expected[case] = found

    def trial(self, case: str, arm: Arm | None = None, what: str = "") -> bool:
        """Kill once or more, then let it finish; whether a kill came before the end."""
        directory = self.folder / "checkpoint"
        shutil.rmtree(directory, ignore_errors=True)
        self.trials += 1
        kills = 0
        while True:
            params = {"checkpoint_dir": directory} | self._means(case, kills)
            after = None
            if arm is None and kills < 3 and (kills == 0 or self.random.random() < 0.4):
                after = self.random.uniform(0.0, 1.2 * self.seconds[case])
            found = run(case, self.folder, params, arm, after)
            if found is not None:
                break
            kills += 1
            again = arm is not None and kills < 3 and self.random.random() < 0.3
            arm = in_write(self.random.randrange(200)) if again else None
        self.killed += kills
        if found != self.expected[case] or list(directory.iterdir()):
            self.bad += 1
            left = [path.name for path in directory.iterdir()]
            print(f"NOT THE SAME: {case}, {kills} kills, {what}, left {left}\n{found}", flush=True)
        return kills > 0

    def _means(self, case: str, kills: int) -> dict[str, Any]:
        """How, not what: mostly as before, sometimes with other threads, chunks and disk."""
        if kills == 0 or self.random.random() < 0.5:
            return {}
        means = {"n_jobs": self.random.choice([1, 2, 3]), "chunk_size": self.random.choice([33, 100, 1000])}
        if case == "labels_in_arrays_in_rounds":
            means["spill_limit"] = self.random.choice(["1.2MB", "1.5MB", "10MB"])
        return means

    def random_instants(self, kills: int) -> None:
        while self.killed < kills:
            self.trial(self.random.choice(self.cases), what="random instant")

    def stage_boundaries(self) -> None:
        for case in self.cases:
            k = 0
            while self.trial(case, at_stage_boundary(k), f"stage boundary {k}"):
                k += 1

    def writes(self, trials: int) -> None:
        for _ in range(trials):
            k = int(2 ** self.random.uniform(0, 9)) - 1
            self.trial(self.random.choice(self.cases), in_write(k), f"in write {k}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill fits, take them up, compare.")
    parser.add_argument("--kills", type=int, default=50, help="at random instants")
    parser.add_argument("--writes", type=int, default=50, help="fits killed in the middle of a write")
    parser.add_argument("--no-boundaries", action="store_true", help="not at each stage boundary")
    options = parsed(parser)
    with tempfile.TemporaryDirectory(dir=quick_directory()) as folder:
        torture = Torture(Path(folder), options.seed, options.cases)
        torture.random_instants(options.kills)
        torture.writes(options.writes)
        if not options.no_boundaries:
            torture.stage_boundaries()
    return verdict(torture, "kills")


if __name__ == "__main__":
    sys.exit(main())
