"""Rounds of the disk store: some top trees at a time have their buckets on disk.

A round distributes all rows for its top trees, splits what came out too large and is then grown. What is done
of it is remembered after each group of rows and after splitting.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..plan import Plan
from ..planning.execution import Means
from ..reporting.progress import StageProgress
from ..rows.training_rows import Place
from ..storage.checkpoint import Checkpoint
from ..storage.disk_store import DiskStore
from ..storage.grown_trees import GrownTrees
from ..storage.sampled import Sampled
from ..storage.workspace import Workspace
from ..system.threads import Workers
from .distribute import distribute
from .resplit import split_large_buckets
from .top_trees import TopTree, checked_top_tree


@dataclass(frozen=True)
class Round:
    """Top trees with their buckets ready to grow; `sizes` has the rows of each bucket."""

    store: DiskStore
    tops: dict[int, TopTree]
    sizes: dict[int, npt.NDArray[np.int64]]
    n_split: int

    def unfinished(self, trees: GrownTrees, trees_of_tops: list[int]) -> dict[int, TopTree]:
        """The top trees that have a bottom tree to grow yet."""
        return {i: top for i, top in self.tops.items() if not _finished(i, top, trees, trees_of_tops)}


def as_begun(means: Means, checkpoint: Checkpoint) -> Means:
    """With the rounds that an interrupted fit began with: the disk may have more or less room by now."""
    if means.store != "disk":
        return means
    if (found := checkpoint.saved("rounds")) is not None:
        with checkpoint.believed("rounds"):
            tops = found[1]["tops_per_round"]
            if type(tops) is not int or tops < 1:
                raise ValueError("no number of top trees")
            return replace(means, tops_per_round=tops)
    checkpoint.save("rounds", {}, {"tops_per_round": means.tops_per_round})
    return means


def distribute_round(
    numbers: range,
    sampled: Sampled,
    tops: list[TopTree],
    plan: Plan,
    means: Means,
    space: Workspace,
    pool: Workers,
    progress: StageProgress,
    trees: GrownTrees,
) -> Round:
    """Bring the rows of these top trees into buckets, or take up what was done of it."""
    checkpoint = Checkpoint(space)
    name = f"round-{numbers.start:05d}"
    if (found := checkpoint.saved(f"{name}-split")) is not None:
        with checkpoint.believed(f"{name}-split"):
            done = _reopened(numbers, found, sampled, plan, means, space, trees)
        if done is not None:
            progress.skip(sampled.facts.n_rows)
            return done
        checkpoint.forget(f"{name}-split")  # rows that it relies on are lost
    mine = {i: tops[i] for i in numbers}
    n_buckets = {i: top.n_buckets for i, top in mine.items()}
    store = DiskStore(sampled, n_buckets, plan, space, means.group_rows)
    start: tuple[Place, list[int]] = Place(), []
    complete = False
    begun = False
    if (found := checkpoint.saved(name)) is not None:
        with checkpoint.believed(name):
            start, sizes, complete = _how_far(found[1], sampled, plan, numbers)
        begun = store.reopen(sizes, start[0].row)
    if not begun:  # or the files have less than was remembered, or other top trees have had this round
        start, complete = (Place(), []), False
        checkpoint.forget(name)
        store.reopen(dict.fromkeys(numbers, 0), 0)

    def remember(place: Place, classes: list[int], complete: bool = False) -> None:
        if checkpoint.active:
            values = {"place": vars(place), "classes": classes, "sizes": store.sync(), "complete": complete}
            checkpoint.save(name, {}, values)

    if complete:
        progress.skip(sampled.facts.n_rows)
    else:
        distribute(sampled, mine, store, plan, pool, progress, start, remember)
        remember(sampled.end, sampled.facts.class_rows.tolist(), complete=True)
    n_split = 0
    for i in numbers:
        store.seal(i)
        mine[i], more = split_large_buckets(store, i, mine[i], plan, pool, means.tops_at_once)
        store.set_depths(i, mine[i].bucket_depths)
        n_split += more
    done = Round(store, mine, {i: store.sizes(i) for i in numbers}, n_split)
    _save_split(checkpoint, name, done)
    return done


def _save_split(checkpoint: Checkpoint, name: str, done: Round) -> None:
    if not checkpoint.active:
        return
    arrays: dict[str, npt.NDArray[Any]] = {}
    for i, top in done.tops.items():
        arrays |= {f"{i}_{key}": array for key, array in vars(top).items()}
        arrays[f"{i}_owners"] = done.store.owners(i)
        arrays[f"{i}_sizes"] = done.sizes[i]
    checkpoint.save(f"{name}-split", arrays, {"sizes": done.store.sync(), "split": done.n_split})


def _reopened(
    numbers: range,
    found: tuple[dict[str, npt.NDArray[Any]], dict[str, Any]],
    sampled: Sampled,
    plan: Plan,
    means: Means,
    space: Workspace,
    trees: GrownTrees,
) -> Round | None:
    """A round that another process distributed and split; top trees that are grown have no files left.

    None if there are trees to grow yet and their rows are lost.
    """
    arrays, values = found
    sizes = values["sizes"]
    if sorted(map(int, sizes)) != list(numbers):  # other top trees have had this round
        return None
    tops, owners = {}, {}
    for i in numbers:
        tops[i] = checked_top_tree(
            {key: arrays[f"{i}_{key}"] for key in TopTree.__annotations__}, sampled.facts.n_features
        )
        owners[i] = arrays[f"{i}_owners"]
        rows = arrays[f"{i}_sizes"]
        if not len(rows) == len(owners[i]) == tops[i].n_buckets or rows.sum() != sampled.facts.n_rows:
            raise ValueError("another number of buckets")
        if owners[i].dtype != np.int64 or owners[i].min() < 0 or len(np.unique(owners[i])) != len(rows):
            raise ValueError("a bucket without rows of its own")
    trees_of_tops = plan.trees_of_tops(sampled.facts.n_rows)
    left = [i for i in numbers if not _finished(i, tops[i], trees, trees_of_tops)]
    store = DiskStore(sampled, {i: tops[i].n_buckets for i in left}, plan, space, means.group_rows)
    if not store.reopen({i: sizes[str(i)] for i in left}, sampled.facts.n_rows, owners):
        return None
    for i in left:
        store.set_depths(i, tops[i].bucket_depths)
        store.seal(i)
        if not np.array_equal(store.sizes(i), arrays[f"{i}_sizes"]):
            raise ValueError("buckets with other rows")
    buckets = {i: arrays[f"{i}_sizes"].astype(np.int64) for i in numbers}
    return Round(store, tops, buckets, int(values["split"]))


def _how_far(
    values: dict[str, Any], sampled: Sampled, plan: Plan, numbers: range
) -> tuple[tuple[Place, list[int]], dict[int, int], bool]:
    """The place that a distribution came to, with the rows of each class and the size of each file."""
    place, classes, complete = Place(**values["place"]), values["classes"], bool(values["complete"])
    sizes = {int(top): size for top, size in values["sizes"].items()}
    if not all(type(n) is int and n >= 0 for n in [*vars(place).values(), *classes, *sizes.values()]):
        raise ValueError("no numbers")
    rows = sum(classes) if plan.classification else place.row
    if len(classes) > plan.n_classes or rows != place.row or place.row > sampled.facts.n_rows:
        raise ValueError("another number of rows")
    if complete and place != sampled.end:
        raise ValueError("another end")
    return (place, classes), sizes, complete


def _finished(top: int, tree: TopTree, trees: GrownTrees, trees_of_tops: list[int]) -> bool:
    return bool(trees.grown(top, tree.n_buckets, trees_of_tops[top]).all())
