"""What runs in the worker processes of a Dask cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from distributed import get_worker
from distributed.core import send_recv
from distributed.diagnostics.plugin import WorkerPlugin
from distributed.protocol.serialize import to_serialize

from ..cluster.node import NODES, Node, Process
from ..cluster.values import Outcome, Settings
from ..errors import PeerLostError
from ..system.memory import release_memory

_HANDLER = "oldgrowth_ask"
_CONNECT_SECONDS, _ANSWER_SECONDS = 5.0, 30.0
# Of the memory that Dask gives a worker: beyond 0.7 it moves its own data to disk, beyond 0.8 it pauses.
MEMORY_SHARE = 0.65


def name_of(address: str, own: str) -> str:
    """A worker by its address and what tells its process from earlier ones at the same address."""
    return f"{address}#{own[-8:]}"


def address_of(worker: str) -> str:
    return worker.partition("#")[0]


def topic_of(fit: str) -> str:
    """Where workers tell of the progress of a fit."""
    return f"oldgrowth-{fit}"


class Answering(WorkerPlugin):
    """Lets a worker answer what other workers ask of its rows, and removes its files when it ends."""

    name = "oldgrowth"
    idempotent = True  # another fit of this cluster goes on

    def setup(self, worker: Any) -> None:
        async def answer(fit: str, peer: str, what: str, arguments: Any) -> Any:
            loop = asyncio.get_running_loop()
            try:
                if peer != name_of(worker.address, worker.id):
                    return None
                found = await loop.run_in_executor(None, NODES.get(fit).answer, what, arguments)
            except KeyError:  # what was asked for is not here any more
                return None
            return to_serialize(found)

        worker.handlers[_HANDLER] = answer

    def teardown(self, worker: Any) -> None:
        worker.handlers.pop(_HANDLER, None)
        NODES.close_all()


def run_here(
    settings: Settings, name: str, values: dict[int, Any], function: Callable[..., Any], *arguments: Any
) -> Outcome:
    """Run a job with what the worker has of the fit, and values that it is sent first."""
    node = _node(settings, get_worker())
    with node.working:  # the job of a client that is gone may still run
        node.values.update(values)
        node.job = name
        received, written = node.received, node.written
        try:
            result = function(node, *node.resolved(arguments))
        except PeerLostError as error:
            result = error
        finally:
            release_memory()  # that was kept for what is now done: the next job needs other blocks
        return Outcome(result, node.received - received, node.written - written)


def run_everywhere(settings: Settings, function: Callable[..., Any], dask_worker: Any) -> Any:
    return function(_node(settings, dask_worker))


def close_here(node: Node) -> None:
    NODES.close(node.settings.fit)


def leave_here(node: Node) -> None:
    NODES.leave(node.settings.fit)


def close_abandoned(node: Node, clients: list[str]) -> None:
    NODES.close_abandoned(clients, but=node.settings.fit)


def _node(settings: Settings, worker: Any) -> Node:
    limit = worker.memory_manager.memory_limit
    process = Process(
        name_of(worker.address, worker.id),
        worker.state.nthreads,
        None if not limit else int(MEMORY_SHARE * limit),
        _asking(worker, settings.fit),
        lambda message: worker.log_event(topic_of(settings.fit), message),
    )
    return NODES.open(settings, process)


def _asking(worker: Any, fit: str) -> Callable[[str, str, dict[str, Any]], Any]:
    own = name_of(worker.address, worker.id)

    def ask(peer: str, what: str, arguments: dict[str, Any]) -> Any:
        if peer == own:
            return NODES.get(fit).answer(what, arguments)

        async def asked() -> Any:
            address = address_of(peer)
            comm = await worker.rpc.connect(address, timeout=_CONNECT_SECONDS)
            question: dict[str, Any] = {"fit": fit, "peer": peer, "what": what}
            answering = send_recv(comm, op=_HANDLER, arguments=to_serialize(arguments), **question)
            answer = await asyncio.wait_for(answering, _ANSWER_SECONDS)
            worker.rpc.reuse(address, comm)
            return answer

        waiting = asyncio.run_coroutine_threadsafe(asked(), worker.loop.asyncio_loop)
        try:
            answer = waiting.result()
        except (OSError, TimeoutError) as error:
            raise PeerLostError(peer, str(error) or "no answer in time") from error
        if answer is None:
            raise PeerLostError(peer, "it does not have what it had")
        return answer

    return ask
