"""What workers do: the stages of `fitting` on a partition of the rows or a range of buckets.

Each function is given the worker's `Node` and plain values, and returns plain values.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..datasets.base import Partition
from ..datasets.level_counts import LearnedLevels, LevelLimit
from ..datasets.opening import open_dataset
from ..errors import DataError
from ..fitting.context import FitContext, Prepared
from ..fitting.distribute import Distributing, Part, distribute
from ..fitting.grow import Sinks, grow, site_of
from ..fitting.grow_task import class_totals
from ..fitting.learned import Learned
from ..fitting.resplit import Large, tree_of_large
from ..fitting.sample import learn
from ..fitting.tasks import TopTasks
from ..fitting.top_trees import TopTree, grow_top_tree
from ..plan import Plan
from ..planning.execution import GrowingRoom, chunk_rows_for, execution_of_part, largest_model
from ..planning.memory_model import FIRST_PASS_SHARE, MemoryModel
from ..planning.sizes import Sizes, Widths
from ..reporting.progress import Observers, StageProgress
from ..reporting.report import Recorder
from ..rows.streamed_rows import StreamedRows
from ..rows.training_rows import Place, Trail, TrainingRows
from ..storage.candidate_rows import CandidateRows
from ..storage.disk_store import DiskStore
from ..storage.row_forms import RecordForm
from ..storage.sampled import Sampled
from ..system.threads import workers
from .node import Node
from .pull import pulled
from .returned import ReturnedTrees, ReturnedVotes
from .values import (
    BucketRange,
    CandidatePart,
    GrownBucket,
    Held,
    Known,
    PartEnd,
    Roles,
    Routed,
    RowPart,
    SpilledRows,
)

# Names of columns that are given beside a data frame, or in arrays.
TARGET, WEIGHT = "__target__", "__weight__"
_SPILLED_ROWS = 65_536


def count_rows(node: Node, partition: Partition) -> tuple[int, int]:
    """The rows of a partition, and those that have a weight."""
    dataset = partition.open()
    rows = dataset.count_rows()
    return rows, rows if dataset.weight is None else replace(partition, n_rows=rows).open().count_used_rows()


def spill_rows(node: Node, number: int, rows: Any, roles: Roles) -> SpilledRows:
    """Write rows that this worker was given to its disk, once: what computed them need not do so again."""
    path = node.workspace.get().path / f"part-{number}.arrow"
    try:
        table = as_table(rows)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"Partition {number} cannot be read: {error}.") from error
    if table.num_rows == 0:
        return SpilledRows(None, 0, 0)
    try:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=_SPILLED_ROWS)
    except OSError as error:
        raise node.workspace.get().write_failed(error, path, table.nbytes) from error
    features = None if roles.features is None else list(roles.features)
    dataset = open_dataset(path, features=features, target=roles.target, weight=roles.weight)
    used = table.num_rows
    if roles.weight is not None:
        used = int(np.count_nonzero(table.column(roles.weight).to_numpy()))
    return SpilledRows(dataset, table.num_rows, used)


def as_table(rows: Any) -> pa.Table:
    """A data frame, or arrays of features, targets and perhaps weights, as a table."""
    if not isinstance(rows, tuple):
        return pa.Table.from_pandas(rows, preserve_index=False)
    x, *others = (np.asarray(array) for array in rows)
    columns = [np.ascontiguousarray(x[:, i]) for i in range(x.shape[1])]
    names = [*(str(i) for i in range(x.shape[1])), TARGET, WEIGHT][: len(columns) + len(others)]
    return pa.table([pa.array(column) for column in (*columns, *others)], names=names)


def learn_levels(node: Node, part: RowPart, features: tuple[int, ...]) -> LearnedLevels:
    """The levels of these features in a partition."""
    dataset, limits = part.partition.open(), node.limits()
    learned = LearnedLevels(dataset, features)
    learned.limit = LevelLimit((limits.memory - limits.resident) // FIRST_PASS_SHARE, limits.memory)
    for _ in learned.learn(dataset):
        pass
    return learned


def learn_part(node: Node, part: RowPart, classification: bool, plan: Plan, of: int | None) -> Learned:
    """What the first pass learns of a partition; the candidates stay here."""
    rows = StreamedRows(part.partition.open(), classification)
    limits = node.limits()
    plan = replace(plan, n_jobs=node.n_jobs)
    model = largest_model(plan, rows, max(1, part.partition.n_rows or 1), limits)
    room = max(0, model.room(limits.resident))
    candidates = CandidateRows(rows.n_features, node.workspace, room // FIRST_PASS_SHARE)
    learned = learn(rows, replace(plan, chunk_size=chunk_rows_for(model)), part.start, of, candidates)
    node.candidates[_name(part)] = candidates
    learned.candidates = None
    return learned


def grow_top(node: Node, known: Known, top: int, parts: tuple[CandidatePart, ...]) -> TopTree:
    """A top tree, from the candidates that all workers have."""
    known = known.with_jobs(node.n_jobs)
    rows = StreamedRows(known.schema, known.classification)
    limits = node.limits()
    room = max(0, _model(node, known, rows).room(limits.resident))
    candidates = CandidateRows(rows.n_features, node.workspace, room // FIRST_PASS_SHARE)
    for part in parts:
        question = {"run": part.held.name, "plan": known.plan, "top": top, "n_rows": known.summary.n_rows}
        candidates.merge(node.ask(part.held.worker, "candidates", question), part.codes)
    sampled = Sampled(rows, known.summary, known.codec, candidates, Place(), Trail())
    return grow_top_tree(sampled, known.plan, top, node.stop)


def route_part(node: Node, known: Known, part: RowPart, tops: dict[int, TopTree], found: PartEnd) -> Routed:
    """Bring the rows of a partition into the buckets of these top trees, on this worker's disk."""
    known = known.with_jobs(node.n_jobs)
    rows = StreamedRows(part.partition.open(), known.classification)
    if known.labels is not None:
        rows.use_labels(known.labels)
    sampled = Sampled(rows, known.summary, known.codec, None, found.end, found.trail)
    model = _model(node, known, rows)
    n_rows = max(1, found.end.row - part.start.row)
    execution = execution_of_part(model, n_rows, len(tops))
    plan = replace(known.plan, chunk_size=execution.chunk_rows)
    n_buckets = {i: top.n_buckets for i, top in tops.items()}
    form = RecordForm(sampled, plan)
    store = DiskStore(
        form, n_buckets, plan, node.workspace.get(), execution.group_rows, f"part-{part.number}-"
    )
    with workers(node.n_jobs) as engine:
        rows_of_part = Part(rows, part.start, found.end, found.trail, found.class_rows)
        distribute(tops, store, rows_of_part, Distributing(plan, engine, _progress()))
    for top in tops:
        store.seal(top)
    node.runs[_name(part)] = store
    return Routed(Held(_name(part), node.address), {top: store.sizes(top).astype(np.uint32) for top in tops})


