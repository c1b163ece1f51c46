"""Lets every file operation of fits, saves, loads and commands fail in turn, and checks the results.

    python tests/torture/faults.py --every 1

Each call below a directory (open, write, read, sync, rename, mkdir, lock, unlink, truncate, map,
list, stat) fails once,
or from some call on, or does half of what it was asked, in a process of its own with faults.c preloaded. What
comes out must be the same model, or an error of ours that names a file; nothing may be left, a checkpoint
must go on, and a fit whose clean-up fails is finished.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import gc
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from cases import quick_directory
from faulty_work import SCENARIOS, Scenario

KINDS = (
    "open", "write", "read", "sync", "rename", "mkdir", "lock", "unlink", "truncate", "map", "list", "look",
    "seek",
)  # fmt: skip
ONCE, FROM_THERE_ON, SHORT = 0, 1, 2
MODES = ("once", "from there on", "half done")
FAULTS: list[tuple[str, int, int]] = [
    ("open", errno.EIO, ONCE), ("open", errno.EMFILE, FROM_THERE_ON), ("open", errno.ENOSPC, ONCE),
    ("write", errno.EIO, ONCE), ("write", errno.ENOSPC, FROM_THERE_ON), ("write", 0, SHORT),
    ("read", errno.EIO, ONCE), ("read", 0, SHORT),
    ("sync", errno.EIO, ONCE), ("sync", errno.ENOSPC, FROM_THERE_ON),
    ("rename", errno.EIO, ONCE), ("rename", errno.ENOSPC, FROM_THERE_ON),
    ("mkdir", errno.EACCES, ONCE), ("lock", errno.ENOLCK, ONCE), ("lock", errno.EIO, ONCE),
    ("unlink", errno.EIO, ONCE), ("unlink", errno.EPERM, FROM_THERE_ON),
    ("truncate", errno.EIO, ONCE), ("truncate", errno.EIO, FROM_THERE_ON),
    ("map", errno.ENOMEM, ONCE),
    ("list", errno.EIO, ONCE), ("list", errno.EMFILE, FROM_THERE_ON),
    ("look", errno.EIO, ONCE), ("look", errno.EACCES, FROM_THERE_ON),
    ("seek", errno.EIO, ONCE),
]  # fmt: skip
SECONDS = 120  # after which a child hangs


@dataclass(frozen=True)
class Fault:
    kind: str
    at: int
    error: int
    mode: int

    def __str__(self) -> str:
        code = errno.errorcode.get(self.error, "")
        return f"{self.kind} {self.at} {code} {MODES[self.mode]}"


NONE = Fault("open", 2**40, 0, ONCE)


def in_child(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What work says, in a process of its own; its death is an answer too."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.close(reader)
        signal.alarm(SECONDS)
        with os.fdopen(writer, "w") as out:
            out.write(json.dumps(work()))
            out.flush()
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) or not text:
        return {"died": f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {status}"}
    found: dict[str, Any] = json.loads(text)
    return found


def attempt(scenario: Scenario, folder: Path, fault: Fault) -> dict[str, Any]:
    """Run a scenario with a fault: what it was, or the error, warnings, files left open, calls counted."""
    library = ctypes.CDLL(None)
    found: dict[str, Any] = {"outcome": None, "error": None}
    before = len(os.listdir("/proc/self/fd"))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        library.faults_arm(
            os.fsencode(folder), KINDS.index(fault.kind), ctypes.c_long(fault.at), fault.error, fault.mode
        )
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                found["outcome"] = scenario.run(folder)
        except BaseException as error:  # noqa: BLE001 - the parent judges it
            names = [kind.__name__ for kind in type(error).__mro__]
            text = "\n".join([str(error), *getattr(error, "__notes__", [])])
            found["error"] = {
                "kinds": names,
                "text": text,
                "file": str(getattr(error, "filename", None) or ""),
            }
            del error
        library.faults_disarm()
    gc.collect()
    found["open"] = len(os.listdir("/proc/self/fd")) - before
    found["warned"] = [str(w.message) for w in warned if w.category.__name__ == "LeftoverWarning"]
    found["calls"] = {kind: library.faults_counted(i) for i, kind in enumerate(KINDS)}
    return found


class Torture:
    def __init__(self, root: Path, every: int, kinds: list[str]) -> None:
        self.root, self.every = root, every
        self.faults = [fault for fault in FAULTS if fault[0] in kinds]
        self.runs = self.failed = self.bad = 0

    def run(self, scenario: Scenario) -> None:
        whole = self.root / "whole"
        self._fresh(scenario, whole)
        found = in_child(lambda: attempt(scenario, whole, NONE))
        expected = found.get("outcome")
        assert expected is not None, f"{scenario.name}: {found}"
        assert expected == scenario.expected(self.root, in_child), f"{scenario.name}: {found}"
        calls = found["calls"]
        runs = self.runs
        for kind, error, mode in self.faults:
            # Threads come first now here, now there, so the number of calls is not quite the same each time.
            first = self.runs % max(1, min(self.every, calls[kind]))
            for at in range(first, calls[kind], self.every):
                self._one(scenario, Fault(kind, at, error, mode), expected)
        print(
            f"{scenario.name}: {self.runs - runs} faults in {sum(calls.values())} calls {calls}", flush=True
        )

    def _fresh(self, scenario: Scenario, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        scenario.prepare(folder, in_child)

    def _one(self, scenario: Scenario, fault: Fault, expected: str) -> None:
        folder = self.root / "here"
        self._fresh(scenario, folder)
        found = in_child(lambda: attempt(scenario, folder, fault))
        self.runs += 1
        self.failed += found.get("error") is not None
        wrong = self._wrong(scenario, folder, fault, found, expected)
        if wrong:
            self.bad += 1
            left = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
            print(f"BAD: {scenario.name}, {fault}: {wrong}\n  {found}\n  files: {left}", flush=True)

    def _wrong(
        self, scenario: Scenario, folder: Path, fault: Fault, found: dict[str, Any], expected: str
    ) -> str:
        if "died" in found:
            return f"died of {found['died']}"
        if found["open"] > 0:
            return f"{found['open']} files left open"
        left = scenario.left(folder)
        if found["error"] is None:
            if found["outcome"] != expected:
                return "another outcome"
        else:
            if (wrong := _unclear(found["error"], folder, fault)) is not None:
                return wrong
            if fault.kind == "unlink" and scenario.fits:
                return "a fit is lost to its clean-up"
        for_good = fault.mode == FROM_THERE_ON and fault.kind in ("unlink", "list")
        unavoidable = scenario.clears_later or for_good
        if left and not (unavoidable and _told(left, found)):
            return f"{left} left"
        if found["error"] is not None or left:
            return self._afterwards(scenario, folder, fault, expected)
        return ""

    def _afterwards(self, scenario: Scenario, folder: Path, fault: Fault, expected: str) -> str:
        """Without faults, it must work again: a checkpoint is resumed, an old file is intact."""
        again = in_child(lambda: attempt(scenario, folder, NONE))
        if again.get("outcome") != expected:
            return f"afterwards: {again}"
        left = [] if fault.kind in ("unlink", "list") else scenario.left(folder)
        return f"afterwards {left} left" if left else ""


def _unclear(error: dict[str, Any], folder: Path, fault: Fault) -> str | None:
    """What is wrong with an error: it is one of ours, or an OSError, and names a file."""
    ours = "OldgrowthError" in error["kinds"]
    if not ours and not ("OSError" in error["kinds"] and error["file"]):
        return "not an error of ours"
    if str(folder) not in error["text"] and fault.kind != "map":  # there it is memory that is short
        return "the error names no file"
    return None


def _told(left: list[str], found: dict[str, Any]) -> bool:
    """Whether a warning, or the error, names what is left."""
    said = "\n".join(found["warned"] + ([found["error"]["text"]] if found["error"] else []))
    return "could not be removed" in said


def preload(arguments: list[str]) -> int:
    """Compile faults.c and run this script again with it."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "faults.so"
        source = Path(__file__).with_suffix(".c")
        subprocess.run(
            [os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True
        )
        environment = os.environ | {"LD_PRELOAD": str(library), "FAULTS": "loaded", "OMP_NUM_THREADS": "1"}
        return subprocess.run([sys.executable, __file__, *arguments], env=environment).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description="Fail every file call, one at a time.")
    parser.add_argument("--every", type=int, default=1, help="only every so many calls")
    parser.add_argument("--only", nargs="*", default=[scenario.name for scenario in SCENARIOS])
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), help="only these calls")
    options = parser.parse_args()
    if "FAULTS" not in os.environ:
        return preload(sys.argv[1:])
    gc.collect()
    gc.freeze()  # what is there is not looked at in each child
    with tempfile.TemporaryDirectory(dir=quick_directory()) as root:
        torture = Torture(Path(root).resolve(), options.every, options.kinds)
        for scenario in SCENARIOS:
            if scenario.name in options.only:
                torture.run(scenario)
    print(
        f"{torture.runs} faults, {torture.failed} ended in an error, {torture.bad} badly",
        flush=True,
    )
    return 1 if torture.bad else 0


if __name__ == "__main__":
    sys.exit(main())
