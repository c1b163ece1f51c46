"""Stage 3, the second pass: route every row through all top trees and put it into its buckets."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from itertools import islice

from . import _core
from .bucket_store import MemoryStore
from .datasets import ArrayDataset, Chunk
from .plan import Plan
from .progress import StageProgress
from .sample import Sampled
from .top_tree import TopTree


def distribute(
    data: ArrayDataset,
    sampled: Sampled,
    tops: list[TopTree],
    plan: Plan,
    pool: Executor,
    progress: StageProgress,
) -> MemoryStore:
    routed = [] if plan.subsets else tops
    store = MemoryStore(data, sampled.codec, len(routed), plan)

    def put(chunk: Chunk) -> int:
        store.put(chunk.first_row, chunk.x, [_core.route(top.nodes, chunk.x) for top in routed])
        return chunk.rows

    chunks = data.chunks(plan.chunk_size)
    waiting: list[Future[int]] = []
    while True:  # a few chunks at a time, so that memory does not grow with the data
        waiting += [pool.submit(put, chunk) for chunk in islice(chunks, 2 * plan.n_jobs - len(waiting))]
        if not waiting:
            break
        progress.advance(waiting.pop(0).result())
    if plan.subsets:
        for top, rows in enumerate(sampled.top_samples):
            store.use_sample(top, rows)
    else:
        for task in [pool.submit(store.seal, i, top.n_buckets) for i, top in enumerate(tops)]:
            task.result()
    return store
