"""Rounds of the disk store: the buckets of some top trees at a time are on disk.

A round distributes all rows for its top trees, splits buckets that are too large, and is then grown. Its
progress is saved after each group of rows and after splitting.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..planning.execution import ExecutionPlan
from ..reporting.progress import StageProgress
from ..rows.data_summary import DataSummary
from ..rows.training_rows import Place
from ..storage.bucket_store import Buckets, BucketStore
from ..storage.checkpoint import Checkpoint
from ..storage.grown_trees import GrownTrees
from ..storage.stores import STORES, Opening
from .context import FitContext, Prepared
from .distribute import Distributing, Part, Reached, Resumable, distribute
from .engine import Engine
from .resplit import StoreSplitter, split_large_buckets
from .top_trees import TopTree, checked_top_tree


@dataclass(frozen=True)
class Round:
    """Top trees with their buckets ready to grow; `sizes` has the rows of each bucket."""

    store: Buckets
    tops: dict[int, TopTree]
    sizes: dict[int, npt.NDArray[np.int64]]
    n_split: int

    def unfinished(self, trees: GrownTrees, trees_of_tops: list[int]) -> dict[int, TopTree]:
        """The top trees with bottom trees that remain to be grown."""
        return {i: top for i, top in self.tops.items() if not _finished(i, top, trees, trees_of_tops)}


def with_saved_rounds(execution: ExecutionPlan, checkpoint: Checkpoint) -> ExecutionPlan:
    """Keep the rounds that an interrupted fit began with, even if the free disk space has changed."""
    if not execution.on_disk:
        return execution
    if (found := checkpoint.saved("rounds")) is not None:
        with checkpoint.validating("rounds"):
            tops = found[1]["tops_per_round"]
            if type(tops) is not int or tops < 1:
                raise ValueError("no number of top trees")
            return replace(execution, tops_per_round=tops)
    checkpoint.save("rounds", {}, {"tops_per_round": execution.tops_per_round, "store": execution.store})
    return execution


def saved_store(checkpoint: Checkpoint) -> str | None:
    """The store that an interrupted fit began with, even if the free memory has changed."""
    if (found := checkpoint.saved("rounds")) is None:
        return None
    with checkpoint.validating("rounds"):
        store = found[1].get("store", "disk")
        if store not in STORES or store == "memory":
            raise ValueError("no store on disk")
        return str(store)


def open_store(context: FitContext, prepared: Prepared, n_buckets: dict[int, int]) -> BucketStore:
    """A store for the rows of these top trees, with this number of buckets each."""
    execution = prepared.execution
    given = Opening(prepared.sampled, n_buckets, prepared.plan, context.workspace.get, execution.group_rows)
    return STORES[execution.store](given)


def distribute_round(
    tops: dict[int, TopTree],
    context: FitContext,
    prepared: Prepared,
    progress: StageProgress,
    trees: GrownTrees,
) -> Round:
    """Bring the rows of these top trees into buckets, or resume from the saved progress."""
    checkpoint, sampled = context.checkpoint, prepared.sampled
    name = f"round-{min(tops):05d}"
    if (found := checkpoint.saved(f"{name}-split")) is not None:
        with checkpoint.validating(f"{name}-split"):
            done = _reopened(tops, found, context, prepared, trees)
        if done is not None:
            progress.skip(sampled.summary.n_rows)
            return done
        checkpoint.discard(f"{name}-split")  # rows that it relies on are lost
    store = open_store(context, prepared, {i: top.n_buckets for i, top in tops.items()})
    start, complete = _resumed(store, checkpoint, name, list(tops), prepared)

    def save(reached: Reached, complete: bool = False) -> None:
        if checkpoint.active:
            place, classes = vars(reached.place), list(reached.class_rows)
            values = {"place": place, "classes": classes, "sizes": store.sync(), "complete": complete}
            checkpoint.save(name, {}, values)

    if complete:
        progress.skip(sampled.summary.n_rows)
    else:
        distributing = Distributing(prepared.plan, context.engine, progress)
        distribute(tops, store, Part.whole(sampled), distributing, Resumable(start, save))
        save(Reached(sampled.end, tuple(sampled.summary.class_rows.tolist())), complete=True)
    done = _split(tops, store, prepared, context.engine)
    for i, sizes in done.sizes.items():
        if checkpoint.active and sizes.min() == 0:  # each has a row of the sample at least
            raise checkpoint.damaged(f"top-{i:05d}.npz", "a bucket has no rows")
    _save_split(checkpoint, name, store, done)
    return done


def _resumed(
    store: BucketStore, checkpoint: Checkpoint, name: str, numbers: list[int], prepared: Prepared
) -> tuple[Reached, bool]:
    """Where to resume a distribution, and whether it is already complete."""
    if (found := checkpoint.saved(name)) is not None:
        with checkpoint.validating(name):
            start, sizes, complete = _saved_progress(found[1], prepared)
        if store.reopen(sizes, start.place.row):
            return start, complete
    # Nothing is done, the files have less than was remembered, or other top trees have had this round.
    checkpoint.discard(name)
    store.reopen(dict.fromkeys(numbers, 0), 0)
    return Reached(), False


def _split(tops: dict[int, TopTree], store: BucketStore, prepared: Prepared, engine: Engine) -> Round:
    """Make the buckets ready, and split those that are too large."""
    plan, at_once = prepared.plan, prepared.execution.tops_at_once
    for task in [engine.submit(store.seal, i) for i in tops]:
        task.result()
    split, n_split = {}, 0
    splitter = StoreSplitter(store, plan, engine, at_once)
    for i, top in tops.items():
        split[i], more = split_large_buckets(splitter, i, top, plan)
        store.set_depths(i, split[i].bucket_depths)
        n_split += more
    return Round(store, split, {i: store.sizes(i) for i in tops}, n_split)


def _save_split(checkpoint: Checkpoint, name: str, store: BucketStore, done: Round) -> None:
    if not checkpoint.active:
        return
    arrays: dict[str, npt.NDArray[Any]] = {}
    for i, top in done.tops.items():
        arrays |= {f"{i}_{key}": array for key, array in vars(top).items()}
        arrays[f"{i}_owners"] = store.owners(i)
        arrays[f"{i}_sizes"] = done.sizes[i]
    checkpoint.save(f"{name}-split", arrays, {"sizes": store.sync(), "split": done.n_split})


def _reopened(
    before: dict[int, TopTree],
    found: tuple[dict[str, npt.NDArray[Any]], dict[str, Any]],
    context: FitContext,
    prepared: Prepared,
    trees: GrownTrees,
) -> Round | None:
    """A round that another process distributed and split. Files of top trees that are completely grown are
    gone.

    `before` are the top trees before buckets were split. None if trees remain to be grown and their rows are
    lost.
    """
    sampled = prepared.sampled
    arrays, values = found
    sizes, numbers = values["sizes"], list(before)
    if sorted(map(int, sizes)) != numbers:  # other top trees have had this round
        return None
    if not _whole(values["split"], *sizes.values()):
        raise ValueError("no numbers")
    tops, owners = {}, {}
    for i in numbers:
        of_top = {
            key.removeprefix(f"{i}_"): array for key, array in arrays.items() if key.startswith(f"{i}_")
        }
        tops[i] = _checked_split(before[i], of_top, sampled.summary, prepared.plan.levels)
        owners[i] = of_top["owners"]
    left = [i for i in numbers if not _finished(i, tops[i], trees, prepared.trees_of_tops)]
    store = open_store(context, prepared, {i: tops[i].n_buckets for i in left})
    if not store.reopen({i: sizes[str(i)] for i in left}, sampled.summary.n_rows, owners):
        return None
    for i in left:
        store.set_depths(i, tops[i].bucket_depths)
        store.seal(i)
        if not np.array_equal(store.sizes(i), arrays[f"{i}_sizes"]):
            raise ValueError("buckets with other rows")
    buckets = {i: arrays[f"{i}_sizes"].astype(np.int64) for i in numbers}
    return Round(store, tops, buckets, int(values["split"]))


def _checked_split(
    before: TopTree, arrays: dict[str, npt.NDArray[Any]], summary: DataSummary, levels: tuple[int, ...]
) -> TopTree:
    """A top tree after its large buckets were split. ValueError if it is inconsistent."""
    top = checked_top_tree(arrays, summary.n_features, levels)
    owners, rows = arrays["owners"], arrays["sizes"]
    if not owners.dtype == rows.dtype == np.int64 or not len(owners) == len(rows) == top.n_buckets:
        raise ValueError("another number of buckets")
    if rows.min() < 1 or rows.sum() != summary.n_rows:
        raise ValueError("another number of rows")
    # A bucket that is split becomes two or more, each with a new owner.
    if owners.min() < 0 or owners.max() >= 2 * len(owners) or len(np.unique(owners)) != len(owners):
        raise ValueError("a bucket without rows of its own")
    unsplit = top.n_buckets == before.n_buckets
    if unsplit and not all(np.array_equal(array, arrays[key]) for key, array in vars(before).items()):
        raise ValueError("another top tree than was distributed")
    return top


def _saved_progress(values: dict[str, Any], prepared: Prepared) -> tuple[Reached, dict[int, int], bool]:
    """The saved place of a distribution with the rows of each class, the size of each file, and whether it is
    complete."""
    sampled, plan = prepared.sampled, prepared.plan
    place, classes, complete = Place(**values["place"]), values["classes"], bool(values["complete"])
    sizes = {int(top): size for top, size in values["sizes"].items()}
    if not _whole(*vars(place).values(), *classes, *sizes.values()):
        raise ValueError("no numbers")
    rows = sum(classes) if plan.classification else place.row
    if len(classes) > plan.n_classes or rows != place.row or place.row > sampled.summary.n_rows:
        raise ValueError("another number of rows")
    if complete and place != sampled.end:
        raise ValueError("another last row")
    return Reached(place, tuple(classes)), sizes, complete


def _whole(*numbers: Any) -> bool:
    return all(type(n) is int and n >= 0 for n in numbers)


def _finished(top: int, tree: TopTree, trees: GrownTrees, trees_of_tops: list[int]) -> bool:
    return bool(trees.grown(top, tree.n_buckets, trees_of_tops[top]).all())
