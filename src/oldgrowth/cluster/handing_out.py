"""Hands out jobs to the workers of a cluster, and hands them out again when workers are lost."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any

from ..errors import FailedTaskError, FullWorkerError, NoWorkersError, PeerLostError, SpillDirectoryError
from .fleet import Fleet, Job, SilentWorkerError, WorkerLostError
from .job_progress import JobProgress
from .values import Outcome

_LOOK_SECONDS = 0.5
# A job that was lost with so many workers is not tried again: it may be what ends them.
_MOST_LOSSES = 3
# The process that takes the place of a killed one may have what that left on the disk.
_REBIRTH_SECONDS = 15.0


# Jobs that are looked through for one that a worker prefers.
_MOST_LOOKED_AT = 64


def run(
    fleet: Fleet,
    jobs: Iterable[Job],
    done: Callable[[Job, Any, str], None],
    restore: Callable[[set[str]], list[Job]] = lambda workers: [],
    progress: JobProgress | None = None,
) -> None:
    """Run jobs, and call `done` with each, its result and its worker.

    `restore` has the jobs that make again what is not on these workers any more: they are done before all
    others.
    """
    handing_out = _HandingOut(fleet, deque(jobs), done, restore, progress)
    try:
        handing_out.until_done()
    finally:
        for future in handing_out.running:
            fleet.give_up(future)


@dataclass
class _HandingOut:
    fleet: Fleet
    waiting: deque[Job]
    done: Callable[[Job, Any, str], None]
    restore: Callable[[set[str]], list[Job]]
    progress: JobProgress | None
    urgent: deque[Job] = field(default_factory=deque)
    running: dict[Future[Outcome], tuple[Job, str, bool]] = field(default_factory=dict)

    def until_done(self) -> None:
        patience = self.fleet.patience
        seen = time.monotonic()
        while self.waiting or self.urgent or self.running:
            workers = self.fleet.workers()
            self._lose_all_but(set(workers))
            self._hand_out(workers)
            seen = time.monotonic() if workers else seen
            if self.progress is not None:
                self.progress.look()
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
            lost = self.restore(set(workers))
            for job in lost:
                job.wait_until = time.monotonic() + min(_REBIRTH_SECONDS, self.fleet.patience)
            self.urgent.extend(lost)
        restoring = self._restoring()
        queue = self.urgent if restoring else self.waiting
        busy = {worker for _, worker, _ in self.running.values()}
        there = set(workers)
        for worker in workers:
            if worker not in busy and (place := self._place_for(worker, queue, there)) is not None:
                job = queue[place]
                del queue[place]
                self.running[self.fleet.start(worker, job)] = job, worker, restoring

    def _place_for(self, worker: str, queue: deque[Job], there: set[str]) -> int | None:
        """Where in the queue a worker's next job is: one that prefers it, or the first that it can do."""
        first: int | None = None
        for place, job in enumerate(queue):
            if first is not None and place >= _MOST_LOOKED_AT:
                break
            if self._can(worker, job, there):
                if job.prefers() == worker or self.fleet.holder(job.name) == worker:
                    return place
                first = place if first is None else first
        return first

    def _can(self, worker: str, job: Job, there: set[str]) -> bool:
        """Whether a job is for this worker: what somebody has is not made by others."""
        holder = self.fleet.holder(job.name)
        if holder in there:
            return holder == worker
        return job.only() in (None, worker) and time.monotonic() >= job.wait_until

    def _finish(self, future: Future[Outcome]) -> None:
        try:
            self._use(future, *self.running.pop(future))
        finally:
            self.fleet.used(future)

    def _use(self, future: Future[Outcome], job: Job, worker: str, urgent: bool) -> None:
        try:
            outcome = future.result()
        except WorkerLostError as error:
            if isinstance(error, SilentWorkerError):
                self.fleet.exclude(worker)
            self._again(job, worker, urgent)
            return
        except SpillDirectoryError as error:
            raise FullWorkerError(worker, error) from error
        self.fleet.counted.add(worker, outcome)
        if isinstance(outcome.result, PeerLostError):
            self.fleet.exclude(outcome.result.worker)
            (self.urgent if urgent else self.waiting).appendleft(job)
            return
        if urgent and self.fleet.holder(job.name) != worker:
            self.fleet.redone.append(job.name)
        self.done(job, outcome.result, worker)

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
        self.fleet.redone.append(job.name)
        (self.urgent if urgent else self.waiting).appendleft(job)
