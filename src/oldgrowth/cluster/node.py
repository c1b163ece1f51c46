"""The worker's side of a fit: what this process holds of its rows, and hands out to other workers."""

from __future__ import annotations

import gc
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import OldgrowthError, SharedProcessError
from ..plan import Plan
from ..planning.planner import jobs_of
from ..reporting.progress import StageProgress
from ..storage.candidate_rows import CandidateRows
from ..storage.checkpoint import Checkpoint
from ..storage.disk_store import DiskStore
from ..storage.fit_workspace import FitWorkspace
from ..storage.top_file import Blocks
from ..system.limits import Limits, limits_of
from ..system.memory import keep_freed_memory, memory_limit_of, release_memory
from .values import Settings, Shared

# Asks another worker: its name, what is asked, and the arguments.
Ask = Callable[[str, str, dict[str, Any]], Any]

_TELL_SECONDS = 1.0
# Names of what jobs made, and of files with rows of buckets.
_HELD = re.compile(r"((?:learn|spill|route|split)-[0-9-]+)\.npz")
_BUCKETS = re.compile(r"(part|split|range)-[0-9-]+-top-\d+\.rows|(route|split)-[0-9-]+\.npz")
_CANDIDATES = re.compile(r"part-\d+-sample\.rows|learn-\d+\.npz")
_RANGES = re.compile(r"range-\d+-top-\d+\.rows")


@dataclass(frozen=True)
class Process:
    """A worker process, as its cluster provides it."""

    worker: str  # its name, which no other process has
    threads: int
    memory: int | None  # bytes that a fit may take, if the cluster limits it
    ask: Ask
    tell: Callable[[dict[str, Any]], None]  # the driver, of the progress of a job


