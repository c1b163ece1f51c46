"""Stage 2: grow each top tree on its sample. A top tree only partitions; its leaves are the buckets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..datasets.batches import FloatsOrBytes
from ..forest.nodes import NodeFormat, bucket_leaves, is_leaf, payload, with_moved_sets
from ..plan import PART_ROWS, Plan
from ..reporting.progress import StageProgress
from ..rows.records import decoded, encode
from ..storage.checkpoint import Checkpoint
from ..storage.sampled import Sampled
from .engine import Engine


@dataclass(frozen=True)
class TopTree:
    """The nodes of a top tree, the depth of each bucket, the gain by feature on its sample, and the sets of
    levels of its nodes."""

    nodes: npt.NDArray[np.uint64]
    bucket_depths: npt.NDArray[np.uint32]
    importances: npt.NDArray[np.float64]
    sets: npt.NDArray[np.uint16]

    @property
    def n_buckets(self) -> int:
        return len(self.bucket_depths)

    def route(self, x: FloatsOrBytes, levels: tuple[int, ...]) -> npt.NDArray[np.uint32]:
        """The bucket of each row."""
        return _core.route(self.nodes, x, self.sets, levels)

    def grafted(self, bucket: int, tree: TopTree, levels: tuple[int, ...]) -> TopTree:
        """This tree with another in place of a bucket; the buckets behind it move up."""
        nodes, grafted = self.nodes.copy(), with_moved_sets(tree.nodes, levels, len(self.sets))
        leaves, node_format = np.flatnonzero(is_leaf(nodes)), NodeFormat(len(self.importances))
        buckets = payload(nodes[leaves])
        at = int(leaves[buckets == bucket][0])
        behind = buckets > bucket
        nodes[leaves[behind]] = bucket_leaves(buckets[behind] + tree.n_buckets - 1)
        before = np.flatnonzero(~is_leaf(nodes[:at]))
        over = before[before + node_format.right(nodes[before]) > at]
        nodes[over] = node_format.moved_right(nodes[over], len(tree.nodes) - 1)
        own = is_leaf(grafted)
        grafted[own] = bucket_leaves(payload(grafted[own]) + bucket)
        return TopTree(
            np.concatenate([nodes[:at], grafted, nodes[at + 1 :]]),
            np.concatenate(
                [self.bucket_depths[:bucket], tree.bucket_depths, self.bucket_depths[bucket + 1 :]]
            ),
            self.importances + tree.importances,
            np.concatenate([self.sets, tree.sets]),
        )


def checked_top_tree(
    arrays: dict[str, npt.NDArray[Any]], n_features: int, levels: tuple[int, ...]
) -> TopTree:
    """A top tree that another process wrote. ValueError if an index in it is out of range."""
    tree = TopTree(arrays["nodes"], arrays["bucket_depths"], arrays["importances"], arrays["sets"])
    types = [array.dtype for array in vars(tree).values()]
    if types != [np.dtype(np.uint64), np.dtype(np.uint32), np.dtype(np.float64), np.dtype(np.uint16)]:
        raise ValueError("arrays of other types")
    depths = _core.depths_of_buckets(tree.nodes, n_features, tree.sets, levels)
    if len(depths) == 0 or not np.array_equal(depths, tree.bucket_depths):
        raise ValueError("no top tree")
    if tree.importances.shape != (n_features,) or not np.isfinite(tree.importances).all():
        raise ValueError("no importances")
    return tree


def only_bucket(n_features: int) -> TopTree:
    """The top tree of data that fits into one bucket: a single leaf."""
    no_sets = np.empty(0, dtype=np.uint16)
    return TopTree(bucket_leaves([0]), np.zeros(1, dtype=np.uint32), np.zeros(n_features), no_sets)


def grow_top_trees(
    sampled: Sampled,
    plan: Plan,
    engine: Engine,
    progress: StageProgress,
    checkpoint: Checkpoint | None = None,
    at_once: int = 2**31,
) -> list[TopTree]:
    """`at_once` top trees in memory at a time."""
    n_tops = len(plan.trees_of_tops(sampled.summary.n_rows))
    if not plan.needs_top_trees(sampled.summary.n_rows):
        return [only_bucket(sampled.summary.n_features)] * n_tops
    checkpoint = checkpoint or Checkpoint(None)
    tops: list[TopTree] = []
    for first in range(0, n_tops, at_once):
        numbers = range(first, min(first + at_once, n_tops))
        saved = [saved_top_tree(checkpoint, top, sampled.summary.n_features, plan.levels) for top in numbers]
        tasks = [
            None if found else engine.submit(grow_top_tree, sampled, plan, top, engine.stop)
            for top, found in zip(numbers, saved, strict=True)
        ]
        for top, found, task in zip(numbers, saved, tasks, strict=True):
            tree = found or task.result()  # type: ignore[union-attr]
            if found is None:
                save_top_tree(checkpoint, top, tree)
            tops.append(tree)
            (progress.advance if found is None else progress.skip)(plan.top_sample)
    return tops


def save_top_tree(checkpoint: Checkpoint, top: int, tree: TopTree) -> None:
    checkpoint.save(f"top-{top:05d}", vars(tree), {})


def saved_top_tree(
    checkpoint: Checkpoint, top: int, n_features: int, levels: tuple[int, ...]
) -> TopTree | None:
    name = f"top-{top:05d}"
    if (found := checkpoint.saved(name)) is None:
        return None
    with checkpoint.validating(name):
        return checked_top_tree(found[0], n_features, levels)


def grow_top_tree(sampled: Sampled, plan: Plan, top: int, stop: _core.Stop) -> TopTree:
    """One top tree, on its sample."""
    sample = SampleRows.of(sampled, plan, top)
    parts = _Parts(sample, sampled.summary.n_rows, plan, plan.first_top + top, stop)
    return parts.grow(np.arange(sample.n, dtype=np.uint32))


@dataclass(frozen=True)
class _Parts:
    """A top tree on a large sample. Its first levels are grown on as many rows as 16-bit codes can
    distinguish, the rest on all rows, part by part.

    The first levels need no more rows, and parts of this size are grown fastest and take little memory.
    """

    sample: SampleRows
    n_rows: int  # that the sample was drawn from
    plan: Plan
    top: int  # its number in the forest
    stop: _core.Stop

    def grow(self, places: npt.NDArray[np.uint32], depth: int = 0, place: int = 0) -> TopTree:
        if len(places) <= PART_ROWS:
            return self._grow(places, len(places), self.plan, depth, place)
        part_size = max(self.plan.bucket_size, PART_ROWS * self.n_rows // self.sample.n)
        coarse = replace(self.plan, bucket_size=part_size)
        drawn = _core.draw_sample(PART_ROWS, self.plan.seed, (place + 1) << 24 | self.top, len(places))
        tree = self._grow(places[drawn], len(places), coarse, depth, place)
        if tree.n_buckets == 1:
            return tree
        levels = self.plan.levels
        parts = self.sample.routed(tree, levels, places)
        for part in range(len(parts) - 1, -1, -1):  # from the last on: grafting moves up the buckets behind
            below = (place << 12 | part + 1) % 2**39  # with a top tree's number it has to fit 64 bits
            below_part = self.grow(parts[part], int(tree.bucket_depths[part]), below)
            tree = tree.grafted(part, below_part, levels)
        return tree

    def _grow(
        self, places: npt.NDArray[np.uint32], stand_for: int, plan: Plan, depth: int, place: int
    ) -> TopTree:
        """From rows that stand for so many of the sample."""
        rows = round(stand_for * self.n_rows / self.sample.n)
        bucket = self.sample.bucket(places, for_bootstrap=False)
        return grow_on_sample(bucket, rows, plan, self.stop, Root(self.top, depth, place))


@dataclass(frozen=True)
class SampleRows:
    """The rows of a top sample, or of a subset, as records."""

    codec: _core.RowCodec
    records: npt.NDArray[np.uint8]
    keys: npt.NDArray[np.uint64]
    targets: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64] | None
    rows: _core.Rows
    classification: bool

    @staticmethod
    def of(sampled: Sampled, plan: Plan, top: int) -> SampleRows:
        numbers = sampled.top_sample(plan, top)
        n = len(numbers)
        records = np.empty((n, sampled.codec.record_bytes), dtype=np.uint8)
        keys, targets = np.empty(n, dtype=np.uint64), np.empty(n)
        weights = np.empty(n) if sampled.summary.weighted else None
        at = 0
        for taken in sampled.take(numbers):
            part = slice(at, at := at + len(taken.x))
            encode(sampled.codec, taken.x, taken.targets, 0, records[part], keys[part])
            targets[part] = taken.targets
            if weights is not None and taken.weights is not None:
                weights[part] = taken.weights
        rows = _core.Rows(records, keys, targets, weights, plan.target_scale)
        return SampleRows(sampled.codec, records, keys, targets, weights, rows, plan.classification)

    @property
    def n(self) -> int:
        return len(self.records)

    def bucket(self, places: npt.NDArray[np.uint32] | None, for_bootstrap: bool) -> _core.Bucket:
        """The rows at these places, or all, ready to grow on."""
        return _core.make_bucket(self.codec, self.rows, places, self.classification, for_bootstrap)

    def routed(
        self, tree: TopTree, levels: tuple[int, ...], places: npt.NDArray[np.uint32]
    ) -> list[npt.NDArray[np.uint32]]:
        """Those of these places whose rows are in each bucket of a tree."""
        buckets = [tree.route(x, levels) for x in decoded(self.codec, self.records, places)]
        order, ends = _core.group_by_bucket(np.concatenate(buckets), tree.n_buckets)
        return np.split(places[order], ends[1:-1].astype(np.intp))


@dataclass(frozen=True)
class Root:
    """Where a tree begins: its number, its depth, and its place within a larger tree. Trees at the same place
    consider features in turn."""

    number: int
    depth: int = 0
    place: int = 0


def grow_on_sample(bucket: _core.Bucket, n_rows: int, plan: Plan, stop: _core.Stop, root: Root) -> TopTree:
    """A tree on a sample of n_rows."""
    rules = plan.top_rules(bucket.rows / n_rows)
    rules.stop_by(stop)
    nodes, depths, importances, sets = _core.grow_top(
        bucket, rules, plan.seed, root.number, root.place, root.depth, list(plan.class_weights)
    )
    return TopTree(nodes, depths, importances * (n_rows / bucket.rows), sets)
