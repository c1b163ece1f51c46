"""The plan of a fit: every size and rule that the stages need, resolved before the first pass."""

from __future__ import annotations

import math
from dataclasses import dataclass

from . import _core
from .errors import TooManyBucketsError, TooManyFeaturesError

MAX_BUCKETS = 2**31
# Rows that are planned for as long as their number is not known: sizes do not grow beyond.
UNKNOWN_ROWS = 2**31 - 1

# See docs/decisions.md for the sweep behind these: a bucket that a core's cache holds, within bounds.
AUTO_BUCKET_BYTES = 2_700_000
AUTO_BUCKET_SIZES = (30_000, 60_000)
AUTO_BALANCE = 0.0
# Up to this many rows an ordinary forest takes no longer.
AUTO_ONE_BUCKET = 100_000
AUTO_SAMPLE_OF_BUCKET = 2048
SPLIT_SAMPLE_OF_BUCKET = 512  # for the few buckets that are split again: memory counts more there
MAX_TOP_SAMPLE = 500_000
PART_ROWS = 65_535  # of a sample, that 16-bit codes can tell apart: a top tree is grown on no more at once
# Trees share a top tree to save time, but no more than this, and not if there would be too few top trees.
AUTO_TREES_PER_TOP = 4
AUTO_TOP_TREES = 12
AUTO_CHUNK_BYTES = 2 * 2**20  # what stays in the cache from reading to routing and encoding
# Standard deviations by which a sample's count of a bucket's rows may be wrong: a top tree stops so far below
# the bucket size, so that few buckets come out larger and have to be split again.
_SAMPLE_ERRORS = 2


@dataclass(frozen=True)
class Plan:
    """All parameters of a fit as plain values, so that a stage can run in any process."""

    n_estimators: int
    trees_per_top: int
    bucket_size: int
    top_sample: int
    top_max_features: int
    balance: float
    bottom_balance: float
    criterion: str
    n_classes: int
    max_features: int
    max_depth: int | None
    min_samples_split: int
    min_samples_leaf: int
    min_weight_fraction_leaf: float
    min_impurity_decrease: float
    random_thresholds: bool
    bootstrap: bool
    sample_mean: float
    class_weights: tuple[float, ...]
    balanced_subsample: bool
    oob: bool
    oob_metric: bool
    hard_votes: bool
    subsets: bool
    chunk_size: int
    seed: int
    n_jobs: int
    total_weight: float
    target_offset: float = 0.0  # the middle of the targets, from which out-of-bag sums are counted
    target_scale: float = 1.0
    levels: tuple[int, ...] = ()  # of each feature, 0 if it is not categorical; empty if none is
    keep_votes: bool = False  # out-of-bag, for a fit that adds trees
    earlier: tuple[int, ...] = ()  # of a forest that trees are added to: the trees on each of its top trees

    @property
    def classification(self) -> bool:
        return self.n_classes > 0

    @property
    def first_tree(self) -> int:
        """The number of the first tree that is grown: those before it are there."""
        return sum(self.earlier)

    @property
    def new_trees(self) -> int:
        return self.n_estimators - self.first_tree

    @property
    def first_top(self) -> int:
        """The number of the first top tree: the last one of the earlier forest if it lacks trees."""
        return len(self.earlier) - (self._trees_lacking > 0)

    def continues(self, n_rows: int) -> bool:
        """Whether the first trees stand on the last top tree of the earlier forest."""
        one_bucket = not self.subsets and not self.needs_top_trees(n_rows)
        return bool(self.earlier) and (one_bucket or self._trees_lacking > 0)

    @property
    def _trees_lacking(self) -> int:
        """Trees that the last top tree of the earlier forest lacks."""
        if self.subsets or not self.earlier:
            return 0
        *whole, last = self.earlier
        regular = all(trees == self.trees_per_top for trees in whole)
        return max(0, self.trees_per_top - last) if regular else 0

    @property
    def limits_growth(self) -> bool:
        """Whether leaves may hold rows of several classes that could be told apart."""
        return (
            self.max_depth is not None
            or self.min_samples_leaf > 1
            or self.min_samples_split > 2
            or self.min_weight_fraction_leaf > 0
            or self.min_impurity_decrease > 0
        )

    def largest_sample(self, n_rows: int) -> int:
        """Rows of the largest sample that a tree is grown on at once, also one that splits a bucket again."""
        if self.subsets:
            return min(self.top_sample, n_rows)
        return min(PART_ROWS, max(self.top_sample, self.sample_of_bucket(n_rows)))

    def sample_of_bucket(self, n_rows: int) -> int:
        """How many rows of a bucket that is too large tell how to split it again."""
        each = SPLIT_SAMPLE_OF_BUCKET * n_rows // self.bucket_size
        return min(n_rows, PART_ROWS, max(2 * self.bucket_size, each))

    def largest_bucket(self, n_rows: int) -> int:
        """Rows that a bucket can have, if its rows can be told apart and all gains are large enough."""
        leaf = max(self.min_samples_leaf, math.ceil(self.min_weight_fraction_leaf * n_rows))
        return min(n_rows, max(self.bucket_size, self.min_samples_split, 2 * leaf))

    def most_leaves(self, rows: int, buckets: int = 1) -> int:
        """The most leaves of a tree on `rows` rows; each of its buckets has at least one."""
        drawn = 1 - math.exp(-self.sample_mean) if self.bootstrap else 1.0
        leaves = math.ceil(rows * drawn / self.min_samples_leaf)
        if self.max_depth is not None:
            leaves = min(leaves, 2 ** min(62, self.max_depth))
        return max(leaves, buckets)

    def needs_top_trees(self, n_rows: int) -> bool:
        return not self.subsets and n_rows > self.bucket_size

    def needs_samples(self, n_rows: int) -> bool:
        """Whether some rows are drawn: for each top tree or, as its subset, for each tree."""
        return self.subsets or self.needs_top_trees(n_rows)

    def tree_rows(self, n_rows: int) -> int:
        """Rows that each tree is grown on."""
        return min(n_rows, self.top_sample) if self.subsets else n_rows

    def bucketed_rows(self, n_rows: int) -> int:
        """Rows that are distributed to the buckets of each top tree."""
        return 0 if self.subsets else n_rows

    def trees_of_tops(self, n_rows: int) -> list[int]:
        """How many bottom trees are grown on each top tree, from number `first_top` on."""
        if self.subsets:
            return [1] * self.new_trees
        if not self.needs_top_trees(n_rows):
            return [self.new_trees]
        first = min(self._trees_lacking, self.new_trees)
        whole, rest = divmod(self.new_trees - first, self.trees_per_top)
        return [first] * (first > 0) + [self.trees_per_top] * whole + [rest] * (rest > 0)

    def row_layout(self, n_rows: int, record_bytes: int, weighted: bool) -> _core.RowLayout:
        """How each of n_rows rows lies on disk."""
        n = self.n_classes
        target_bytes = 8 if n == 0 else 1 if n <= 2**8 else 2 if n <= 2**16 else 4
        number_bytes = _core.row_number_bytes(n_rows) if self.oob else 0
        return _core.RowLayout(record_bytes, target_bytes, weighted, number_bytes)

    def reference_layout(self, n_rows: int) -> _core.RowLayout:
        """How each of n_rows rows lies on disk if its features are gathered by its number."""
        layout = self.row_layout(n_rows, 0, False)
        if layout.numbered:
            return layout
        return _core.RowLayout(0, layout.target_bytes, False, _core.row_number_bytes(n_rows))

    def top_rules(self, share: float) -> _core.TreeRules:
        """The rules of a tree that is grown on this share of the rows it partitions."""
        rules = self.bottom_rules()
        rules.top_tree = True
        rules.random_thresholds = False
        rules.max_features = self.top_max_features
        rules.min_samples_split = max(
            2, self._sampled_rows(max(self.bucket_size, self.min_samples_split), share)
        )
        rules.min_samples_leaf = max(1, math.ceil(self.min_samples_leaf * share))
        rules.min_weight_leaf *= share
        rules.total_weight *= share
        rules.balance = self.balance
        return rules

    @staticmethod
    def _sampled_rows(rows: int, share: float) -> int:
        """How many of a sample make it likely that there are at most so many rows."""
        expected = rows * share
        error = math.sqrt(expected * (1 - share))
        return math.ceil(max(expected / 2, expected - _SAMPLE_ERRORS * error))

    def bottom_rules(self) -> _core.TreeRules:
        rules = _core.TreeRules()
        rules.criterion = self.criterion
        rules.n_classes = self.n_classes
        rules.max_features = self.max_features
        if self.max_depth is not None:
            rules.max_depth = self.max_depth
        rules.min_samples_split = self.min_samples_split
        rules.min_samples_leaf = self.min_samples_leaf
        rules.min_weight_leaf = self.min_weight_fraction_leaf * self.total_weight
        rules.min_impurity_decrease = self.min_impurity_decrease
        rules.total_weight = self.total_weight
        rules.random_thresholds = self.random_thresholds
        rules.target_scale = self.target_scale
        rules.balance = self.bottom_balance
        rules.levels = list(self.levels)
        return rules