@dataclass
class Node:
    """What a worker process has of one fit. Its files are in a directory of their own."""

    settings: Settings
    process: Process
    workspace: FitWorkspace = field(init=False)
    working: threading.Lock = field(default_factory=threading.Lock)  # one job at a time
    job: str = ""  # its name
    stop: _core.Stop = field(default_factory=_core.Stop)
    runs: dict[str, DiskStore] = field(default_factory=dict)
    candidates: dict[str, CandidateRows] = field(default_factory=dict)
    values: dict[int, Any] = field(default_factory=dict)  # that are shared by all jobs
    resident: int = 0  # memory of the process before the fit
    received: int = 0  # bytes of rows from other workers
    _told_at: float = 0.0
    _open: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        settings = self.settings
        self.workspace = self._open.enter_context(FitWorkspace(settings.spill_dir, fit=settings.fit))
        gc.collect()
        release_memory()  # that earlier fits of this process have left
        limits = self.limits()
        self.resident = limits.resident
        self.workspace.stop, self.workspace.limit = self.stop, limits.spill_limit
        keep_freed_memory(limits.memory)
        self._remove(_RANGES)  # of a killed process

    @property
    def worker(self) -> str:
        return self.process.worker

    @property
    def n_jobs(self) -> int:
        jobs = self.settings.n_jobs
        return self.process.threads if jobs in (None, -1) else min(self.process.threads, jobs_of(jobs))

    @property
    def written(self) -> int:
        """Bytes to disk."""
        return self.workspace.get().bytes_written

    def limits(self) -> Limits:
        """The limits of a task that begins now."""
        settings, most = self.settings, self.process.memory
        memory = settings.memory_limit
        if most is not None:  # beyond it, the cluster would stop the worker
            memory = most if memory == "auto" else min(most, memory_limit_of(memory))
        limits: dict[str, Any] = {
            "store": "disk",
            "spill_dir": settings.spill_dir,
            "spill_limit": settings.spill_limit,
            "checkpoint_dir": None,
        }
        return limits_of(limits | {"memory_limit": memory})

    def resolved(self, arguments: tuple[Any, ...]) -> Iterator[Any]:
        """The arguments of a job, with the values that they stand for."""
        for argument in arguments:
            yield self.values[argument.number] if isinstance(argument, Shared) else argument

    def progress(self) -> StageProgress:
        """Counts the rows of the running job, and tells the driver."""
        return _Told(self)

    def told(self, rows: int) -> None:
        """Tell the driver, now and then, how many rows of the running job are done."""
        now = time.monotonic()
        if now - self._told_at >= _TELL_SECONDS:
            self._told_at = now
            self.process.tell({"worker": self.worker, "job": self.job, "rows": rows})

    # What was made by jobs, and is known to a process that takes the place of this one.

    @property
    def records(self) -> Checkpoint:
        return self.workspace.checkpoint()

    def held(self) -> tuple[str, ...]:
        found = map(_HELD.fullmatch, self.workspace.get().names())
        return tuple(sorted(match[1] for match in found if match is not None))

    def saved(self, name: str) -> dict[str, Any] | None:
        """What `keep` was told of a store, and what else is known of what a job made."""
        try:
            found = self.records.saved(name)
        except OldgrowthError:  # it is damaged: the job is done again
            return None
        return None if found is None else found[1]

    def keep(self, name: str, store: DiskStore, rows: int) -> None:
        """A store is complete, with so many rows for each top tree."""
        self.records.save(name, {}, {"sizes": store.ends(), "rows": rows})
        self.runs[name] = store

    def reopened(self, name: str, store: DiskStore, owners: dict[int, npt.NDArray[np.int64]] | None) -> bool:
        """Take up the files that a killed process kept under this name; otherwise they are emptied."""
        found = self.saved(name)
        if found is not None:
            sizes = {int(top): size for top, size in found["sizes"].items()}
            if store.reopen(sizes, found["rows"], owners):
                self.runs[name] = store
                return True
        store.reopen(dict.fromkeys(store.ends(), 0), 0)
        return False

    def drop_runs(self) -> None:
        """Free the disk of the rows of all buckets."""
        for run in self.runs.values():
            run.drop_all()
        self.runs.clear()
        self._remove(_BUCKETS)

    def drop_candidates(self) -> None:
        """Top trees are grown."""
        for candidates in self.candidates.values():
            candidates.remove()
        self.candidates.clear()
        self._remove(_CANDIDATES)

    def _remove(self, names: re.Pattern[str]) -> None:
        workspace = self.workspace.get()
        for name in filter(names.fullmatch, workspace.names()):
            workspace.remove(name)

    # What other workers ask for.

    def answer(self, what: str, arguments: dict[str, Any]) -> Any:
        """What another worker has asked for."""
        answers: dict[str, Callable[..., Any]] = {"blocks": self._blocks, "candidates": self._candidates}
        return answers[what](**arguments)

    def _blocks(
        self, runs: list[str], top: int, owners: npt.NDArray[np.int64], run: int, start: int, most_bytes: int
    ) -> tuple[list[tuple[str, Blocks]], int, int]:
        """Blocks of these owners in these runs, from a byte of one run on; and where the next begin."""
        found, left = [], most_bytes
        while run < len(runs) and left > 0:
            blocks, start = self.runs[runs[run]].blocks(top, owners, start, left)
            found.append((runs[run], blocks))
            left -= blocks.data.nbytes
            if start < 0:
                run, start = run + 1, 0
        return found, run, start

    def _candidates(self, run: str, plan: Plan, top: int, n_rows: int) -> CandidateRows:
        return self.candidates[run].of_top(plan, top, n_rows)

    def close(self) -> None:
        """End the tasks of the fit, and remove its files."""
        self.stop.set()
        self._open.close()


class _Told(StageProgress):
    def __init__(self, node: Node) -> None:
        super().__init__("", None)
        self._node = node

    def _look(self, now: float) -> None:
        self._node.told(self.done)


class Nodes:
    """The fits that this process works for."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._lock = threading.Lock()

    def open(self, settings: Settings, process: Process) -> Node:
        """The node of a fit, which is made if there is none, or follows a client that takes up the fit."""
        with self._lock:
            if settings.fit not in self._nodes:
                self._nodes[settings.fit] = Node(settings, process)
            node = self._nodes[settings.fit]
            if node.worker != process.worker:
                raise SharedProcessError(node.worker)
            node.settings = settings
            return node

    def get(self, fit: str) -> Node:
        return self._nodes[fit]

    def close(self, fit: str) -> None:
        with self._lock:
            node = self._nodes.pop(fit, None)
        if node is not None:
            node.close()

    def leave(self, fit: str) -> None:
        """Nobody waits for a fit, which may be taken up."""
        with self._lock:
            if fit in self._nodes:
                self._nodes[fit].settings = replace(self._nodes[fit].settings, client="")

    def close_abandoned(self, clients: list[str], but: str) -> None:
        """Remove what is left of fits that none of these clients waits for, but for one fit."""
        for fit, node in list(self._nodes.items()):
            if fit != but and node.settings.client not in clients:
                self.close(fit)

    def close_all(self) -> None:
        for fit in list(self._nodes):
            self.close(fit)


NODES = Nodes()
