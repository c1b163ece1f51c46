"""The stores of buckets by name. A new one is a subclass of `BucketStore`, named also in `store_names`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..plan import Plan
from .bucket_store import BucketStore
from .disk_store import DiskStore
from .memory_store import MemoryStore
from .row_forms import RecordForm, ReferenceForm
from .sampled import Sampled
from .workspace import Workspace


@dataclass(frozen=True)
class Opening:
    """What a store is opened with."""

    sampled: Sampled
    n_buckets: dict[int, int]  # of each top tree
    plan: Plan
    workspace: Callable[[], Workspace]
    group_rows: int


def _memory(given: Opening) -> BucketStore:
    return MemoryStore(given.sampled, given.n_buckets, given.plan)


def _disk(given: Opening) -> BucketStore:
    form = RecordForm(given.sampled, given.plan)
    return DiskStore(form, given.n_buckets, given.plan, given.workspace(), given.group_rows)


def _gather(given: Opening) -> BucketStore:
    form = ReferenceForm(given.sampled, given.plan)
    return DiskStore(form, given.n_buckets, given.plan, given.workspace(), given.group_rows)


STORES: dict[str, Callable[[Opening], BucketStore]] = {"memory": _memory, "disk": _disk, "gather": _gather}