def auto_trees_per_top(n_estimators: int, random_thresholds: bool) -> int:
    if random_thresholds:  # they make trees differ enough
        return AUTO_TREES_PER_TOP
    return min(AUTO_TREES_PER_TOP, max(1, n_estimators // AUTO_TOP_TREES))


def auto_bucket_size(n_rows: int, record_bytes: int, random_thresholds: bool = False) -> int:
    if n_rows <= AUTO_ONE_BUCKET:
        return max(2, n_rows)
    lowest, highest = AUTO_BUCKET_SIZES
    if random_thresholds:  # more brought extra trees nothing
        return lowest
    return min(highest, max(lowest, AUTO_BUCKET_BYTES // max(1, record_bytes)))


def auto_top_sample(n_rows: int, bucket_size: int) -> int:
    """Enough rows for each bucket of a top tree, within the paper's largest sample; few buckets get more, as
    far as that costs no second step."""
    least = min(2 * bucket_size, PART_ROWS)
    return min(n_rows, MAX_TOP_SAMPLE, max(least, AUTO_SAMPLE_OF_BUCKET * n_rows // bucket_size))


def auto_subset_size(n_rows: int) -> int:
    return min(n_rows, MAX_TOP_SAMPLE, max(30_000, n_rows // 60))


def auto_chunk_size(n_features: int) -> int:
    return max(1024, AUTO_CHUNK_BYTES // (4 * n_features))


def check_limits(n_rows: int, n_features: int, bucket_size: int) -> None:
    """Refuse what the formats cannot hold, before any work is done."""
    if n_features > _core.MAX_FEATURES:
        raise TooManyFeaturesError(n_features, _core.MAX_FEATURES)
    if n_rows // bucket_size > MAX_BUCKETS:
        raise TooManyBucketsError(n_rows // bucket_size, MAX_BUCKETS)
