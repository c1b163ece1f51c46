"""Brings the rows of a range of buckets from all workers to this one, in the order of the rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from ..plan import Plan
from ..storage.disk_store import DiskStore
from ..storage.row_forms import RecordForm
from ..storage.sampled import Sampled
from ..storage.top_file import Blocks
from .node import Node
from .values import BucketRange

# Bytes that one message brings, and one more run.
MESSAGE_BYTES = 8 * 2**20
_numbers = count()


@contextmanager
def pulled(node: Node, sampled: Sampled, plan: Plan, buckets: BucketRange) -> Iterator[DiskStore]:
    """A store with the rows of these buckets; the others of the top tree are empty. It is gone in the end."""
    top = buckets.top
    n_buckets = {top: buckets.of}
    form = RecordForm(sampled, plan)
    prefix = f"range-{next(_numbers)}-"
    store = DiskStore(form, n_buckets, plan, node.workspace.get(), 1, prefix)
    try:
        store.take_in(top, _parts(node, buckets), buckets.owners_of_all())
        yield store
    finally:
        store.drop(top)


def _parts(node: Node, buckets: BucketRange) -> Iterator[tuple[int, Blocks]]:
    """The blocks that all workers have, each with the place of its run."""
    places = {run.name: place for place, run in enumerate(buckets.runs)}
    by_worker: dict[str, list[str]] = {}
    for run in buckets.runs:
        by_worker.setdefault(run.worker, []).append(run.name)
    for worker in _in_turn(node.worker, sorted(by_worker)):
        runs, number, start = by_worker[worker], 0, 0
        while number < len(runs):
            question = {"runs": runs, "top": buckets.top, "owners": buckets.owners}
            place = {"run": number, "start": start, "most_bytes": MESSAGE_BYTES}
            found, number, start = node.process.ask(worker, "blocks", question | place)
            for name, blocks in found:
                node.received += blocks.data.nbytes if worker != node.worker else 0
                yield places[name], blocks


def _in_turn(own: str, workers: list[str]) -> list[str]:
    """The workers in a circle, from this one on: jobs that begin together ask different ones."""
    at = bisect_left(workers, own)
    return workers[at:] + workers[:at]
