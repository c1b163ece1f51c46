"""The worker's side of a fit: what this process holds of its rows, and hands out to other workers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..plan import Plan
from ..planning.planner import jobs_of
from ..storage.candidate_rows import CandidateRows
from ..storage.disk_store import DiskStore
from ..storage.fit_workspace import FitWorkspace
from ..storage.top_file import Blocks
from ..system.limits import Limits, limits_of
from ..system.memory import return_memory_when_freed
from .values import Settings, Shared

# Asks another worker: its address, what is asked, and the arguments.
Ask = Callable[[str, str, dict[str, Any]], Any]


@dataclass
class Node:
    """What a worker process has of one fit. Its files are in a directory of their own."""

    settings: Settings
    ask: Ask
    address: str
    threads: int
    workspace: FitWorkspace = field(init=False)
    stop: _core.Stop = field(default_factory=_core.Stop)
    runs: dict[str, DiskStore] = field(default_factory=dict)
    candidates: dict[str, CandidateRows] = field(default_factory=dict)
    values: dict[int, Any] = field(default_factory=dict)  # that are shared by all jobs
    received: int = 0  # bytes of rows from other workers
    _open: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        self.workspace = self._open.enter_context(FitWorkspace(self.settings.spill_dir))
        self.workspace.stop = self.stop
        return_memory_when_freed()

    @property
    def n_jobs(self) -> int:
        jobs = self.settings.n_jobs
        return self.threads if jobs in (None, -1) else min(self.threads, jobs_of(jobs))

    def limits(self) -> Limits:
        """The limits of a task that begins now."""
        limits: dict[str, Any] = {
            "store": "disk",
            "spill_dir": self.settings.spill_dir,
            "checkpoint_dir": None,
        }
        return limits_of(limits | {"memory_limit": self.settings.memory_limit})

    def resolved(self, arguments: tuple[Any, ...]) -> Iterator[Any]:
        """The arguments of a job, with the values that they stand for."""
        for argument in arguments:
            yield self.values[argument.number] if isinstance(argument, Shared) else argument

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


class Nodes:
    """The fits that this process works for."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._lock = threading.Lock()

    def open(self, settings: Settings, ask: Ask, address: str, threads: int) -> Node:
        with self._lock:
            if settings.fit not in self._nodes:
                self._nodes[settings.fit] = Node(settings, ask, address, threads)
            return self._nodes[settings.fit]

    def get(self, fit: str) -> Node:
        return self._nodes[fit]

    def close(self, fit: str) -> None:
        with self._lock:
            node = self._nodes.pop(fit, None)
        if node is not None:
            node.close()

    def close_all(self) -> None:
        for fit in list(self._nodes):
            self.close(fit)


NODES = Nodes()
