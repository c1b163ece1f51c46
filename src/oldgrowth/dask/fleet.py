"""The workers of a Dask cluster. Dask runs the jobs, and carries what workers ask each other."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import Any

import dask
from distributed import CancelledError, Client, KilledWorker
from distributed.comm.core import CommClosedError
from distributed.utils_comm import gather_from_workers

from ..cluster.fleet import Fleet, Job, SilentWorkerError, WorkerLostError
from ..cluster.handshake import facts_of
from ..cluster.values import Outcome, Settings
from ..errors import OldgrowthError, SchedulerLostError, UnusableWorkerError
from ..messages.log import warn
from .on_worker import (
    Answering,
    address_of,
    close_abandoned,
    close_here,
    leave_here,
    name_of,
    run_everywhere,
    run_here,
    topic_of,
)

_LOOK_SECONDS = 0.25
_CONNECT_SECONDS, _ANSWER_SECONDS = 3.0, 30.0
# What all workers must know once may be several MB: Dask would warn of each.
_NO_WARNING = {"distributed.admin.large-graph-warning-threshold": "1GB"}
# Results that the client has at a time: each may be the trees of a GB of rows.
_MOST_RESULTS = 2


@contextmanager
def on_workers(client: Client, settings: Settings, patience: float, resumable: bool) -> Iterator[DaskFleet]:
    """The workers that a fit uses. If it fails and is resumable, they keep what they have of it."""
    fleet, finished = DaskFleet(client, settings, patience), False
    try:
        fleet.close_abandoned()
        yield fleet
        finished = True
    finally:
        fleet.close(keep=resumable and not finished)


class DaskFleet(Fleet):
    def __init__(self, client: Client, settings: Settings, patience: float = 60.0) -> None:
        super().__init__(patience)
        self._client = client
        self._loop: Any = client.loop
        self._settings = settings
        self._tasks: dict[Future[Any], Any] = {}
        self._known: list[str] = []
        self._joining: dict[str, Future[Any]] = {}  # what each worker tells of itself
        self._excluded: dict[str, float] = {}  # until when
        self._looked = -math.inf
        self._told: dict[str, int] = {}
        self._numbers = count(uuid.uuid4().int)  # tell tasks apart from those of other fits
        self._results = asyncio.Semaphore(_MOST_RESULTS)
        self._here: set[str] = set()  # tasks whose results are here, or on their way
        self._direct: bool | None = None  # whether results come here without passing the scheduler
        client.register_plugin(Answering())
        client.subscribe_topic(topic_of(settings.fit), self._listen)

    def workers(self) -> list[str]:
        now = time.monotonic()
        if now - self._looked > _LOOK_SECONDS:
            alive = self._alive()
            self._known = [worker for worker in alive if self._excluded.get(worker, -math.inf) <= now]
            self._meet()
            self._looked = time.monotonic()
        return [worker for worker in self._known if worker in self._admitted]

    def _alive(self) -> list[str]:
        """The workers that the scheduler has heard of lately."""

        def seen(dask_scheduler: Any) -> dict[str, tuple[str, float]]:  # where there may be no oldgrowth
            import time

            now = time.time()
            return {
                address: (worker.server_id, now - worker.last_seen)
                for address, worker in dask_scheduler.workers.items()
            }

        try:
            found = self._client.run_on_scheduler(seen)
        except OSError as error:
            raise SchedulerLostError(error) from error
        return [name_of(address, own) for address, (own, ago) in found.items() if ago <= self.patience]

    def _meet(self) -> None:
        """Ask workers that have joined what they are like. Nobody waits for those that join later."""
        new = [worker for worker in self._known if worker not in self._joining]
        self._joining |= self._ask(facts_of, new)
        if not self._admitted:
            wait(self._joining.values(), self.patience)
        answered = [
            worker for worker in self._known if self._joining[worker].done() and worker not in self._admitted
        ]
        found = {}
        for worker in answered:
            facts = self._answer(worker, self._joining[worker])
            if facts is not None:
                found[worker] = facts
        self.admit(found)

    def _answer(self, worker: str, asked: Future[Any]) -> Any:
        """What a worker has answered; None if it did not, or cannot be used."""
        error = asked.exception()
        answer = error if error is not None else asked.result()
        if not isinstance(answer, BaseException):
            return answer
        if isinstance(answer, OSError | KeyError | TimeoutError) and not isinstance(answer, OldgrowthError):
            self.exclude(worker)  # it is asked again later
        else:
            refused = UnusableWorkerError(worker, answer)
            if not self._admitted:
                raise refused from answer
            warn(str(refused))
            self.exclude(worker, for_good=True)
        return None

    def _ask(self, function: Callable[..., Any], workers: list[str]) -> dict[str, Future[Any]]:
        """Run a function on each of these workers now."""
        loop = self._loop.asyncio_loop

        async def one(worker: str) -> Any:
            address = address_of(worker)
            answers = await self._client.run(
                run_everywhere, self._settings, function, workers=[address], on_error="return"
            )
            return answers[address]

        return {worker: asyncio.run_coroutine_threadsafe(one(worker), loop) for worker in workers}

    def exclude(self, worker: str, for_good: bool = False) -> None:
        self._excluded[worker] = math.inf if for_good else time.monotonic() + self.patience
        self._joining.pop(worker, None)
        self._admitted.discard(worker)
        self._looked = -math.inf

    def everywhere(self, function: Callable[..., Any]) -> dict[str, Any]:
        asked = self._ask(function, self.workers())
        done, late = wait(asked.values(), min(_ANSWER_SECONDS, self.patience))
        for future in late:
            future.cancel()
        answers = {worker: future.result() for worker, future in asked.items() if _is_well(future, done)}
        return {worker: found for worker, found in answers.items() if not isinstance(found, BaseException)}

    def start(self, worker: str, job: Job) -> Future[Outcome]:
        arguments = job.arguments()
        if self._direct is None:
            self._direct = self._reaches(worker)
        with dask.config.set(_NO_WARNING):
            task = self._client.submit(
                run_here,
                self._settings,
                job.name,
                self.to_send(worker, arguments),
                job.function,
                *arguments,
                workers=[address_of(worker)],
                allow_other_workers=False,
                pure=False,
                retries=0,
                key=f"oldgrowth-{job.name}-{next(self._numbers) % 2**32:08x}",
            )
        future = asyncio.run_coroutine_threadsafe(self._outcome(task, worker), self._loop.asyncio_loop)
        self._tasks[future] = task  # as long as somebody waits for it
        return future

    async def _outcome(self, task: Any, worker: str) -> Outcome:
        """The result of a task. Few are brought here at a time: others wait until these are used."""
        try:
            await task._state.wait()
            await self._results.acquire()
            self._here.add(task.key)
            bringing = asyncio.ensure_future(self._brought(task, worker))
            try:
                if not (await asyncio.wait([bringing], timeout=self.patience))[0]:
                    raise SilentWorkerError(worker)
                outcome: Outcome = bringing.result()
            except BaseException:
                bringing.cancel()
                self._leave(task.key)
                raise
        except (KilledWorker, CancelledError, CommClosedError) as error:
            raise WorkerLostError(worker) from error
        return outcome

    async def _brought(self, task: Any, worker: str) -> Any:
        """The result of a task from its worker, without asking the scheduler where it is."""
        if self._direct and task.status == "finished":
            found, *_ = await gather_from_workers({task.key: [address_of(worker)]}, rpc=self._client.rpc)
            if task.key in found:
                return found[task.key]
        return await self._client.gather(task, direct=self._direct, asynchronous=True)

    def _leave(self, key: str) -> None:
        """A result is used, or not waited for any more."""
        if key in self._here:
            self._here.discard(key)
            self._results.release()

    def _reaches(self, worker: str) -> bool:
        """Whether this process can connect to workers."""

        async def connect() -> None:
            comm = await self._client.rpc.connect(address_of(worker), timeout=_CONNECT_SECONDS)
            self._client.rpc.reuse(address_of(worker), comm)

        with suppress(OSError, TimeoutError):
            asyncio.run_coroutine_threadsafe(connect(), self._loop.asyncio_loop).result()
            return True
        return False

    def give_up(self, future: Future[Any]) -> None:
        future.cancel()
        if (task := self._tasks.get(future)) is not None:
            self.used(future)
            with suppress(OSError, TimeoutError):  # the scheduler is gone, too
                task.cancel()

    def used(self, future: Future[Any]) -> None:
        if (task := self._tasks.pop(future, None)) is not None:
            self._loop.asyncio_loop.call_soon_threadsafe(self._leave, task.key)

    def progress(self) -> dict[str, int]:
        return self._told

    def _listen(self, event: tuple[float, Any]) -> None:
        """A worker tells how many rows of its job are done."""
        message = event[1]
        self._told[message["job"]] = message["rows"]

    def close(self, keep: bool) -> None:
        """Have all workers remove the files of the fit, unless they are kept for when it is taken up."""
        self._client.unsubscribe_topic(topic_of(self._settings.fit))
        with suppress(SchedulerLostError):
            self.everywhere(leave_here if keep else close_here)

    def close_abandoned(self) -> None:
        """Have all workers remove files of fits whose clients are gone."""

        def alive(dask_scheduler: Any) -> list[str]:
            return list(dask_scheduler.clients)

        self.everywhere(partial(close_abandoned, clients=self._client.run_on_scheduler(alive)))


def _is_well(future: Future[Any], done: set[Future[Any]]) -> bool:
    return future in done and future.exception() is None