def tree_of_bucket(node: Node, known: Known, buckets: BucketRange, large: Large) -> TopTree:
    """The tree that splits a bucket, the only one of its range."""
    known = known.with_jobs(node.n_jobs)
    sampled = _sampled(known)
    with pulled(node, sampled, known.plan, buckets) as store:
        return tree_of_large(store, buckets.top, known.plan, node.stop, replace(large, bucket=0))


def split_bucket(
    node: Node, known: Known, buckets: BucketRange, tree: TopTree, owners: npt.NDArray[np.int64]
) -> tuple[Held, npt.NDArray[np.int64]]:
    """Make several buckets of one, the only one of its range, with these owners: a run of its own."""
    known = known.with_jobs(node.n_jobs)
    top, name = buckets.top, f"split-{buckets.top}-{owners[0]}"
    form = RecordForm(_sampled(known), known.plan)
    n_parts = {top: tree.n_buckets}
    store = DiskStore(form, n_parts, known.plan, node.workspace.get(), 1, f"split-{top}{owners[0]:012d}-")
    with pulled(node, _sampled(known), known.plan, buckets) as whole:
        whole.split_to(store, top, partial(tree.route, levels=known.plan.levels), owners)
    store.seal(top)
    node.runs[name] = store
    return Held(name, node.address), store.sizes(top)


def grow_range(
    node: Node, known: Known, buckets: BucketRange, tree: TopTree, class_weights: list[list[float]] | None
) -> list[GrownBucket]:
    """All trees of a range of buckets, with their votes."""
    known = known.with_jobs(node.n_jobs)
    with _growing(node, known) as (context, prepared):
        prepared = replace(prepared, class_weights=class_weights)
        trees, votes = ReturnedTrees(), ReturnedVotes() if known.plan.oob else None
        with pulled(node, prepared.sampled, known.plan, buckets) as store:
            store.set_depths(buckets.top, tree.bucket_depths)
            grow(store, {buckets.top: tree}, context, prepared, Sinks(trees, votes))
        return trees.returned(votes)


def drawn_classes(
    node: Node, known: Known, buckets: BucketRange, tree: TopTree
) -> dict[int, list[npt.NDArray[np.float64]]]:
    """For each bucket of a range and each tree, the weight that it draws of each class."""
    known = known.with_jobs(node.n_jobs)
    with (
        _growing(node, known) as (context, prepared),
        pulled(node, prepared.sampled, known.plan, buckets) as store,
    ):
        store.set_depths(buckets.top, tree.bucket_depths)
        site = site_of(store, context, GrowingRoom.now(prepared.model, in_memory=False))
        tasks = TopTasks.of(store, buckets.top, tree, prepared.trees_of_tops, ReturnedTrees())
        running = {
            task.bucket: context.engine.submit(class_totals, task, known.plan, site)
            for task in tasks.tasks(store)
        }
        return {bucket: future.result() for bucket, future in running.items()}


def take_received(node: Node) -> int:
    """Bytes of rows from other workers since this was last asked."""
    received, node.received = node.received, 0
    return received


def drop_runs(node: Node) -> None:
    """Free the disk of all rows."""
    for run in node.runs.values():
        run.drop_all()
    node.runs.clear()


@contextmanager
def _growing(node: Node, known: Known) -> Iterator[tuple[FitContext, Prepared]]:
    """What growing needs of this worker."""
    sampled = _sampled(known)
    model = _model(node, known, sampled.rows)
    execution = execution_of_part(model, known.summary.n_rows, 1)
    with workers(node.n_jobs) as engine:
        context = FitContext(node.workspace, engine, Recorder(Observers(), model.limits.memory))
        yield context, Prepared(sampled, known.plan, execution, model)


def _sampled(known: Known) -> Sampled:
    """What is known of the rows, without rows."""
    rows = StreamedRows(known.schema, known.classification)
    if known.labels is not None:
        rows.use_labels(known.labels)
    return Sampled(rows, known.summary, known.codec, None, Place(), Trail())


def _model(node: Node, known: Known, rows: TrainingRows) -> MemoryModel:
    """What a task takes, and what it may take here."""
    summary = known.summary
    widths = Widths.of(known.codec.widths, codec=known.codec.bytes)
    sizes = Sizes.of(known.plan, rows, summary.n_rows, widths, summary.weighted)
    return MemoryModel(known.plan, sizes, node.limits())


def _name(part: RowPart) -> str:
    return f"part-{part.number}"


def _progress() -> StageProgress:
    return StageProgress("", None)
