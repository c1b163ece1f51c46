"""The most disk space that a fit takes, and how many top trees a limit allows at a time.

On disk are the sampled rows of a stream, the buckets of the top trees of a round, out-of-bag votes and the
log of grown trees; at the end, when no bucket is left, the forest beside that log.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..messages.text import human_bytes
from ..plan import Plan

_NODE_BYTES = 8
# In the log, beside nodes: of an entry, of a tree, and of a tree for each feature.
_ENTRY_BYTES, _TREE_BYTES, _GAIN_BYTES = 40, 24, 8
# Buckets are up to twice as many as full ones would be.
_BUCKETS = 2
# A bucket of more than this share of a worker's rows is grown tree by tree, with votes for each (grow.py).
_LARGE_SHARE = 0.25
_SAMPLED_ROW_BYTES = 20  # target, weight and number
_ENOUGH_SAMPLED = 100  # rows of a bucket, for its size to be known beforehand
_ROUNDED_UP = 1.02
# Leaves of rare classes, by the logarithm of how rare they are: fitted to forests of noise.
_MORE_OF_RARE = 0.16


class Sizes(Protocol):
    """What is known of the rows."""

    @property
    def n_rows(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_tops(self) -> int: ...
    @property
    def n_trees(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    @property
    def record(self) -> int: ...
    @property
    def row(self) -> int: ...
    @property
    def oob(self) -> bool: ...
    @property
    def in_arrays(self) -> bool: ...
    @property
    def tree_rows(self) -> int: ...
    @property
    def mixed(self) -> float | None: ...


@dataclass(frozen=True)
class DiskEstimate:
    """The estimated peak of a fit on disk, and the free space."""

    needed: int  # bytes; 0 for a fit in memory
    free: int  # bytes
    directory: Path  # where they are written

    def __str__(self) -> str:
        if not self.needed:
            return "no disk"
        needed, free = human_bytes(self.needed), human_bytes(self.free)
        return f"{needed} of disk in {self.directory}, where {free} are free"


@dataclass(frozen=True)
class DiskNeeds:
    """Bytes on disk."""

    sampled: int
    one_copy: int  # the buckets of one top tree
    votes: int
    log: int  # of all trees
    forest: int

    @staticmethod
    def of(plan: Plan, sizes: Sizes) -> DiskNeeds:
        n, n_buckets = sizes.n_rows, 1
        if plan.needs_top_trees(n):
            n_buckets = _BUCKETS * -(-n // plan.bucket_size)
        forest = sizes.n_trees * _tree_bytes(plan, sizes, n_buckets)
        bottom_trees = sizes.n_trees * n_buckets
        index = bottom_trees * (_TREE_BYTES + _GAIN_BYTES * sizes.n_features)
        shared = plan.bucket_size > _LARGE_SHARE * n / plan.n_jobs
        entries = sizes.n_trees if shared else sizes.n_tops
        votes = entries * (n * (8 * sizes.outputs + 16) + n_buckets * _ENTRY_BYTES) if sizes.oob else 0
        return DiskNeeds(
            _sampled_bytes(plan, sizes),
            int(plan.bucketed_rows(n) * sizes.row * _written(plan, n)) + n_buckets * _ENTRY_BYTES,
            votes,
            forest + index + entries * n_buckets * _ENTRY_BYTES,
            forest,
        )

    def at_most(self, tops: int) -> int:
        """The peak with the buckets of this number of top trees on disk at once."""
        growing, assembling = tops * self.one_copy + self.log, self.log + self.forest
        return int(_ROUNDED_UP * (self.sampled + self.votes + max(growing, assembling)))

    def tops_within(self, room: int) -> int:
        """How many top trees may have their buckets on disk at once; 0 if none."""
        if self.at_most(1) > room:
            return 0
        left = int(room / _ROUNDED_UP) - self.sampled - self.votes - self.log
        return max(1, left // max(1, self.one_copy))


def _tree_bytes(plan: Plan, sizes: Sizes, buckets: int) -> int:
    """Bytes of a tree: two nodes a leaf, and class shares in mixed leaves."""
    leaves = plan.most_leaves(sizes.tree_rows, buckets)
    if not plan.classification:
        return 2 * _NODE_BYTES * leaves
    if not plan.limits_growth:
        return math.ceil(2 * _NODE_BYTES * (buckets + leaves * _leaves_of_noise(plan, sizes.mixed)))
    return (2 * _NODE_BYTES + 4 * plan.n_classes) * leaves


def _leaves_of_noise(plan: Plan, mixed: float | None) -> float:
    """Leaves for each row, if classes are noise: rows of one class that lie side by side share a leaf.

    Best thresholds lie between rows of different classes: about as many leaves as neighbours that differ. Of
    rare classes, more rows have two leaves for their own (measured: 1.3 times as many if 2 % of neighbours
    differ, 1.8 times if 0.2 % do). Random thresholds also part rows of one class.
    """
    most = 1 - 1 / plan.n_classes
    if mixed is None or plan.random_thresholds:
        return most
    rarer = max(1.0, 0.5 / max(mixed, 1e-12))
    return min(most, mixed * (1 + _MORE_OF_RARE * math.log(rarer)))


def _written(plan: Plan, n_rows: int) -> float:
    """How often a row is written for a top tree: twice if its bucket is too large and is split."""
    if not plan.needs_top_trees(n_rows):
        return 1.0
    sampled = plan.top_sample * plan.bucket_size / n_rows  # rows of a bucket that are in the sample
    return 1.1 if sampled >= _ENOUGH_SAMPLED else 2.0


def _sampled_bytes(plan: Plan, sizes: Sizes) -> int:
    """Bytes of the rows of the top samples, kept if the source cannot be asked for single rows later."""
    if sizes.in_arrays or not plan.needs_samples(sizes.n_rows):
        return 0
    return min(sizes.n_rows, sizes.n_tops * plan.top_sample) * (sizes.record + _SAMPLED_ROW_BYTES)
