"""What workers do: the stages of `fitting` on a partition of the rows or a range of buckets.

Each function is given the worker's `Node` and plain values, and returns plain values.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..datasets.base import Partition
from ..datasets.level_counts import LearnedLevels, LevelLimit
from ..datasets.opening import open_dataset
from ..errors import DataError, OldgrowthError, PeerLostError
from ..fitting.context import FitContext, Prepared
from ..fitting.distribute import Distributing, Part, distribute
from ..fitting.grow import Sinks, grow, site_of
from ..fitting.grow_task import class_totals
from ..fitting.learned import Learned
from ..fitting.resplit import Large, tree_of_large
from ..fitting.sample import learn, remember, resumed
from ..fitting.subsets import SubsetStore
from ..fitting.tasks import TopTasks
from ..fitting.top_trees import TopTree, grow_top_tree, only_bucket
from ..plan import Plan
from ..planning.execution import GrowingRoom, chunk_rows_for, execution_of_part, largest_model
from ..planning.memory_model import FIRST_PASS_SHARE, MemoryModel
from ..planning.sizes import Sizes, Widths
from ..planning.subset_memory import memory_model_of
from ..reporting.progress import Observers
from ..reporting.report import Recorder
from ..rows.streamed_rows import StreamedRows
from ..rows.training_rows import Place, Trail, TrainingRows
from ..storage.bucket_store import Router
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
TARGET, WEIGHT = "y of fit", "sample_weight of fit"
_SPILLED_ROWS = 65_536


def count_rows(node: Node, partition: Partition) -> tuple[int, int]:
    """The rows of a partition, and those that have a weight."""
    dataset = partition.open()
    rows = dataset.count_rows()
    return rows, rows if dataset.weight is None else replace(partition, n_rows=rows).open().count_used_rows()


def spill_rows(node: Node, number: int, rows: Any, roles: Roles) -> SpilledRows:
    """Write rows that this worker was given to its disk, once: what computed them need not do so again.

    `rows` are None if the worker has them.
    """
    path = node.workspace.get().path / f"part-{number}.arrow"
    if rows is None:
        found = node.saved(node.job)
        if found is None:
            raise PeerLostError(node.worker, f"{path} is damaged")
        return _spilled(path, roles, found["rows"], found["used"])
    try:
        table = as_table(rows)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"Partition {number} cannot be read: {error}.") from error
    if table.num_rows == 0:
        node.records.save(node.job, {}, {"rows": 0, "used": 0})
        return SpilledRows(None, 0, 0)
    try:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=_SPILLED_ROWS)
    except OSError as error:
        raise node.workspace.get().write_failed(error, path, table.nbytes) from error
    used = table.num_rows
    if roles.weight is not None:
        used = int(np.count_nonzero(table.column(roles.weight).to_numpy()))
    node.records.save(node.job, {}, {"rows": table.num_rows, "used": used})
    return _spilled(path, roles, table.num_rows, used)


def _spilled(path: Path, roles: Roles, rows: int, used: int) -> SpilledRows:
    if rows == 0:
        return SpilledRows(None, 0, 0)
    features = None if roles.features is None else list(roles.features)
    return SpilledRows(
        open_dataset(path, features=features, target=roles.target, weight=roles.weight), rows, used
    )


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
    candidates = CandidateRows(
        rows.n_features, node.workspace, room // FIRST_PASS_SHARE, f"part-{part.number}-"
    )
    learned = Learned(rows, part.start, candidates)
    if not _taken_up(node, learned, rows):
        candidates.clear()
        plan = replace(plan, chunk_size=chunk_rows_for(model))
        learned = learn(rows, plan, part.start, of, candidates, node.progress())
        remember(learned, node.records, node.job)
    node.candidates[node.job] = candidates
    learned.candidates = None
    return learned


def _taken_up(node: Node, learned: Learned, rows: StreamedRows) -> bool:
    """Whether an earlier process, or an earlier client's fit, has learned of these rows already."""
    try:
        return resumed(learned, rows, node.records, node.job, None)
    except OldgrowthError:  # it is damaged, and learned again
        return False


