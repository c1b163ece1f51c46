"""The workers of a Dask cluster. Dask runs the jobs, and carries what workers ask each other."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from distributed import CancelledError, Client, KilledWorker, get_worker
from distributed.comm.core import CommClosedError
from distributed.core import send_recv
from distributed.diagnostics.plugin import WorkerPlugin
from distributed.protocol.serialize import to_serialize

from ..cluster.fleet import Fleet, Job, WorkerLostError
from ..cluster.node import NODES, Node
from ..cluster.values import Settings
from ..errors import PeerLostError

_HANDLER = "oldgrowth_ask"
_LOOK_SECONDS = 0.25
_CONNECT_SECONDS, _ANSWER_SECONDS = 5.0, 30.0


class Answering(WorkerPlugin):
    """Lets a worker answer what other workers ask of its rows, and removes its files when it ends."""

    name = "oldgrowth"

    def setup(self, worker: Any) -> None:
        async def answer(fit: str, what: str, arguments: Any) -> Any:
            found = await asyncio.get_running_loop().run_in_executor(
                None, NODES.get(fit).answer, what, arguments
            )
            return to_serialize(found)

        worker.handlers[_HANDLER] = answer

    def teardown(self, worker: Any) -> None:
        worker.handlers.pop(_HANDLER, None)
        NODES.close_all()


class DaskFleet(Fleet):
    def __init__(self, client: Client, settings: Settings, patience: float = 60.0) -> None:
        super().__init__(patience)
        self._client = client
        self._settings = settings
        self._tasks: dict[Future[Any], Any] = {}
        self._known: list[str] = []
        self._looked = -math.inf
        client.register_plugin(Answering())

    def workers(self) -> list[str]:
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            self._known, self._looked = self._alive(), time.monotonic()
            if joined := [address for address in self._known if address not in self._admitted]:
                self.admit(joined)
        return [address for address in self._known if address in self._admitted - self._excluded]

    def _alive(self) -> list[str]:
        """The workers that the scheduler has heard of lately."""
        found = self._client.scheduler_info()["workers"]
        now = self._client.run_on_scheduler(time.time) if found else 0.0
        return [address for address, facts in found.items() if now - facts["last_seen"] <= self._patience]

    def start(self, worker: str, job: Job) -> Future[Any]:
        future: Future[Any] = Future()
        arguments = job.arguments()
        task = self._client.submit(
            _run_here,
            self._settings,
            self.to_send(worker, arguments),
            job.function,
            *arguments,
            workers=[worker],
            allow_other_workers=False,
            pure=False,
            retries=0,
            key=f"oldgrowth-{job.name}-{uuid.uuid4().hex[:8]}",
        )
        task.add_done_callback(lambda done: self._finish(done, future, worker))
        self._tasks[future] = task  # as long as somebody waits for it
        return future

    def give_up(self, future: Future[Any]) -> None:
        future.cancel()
        if (task := self._tasks.pop(future, None)) is not None:
            with suppress(OSError, TimeoutError):  # the scheduler is gone, too
                task.cancel()

    def _finish(self, task: Any, future: Future[Any], worker: str) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(task.result())
        except (KilledWorker, CancelledError, CommClosedError):
            future.set_exception(WorkerLostError(worker))
        except Exception as error:  # noqa: BLE001 - whatever the job raised
            future.set_exception(error)
        self._tasks.pop(future, None)

    def everywhere(self, function: Callable[..., Any], workers: list[str] | None = None) -> dict[str, Any]:
        chosen = self.workers() if workers is None else workers
        # A worker that has just been lost has no result.
        return self._client.run(_run_everywhere, self._settings, function, workers=chosen, on_error="ignore")

    def close(self) -> None:
        """Have all workers remove the files of the fit."""
        self._client.run(_close_here, self._settings.fit, workers=self.workers(), on_error="ignore")


def _run_here(
    settings: Settings, values: dict[int, Any], function: Callable[..., Any], *arguments: Any
) -> Any:
    """On a worker: run a function with what the worker has of the fit, and values that it is sent first."""
    node = _node(settings, get_worker())
    node.values.update(values)
    try:
        return function(node, *node.resolved(arguments))
    except PeerLostError as error:
        return error


def _run_everywhere(settings: Settings, function: Callable[..., Any], dask_worker: Any) -> Any:
    return function(_node(settings, dask_worker))


def _node(settings: Settings, worker: Any) -> Node:
    return NODES.open(settings, _asking(worker, settings.fit), worker.address, worker.state.nthreads)


def _close_here(fit: str) -> None:
    NODES.close(fit)


def _asking(worker: Any, fit: str) -> Callable[[str, str, dict[str, Any]], Any]:
    def ask(address: str, what: str, arguments: dict[str, Any]) -> Any:
        if address == worker.address:
            return NODES.get(fit).answer(what, arguments)

        async def asked() -> Any:
            comm = await worker.rpc.connect(address, timeout=_CONNECT_SECONDS)
            question: dict[str, Any] = {"fit": fit, "what": what, "arguments": to_serialize(arguments)}
            answer = await asyncio.wait_for(send_recv(comm, op=_HANDLER, **question), _ANSWER_SECONDS)
            worker.rpc.reuse(address, comm)
            return answer

        waiting = asyncio.run_coroutine_threadsafe(asked(), worker.loop.asyncio_loop)
        try:
            return waiting.result()
        except (OSError, TimeoutError) as error:
            raise PeerLostError(address, str(error) or "no answer in time") from error

    return ask
