"""What a worker must be like: the same oldgrowth, with room on its disk."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from .. import _core
from .._version import __version__
from ..errors import DifferentWorkerError, WorkerDiskError, WorkerMemoryError
from ..planning.memory_model import MemoryModel
from ..rows.records import encode
from ..system.limits import disk_space, nearest_existing
from .node import Node
from .values import WorkerFacts

# Of the free disk, what a fit may take; and what blocks take beside rows, and uneven shares.
_DISK_SHARE, _UNEVEN = 0.8, 1.25


def facts_of(node: Node) -> WorkerFacts:
    """What the driver must know of a worker before it is given work."""
    limits, held = node.limits(), node.held()
    room = int(_DISK_SHARE * disk_space(nearest_existing(limits.directory)).free)
    if limits.spill_limit is not None:
        room = min(room, limits.spill_limit)
    return WorkerFacts(__version__, tiny_digest(), node.n_jobs, limits.memory, room, node.resident, held)


@cache
def tiny_digest() -> str:
    """The checksum of a tiny tree: workers that would grow other trees have another one."""
    i = np.arange(600, dtype=np.int64)
    x = ((7919 * i + 31 * i * i) % 997).astype(np.float32).reshape(200, 3) / np.float32(8)
    y = (x[:, 0] + x[:, 1] > x[:, 2] + 60).astype(np.float64)
    profile = _core.Profile(3)
    profile.add(x, 0, 3)
    codec = _core.RowCodec(profile)
    records = np.empty((len(x), codec.record_bytes), dtype=np.uint8)
    _, keys = encode(codec, x, y, 0, records)
    rules = _core.TreeRules()
    rules.criterion, rules.n_classes, rules.max_features, rules.total_weight = "gini", 2, 2, float(len(x))
    bucket = _core.make_bucket(codec, _core.Rows(records, keys, y, None, 1.0), None, True, True)
    grown = _core.grow_bottom(bucket, rules, _core.Bootstrap(True, 1.0, 0), 0, 0, 0, [], False)
    return f"{_core.crc32c(grown[0].view(np.uint8)):08x}"


def check_worker(worker: str, facts: WorkerFacts) -> None:
    """Refuse a worker that would grow another forest."""
    if facts.version != __version__:
        what = f"it has oldgrowth {facts.version}, and this process {__version__}"
        raise DifferentWorkerError(worker, what)
    if facts.digest != tiny_digest():
        raise DifferentWorkerError(worker, "a tiny tree that it grew is another one")


def tops_per_round(workers: dict[str, WorkerFacts], one_copy: int, n_tops: int) -> int:
    """Top trees whose buckets the disks of all workers have room for at a time. Those of one take `one_copy`
    bytes, also while they are split again."""
    needed = int(_UNEVEN * -(-one_copy // max(1, len(workers))))
    worker, least = min(workers.items(), key=lambda item: item[1].disk)
    tops = least.disk // max(1, needed)
    if tops == 0:
        raise WorkerDiskError(worker, needed, least.disk)
    return min(n_tops, tops)


def check_memory(workers: dict[str, WorkerFacts], model: MemoryModel) -> None:
    """Refuse workers that have too little memory to grow a top tree, or the trees of a bucket."""
    sizes = replace(model.sizes, n_tops=1)
    for worker, facts in workers.items():
        limits = replace(model.limits, memory=facts.memory, resident=facts.resident)
        plan = replace(model.plan, n_jobs=facts.threads)
        least = replace(model, plan=plan, sizes=sizes, limits=limits).least_to_grow()
        if facts.memory < least:
            raise WorkerMemoryError(worker, least, facts.memory)