@contextmanager
def _drawn(node: Node, known: Known, top: int, parts: tuple[CandidatePart, ...]) -> Iterator[Sampled]:
    """The rows that may be in a top tree's sample, until the block ends."""
    rows = StreamedRows(known.schema, known.classification)
    limits = node.limits()
    room = max(0, _model(node, known, rows).room(limits.resident))
    candidates = CandidateRows(rows.n_features, node.workspace, room // FIRST_PASS_SHARE)
    for part in parts:
        question = {"run": part.held.name, "plan": known.plan, "top": top, "n_rows": known.summary.n_rows}
        candidates.merge(node.process.ask(part.held.worker, "candidates", question), part.codes)
    if known.labels is not None:
        rows.use_labels(known.labels)
    try:
        yield Sampled(rows, known.summary, known.codec, candidates, Place(), Trail())
    finally:
        candidates.remove()


def grow_top(node: Node, known: Known, top: int, parts: tuple[CandidatePart, ...]) -> TopTree:
    """A top tree, from the candidates that all workers have."""
    known = known.with_jobs(node.n_jobs)
    with _drawn(node, known, top, parts) as sampled:
        return grow_top_tree(sampled, known.plan, top, node.stop)


def grow_subset(node: Node, known: Known, tree: int, parts: tuple[CandidatePart, ...]) -> list[GrownBucket]:
    """A tree of the baseline, on its subset of the candidates that all workers have."""
    known = known.with_jobs(node.n_jobs)
    trees = ReturnedTrees()
    with _growing(node, known) as (context, prepared), _drawn(node, known, tree, parts) as sampled:
        tops = {tree: only_bucket(sampled.summary.n_features)}
        grow(SubsetStore(sampled, known.plan), tops, context, prepared, Sinks(trees, None))
    return trees.returned(None)


def route_part(node: Node, known: Known, part: RowPart, tops: dict[int, TopTree], found: PartEnd) -> Routed:
    """Bring the rows of a partition into the buckets of these top trees, on this worker's disk."""
    if (made := node.runs.get(node.job)) is not None:  # for an earlier client
        return _routed(node, made, tops)
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
    if not node.reopened(node.job, store, None):
        with workers(node.n_jobs) as engine:
            rows_of_part = Part(rows, part.start, found.end, found.trail, found.class_rows)
            distribute(tops, store, rows_of_part, Distributing(plan, engine, node.progress()))
    for top in tops:
        store.seal(top)
    node.keep(node.job, store, found.end.row - part.start.row)
    return _routed(node, store, tops)


def _routed(node: Node, store: DiskStore, tops: dict[int, TopTree]) -> Routed:
    return Routed(Held(node.job, node.worker), {top: store.sizes(top).astype(np.uint32) for top in tops})


def trees_of_buckets(node: Node, known: Known, buckets: BucketRange, large: list[Large]) -> list[TopTree]:
    """For each bucket of a range, the tree that splits it."""
    known = known.with_jobs(node.n_jobs)
    with pulled(node, _sampled(known), known.plan, buckets) as store:
        here = [replace(bucket, bucket=i) for i, bucket in enumerate(large)]
        return [tree_of_large(store, buckets.top, known.plan, node.stop, bucket) for bucket in here]


def split_buckets(
    node: Node, known: Known, buckets: BucketRange, trees: list[TopTree], first_owner: int
) -> tuple[Held, npt.NDArray[np.int64]]:
    """Make several buckets of each one of a range, with owners from this one on: a run of its own."""
    known = known.with_jobs(node.n_jobs)
    top, held = buckets.top, Held(node.job, node.worker)
    if (made := node.runs.get(node.job)) is not None:  # for an earlier client
        return held, made.sizes(top)
    form = RecordForm(_sampled(known), known.plan)
    n_parts = [tree.n_buckets for tree in trees]
    owners = first_owner + np.arange(sum(n_parts))
    store = DiskStore(form, {top: len(owners)}, known.plan, node.workspace.get(), 1, f"{node.job}-")
    store.use_owners(top, owners)
    if not node.reopened(node.job, store, {top: owners}):
        routes: list[Router] = [partial(tree.route, levels=known.plan.levels) for tree in trees]
        with pulled(node, _sampled(known), known.plan, buckets) as whole:
            whole.split_to(store, top, routes, n_parts)
    store.seal(top)
    node.keep(node.job, store, int(store.sizes(top).sum()))
    return held, store.sizes(top)


def grow_range(
    node: Node, known: Known, buckets: BucketRange, tree: TopTree, class_weights: list[list[float]] | None
) -> list[GrownBucket]:
    """The trees of a range of buckets that are not grown yet, with their votes."""
    known = known.with_jobs(node.n_jobs)
    with _growing(node, known) as (context, prepared):
        prepared = replace(prepared, class_weights=class_weights)
        trees, votes = ReturnedTrees(buckets), ReturnedVotes() if known.plan.oob else None
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


def drop_candidates(node: Node) -> None:
    """Free the memory and the disk of rows of top samples."""
    node.drop_candidates()


def drop_runs(node: Node) -> None:
    """Free the disk of all rows in buckets."""
    node.drop_runs()


@contextmanager
def _growing(node: Node, known: Known) -> Iterator[tuple[FitContext, Prepared]]:
    """What growing needs of this worker."""
    sampled = _sampled(known)
    model = _model(node, known, sampled.rows)
    execution = execution_of_part(model, known.summary.n_rows, 1)
    with workers(node.n_jobs) as engine:
        observers = Observers(callback=lambda progress: node.told(progress.rows))
        context = FitContext(node.workspace, engine, Recorder(observers, model.limits.memory))
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
    return memory_model_of(known.plan, sizes, node.limits())
