"""The workers of a cluster, as the driver of a fit sees them. Jobs of lost workers are handed out again."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any

from ..errors import DifferentWorkerError, FailedTaskError, NoWorkersError, PeerLostError
from ..messages.log import warn
from .handshake import check_worker, facts_of
from .values import Shared, WorkerFacts

_LOOK_SECONDS = 0.5
# A job that was lost with so many workers is not tried again: it may be what ends them.
_MOST_LOSSES = 3


class WorkerLostError(Exception):
    """The worker of a job is gone, or is taken for gone."""


@dataclass
class Job:
    """A function of `work` with its arguments, which are made when the job is handed out: what they name may
    have moved by then. `prefers` is the worker that has its rows."""

    name: str
    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    prefers: str | None = None
    only: Callable[[], str | None] = lambda: None  # the only worker that can do it, if not all can
    lost_with: list[str] = field(default_factory=list)


class Fleet(ABC):
    """Runs one job at a time on each worker: it has all threads of the worker."""

    def __init__(self, patience: float) -> None:
        self._patience = patience  # seconds to wait for a worker, or for a sign of life of one
        self._excluded: set[str] = set()
        self._admitted: set[str] = set()
        self._values: list[Any] = []  # that are shared
        self._sent: defaultdict[str, set[int]] = defaultdict(set)  # of each worker
        self.lost: list[str] = []  # workers that left
        self.redone = 0  # jobs that were done again

    @abstractmethod
    def workers(self) -> list[str]:
        """The addresses of the workers that can be used now."""

    @abstractmethod
    def start(self, worker: str, job: Job) -> Future[Any]:
        """Run a job on a worker. The result is a PeerLostError if another worker did not answer it."""

    @abstractmethod
    def give_up(self, future: Future[Any]) -> None:
        """Nobody waits for this job any more."""

    @abstractmethod
    def everywhere(self, function: Callable[..., Any], workers: list[str] | None = None) -> dict[str, Any]:
        """Run a function on all workers now, or on these; the results by worker."""

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

    def facts(self) -> dict[str, WorkerFacts]:
        """What each worker tells of itself now."""
        found: dict[str, WorkerFacts] = self.everywhere(facts_of)
        if not found:
            raise NoWorkersError(0, self.lost)
        return found

    def admit(self, workers: list[str]) -> None:
        """Refuse workers that have just joined and would grow another forest: by an error before there is
        work, and by a warning later."""
        found = self.everywhere(facts_of, workers=workers)
        for worker, facts in found.items():
            try:
                check_worker(worker, facts)
            except DifferentWorkerError as error:
                if not self._admitted:
                    raise
                warn(str(error))
                self.exclude(worker)
        self._admitted |= set(found)

    def exclude(self, worker: str) -> None:
        """Do not use a worker any more: it does not answer."""
        self._excluded.add(worker)

    def run(
        self,
        jobs: Iterable[Job],
        done: Callable[[Job, Any, str], None],
        restore: Callable[[set[str]], list[Job]] = lambda workers: [],
    ) -> None:
        """Run jobs, and call `done` with each, its result and its worker.

        `restore` has the jobs that make again what is not on these workers any more: they are done before
        all others.
        """
        handing_out = _HandingOut(self, deque(jobs), done, restore)
        try:
            handing_out.until_done(self._patience)
        finally:
            for future in handing_out.running:
                self.give_up(future)


@dataclass
class _HandingOut:
    fleet: Fleet
    waiting: deque[Job]
    done: Callable[[Job, Any, str], None]
    restore: Callable[[set[str]], list[Job]]
    urgent: deque[Job] = field(default_factory=deque)
    running: dict[Future[Any], tuple[Job, str, bool]] = field(default_factory=dict)

    def until_done(self, patience: float) -> None:
        seen = time.monotonic()
        while self.waiting or self.urgent or self.running:
            workers = self.fleet.workers()
            self._lose_all_but(set(workers))
            self._hand_out(workers)
            seen = time.monotonic() if workers else seen
            if self.running:
                for future in wait(self.running, _LOOK_SECONDS, FIRST_COMPLETED).done:
                    self._finish(future)
            elif time.monotonic() - seen > patience:
                raise NoWorkersError(patience, self.fleet.lost)
            else:
                time.sleep(_LOOK_SECONDS)

    def _restoring(self) -> bool:
        return bool(self.urgent) or any(urgent for _, _, urgent in self.running.values())

    def _hand_out(self, workers: list[str]) -> None:
        if not self._restoring():
            self.urgent.extend(self.restore(set(workers)))
            self.fleet.redone += len(self.urgent)
        restoring = self._restoring()
        queue = self.urgent if restoring else self.waiting
        busy = {worker for _, worker, _ in self.running.values()}
        for worker in workers:
            possible = [] if worker in busy else [job for job in queue if job.only() in (None, worker)]
            if possible:
                job = next((job for job in possible if job.prefers == worker), possible[0])
                queue.remove(job)
                self.running[self.fleet.start(worker, job)] = job, worker, restoring

    def _finish(self, future: Future[Any]) -> None:
        job, worker, urgent = self.running.pop(future)
        try:
            result = future.result()
        except WorkerLostError:
            self._again(job, worker, urgent)
            return
        if isinstance(result, PeerLostError):
            self.fleet.exclude(result.worker)
            (self.urgent if urgent else self.waiting).appendleft(job)
        else:
            self.done(job, result, worker)

    def _lose_all_but(self, workers: set[str]) -> None:
        for future, (job, worker, urgent) in list(self.running.items()):
            if worker not in workers:
                del self.running[future]
                self.fleet.give_up(future)
                self._again(job, worker, urgent)

    def _again(self, job: Job, worker: str, urgent: bool) -> None:
        self.fleet.lost.append(worker)
        job.lost_with.append(worker)
        if len(job.lost_with) >= _MOST_LOSSES:
            raise FailedTaskError(job.name, job.lost_with)
        self.fleet.redone += 1
        (self.urgent if urgent else self.waiting).appendleft(job)
