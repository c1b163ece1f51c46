"""The workers of a cluster, as the driver of a fit sees them: who is there, and what they are given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from ..errors import DifferentWorkerError, NoWorkersError
from ..messages.log import warn
from .handshake import check_worker, facts_of
from .values import Outcome, Shared, WorkerFacts


class WorkerLostError(Exception):
    """The worker of a job is gone, or is taken for gone."""


class SilentWorkerError(WorkerLostError):
    """The worker of a job does not send its result, although the cluster has heard of it lately."""


def _anybody() -> str | None:
    return None


@dataclass
class Job:
    """A function of `work` with its arguments, which are made when the job is handed out: what they name may
    have moved by then. What a job leaves at its worker has the name of the job."""

    name: str
    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    prefers: Callable[[], str | None] = _anybody  # the worker that does it fastest, if it is free
    only: Callable[[], str | None] = _anybody  # the only worker that can do it, if not all can
    lost_with: list[str] = field(default_factory=list)
    wait_until: float = 0.0  # somebody may turn out to have what it makes


@dataclass
class Counted:
    """What jobs have taken so far, by worker."""

    received: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))  # bytes of rows
    written: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))  # bytes to disk

    def add(self, worker: str, outcome: Outcome) -> None:
        self.received[worker] += outcome.received
        self.written[worker] += outcome.written


class Fleet(ABC):
    """Runs one job at a time on each worker: it has all threads of the worker.

    A worker has a name that no other process has, also not the one that takes its place.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience  # seconds to wait for a worker, or for a sign of life of one
        self._admitted: set[str] = set()
        self._values: list[Any] = []  # that are shared
        self._sent: defaultdict[str, set[int]] = defaultdict(set)  # of each worker
        self._held: dict[str, str] = {}  # the worker that has what a job of this name makes
        self.lost: list[str] = []  # workers that left
        self.redone: list[str] = []  # the names of jobs that were done again
        self.counted = Counted()

    @abstractmethod
    def workers(self) -> list[str]:
        """The names of the workers that can be used now."""

    @abstractmethod
    def start(self, worker: str, job: Job) -> Future[Outcome]:
        """Run a job on a worker. The result is a PeerLostError if another worker did not answer it."""

    @abstractmethod
    def give_up(self, future: Future[Any]) -> None:
        """Nobody waits for this job any more."""

    def used(self, future: Future[Any]) -> None:  # noqa: B027 - not all fleets hold results back
        """The result of a job is not needed any more: another one may come."""

    @abstractmethod
    def everywhere(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Run a function on all workers now; the results by worker, of those that answer."""

    @abstractmethod
    def exclude(self, worker: str, for_good: bool = False) -> None:
        """Do not use a worker for now: it does not answer."""

    def progress(self) -> dict[str, int]:
        """Rows that running jobs, by their names, have told to be done."""
        return {}

    def share(self, value: Any) -> Shared:
        """Something that stands for a value in the arguments of jobs: each worker is sent the value once."""
        self._values.append(value)
        return Shared(len(self._values) - 1)

    def to_send(self, worker: str, arguments: tuple[Any, ...]) -> dict[int, Any]:
        """The shared values among the arguments of a job that its worker does not have yet."""
        wanted = {argument.number for argument in arguments if isinstance(argument, Shared)}
        new = wanted - self._sent[worker]
        self._sent[worker] |= new
        return {number: self._values[number] for number in new}

    def holder(self, name: str) -> str | None:
        """A worker that had what this job makes when it joined: it has come back, or the fit is taken up."""
        return self._held.get(name)

    def facts(self) -> dict[str, WorkerFacts]:
        """What each worker tells of itself now."""
        found: dict[str, WorkerFacts] = self.everywhere(facts_of)
        if not found:
            raise NoWorkersError(0, self.lost)
        return found

    def admit(self, found: dict[str, WorkerFacts]) -> None:
        """Refuse workers that have just joined and would grow another forest: by an error before there is
        work, and by a warning later."""
        first = not self._admitted
        for worker, facts in found.items():
            try:
                check_worker(worker, facts)
            except DifferentWorkerError as error:
                if first:
                    raise
                warn(str(error))
                self.exclude(worker, for_good=True)
                continue
            self._admitted.add(worker)
            self._held |= dict.fromkeys(facts.held, worker)
