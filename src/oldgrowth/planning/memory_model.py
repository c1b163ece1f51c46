"""The memory that each stage of a fit takes, and the lowest limit under which it can be done.

Each structure states its own bytes (`_core.bucket_bytes`, `votes.MEANS_COPIES`); here they are added up. How
much is in memory at a time is chosen in `execution.py`, so that it stays within the limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .. import _core
from ..errors import MemoryLimitError
from ..plan import Plan
from ..rows.records import floats_at_a_time
from ..storage.top_file import block_rows
from ..storage.votes import MEANS_COPIES, VOTES_AT_WORK, fewest_rows_of_means
from ..system.limits import Limits
from .sizes import MOST_CODES, Sizes

# What Python, libraries and their threads take beside what is planned: chosen, and tested by a grid of fits.
_SLACK_BYTES = 20 * 2**20
_SLACK_OF_THREAD = 2**18
_SLACK_SHARE = 0.02
# A refusal names a little more than the least: a process is not of the same size each time.
_ROUNDED_UP = 1.02
_NODE_BYTES = 8
# Of a tree with sets of levels, for each leaf; of the search for sets, for each row and each level.
_SET_BYTES, _SET_SEARCH_ROW, _SET_SEARCH_LEVEL = 8, 64, 32
# What Python takes for a bottom tree that is kept in memory, beside its arrays.
_TREE_OBJECT = 700
# Per bottom tree on disk: where it is in the log and in the forest, and its sets. Per bucket: nodes and depth
# in its top tree, twice while it is put together, and its rows.
_TREE_INDEX = 72
_BUCKET_INDEX = 80
# Per bucket of a top tree whose rows are distributed, for each group of rows: its block, while sorted.
_BLOCK_INDEX = 96
WRITE_BUFFERS = 2 * 8 * 2**20
SMALLEST_GROUP = 2 * 2**20
SMALLEST_CHUNK = 256
# In the first pass, chunks and rows that are kept each get the room divided by this.
FIRST_PASS_SHARE = 8
# Different rows of a bucket that is one leaf, of which it is remembered how many copies there are.
FEWEST_KEYS = 2**17

refuses = True  # tests that look whether a refusal was right turn it off


@dataclass(frozen=True)
class MemoryModel:
    plan: Plan
    sizes: Sizes
    limits: Limits

    @property
    def fixed_store(self) -> tuple[str, str] | None:
        """The store that a fit of this kind must have, if it has no choice, and why."""
        return None

    @property
    def advice(self) -> str:
        """What lowers the memory that is needed."""
        return "A smaller bucket_size or top_sample needs less."

    @property
    def slack(self) -> int:
        threads = self.plan.n_jobs * _SLACK_OF_THREAD
        return _SLACK_BYTES + threads + int(_SLACK_SHARE * self.limits.memory)

    def room(self, resident: int) -> int:
        """The memory that may be planned with, given what the process uses already."""
        return self.limits.memory - resident - self.slack

    # Rows that are read.

    @property
    def chunk_row(self) -> int:
        """A row of a chunk: features, target, weight, and a copy of both for the checksum."""
        return 4 * self.sizes.n_features + 32

    @property
    def profile(self) -> int:
        """What the first pass learns of the values of each feature, and the codec that is made of it."""
        wide = self.sizes.ranked * _core.Profile.bytes_of_feature(MOST_CODES)
        narrow = (self.sizes.n_features - self.sizes.ranked) * _core.Profile.bytes_of_feature(256)
        return narrow + max(wide, self.sizes.profile + self.sizes.codec)

    def sampling(self, chunk_rows: int) -> int:
        """The first pass: chunks that are read ahead, created and processed."""
        return self.sizes.reading + self.profile + _CHUNKS_AHEAD * chunk_rows * self.chunk_row

    def learning_labels(self) -> int:
        """The limit under which labels have room in the first pass, beside the shares of chunks and of rows
        that are kept."""
        labels = self.sizes.labels
        left = 1 - 2 / FIRST_PASS_SHARE
        return self._limit_for(math.ceil((labels + self.sizes.reading + self.profile) / left) - labels)

    def chunks(self, chunk_rows: int, tops: int) -> int:
        """Chunks of the second pass: those that are routed have a bucket for each top tree."""
        ahead = _CHUNKS_AHEAD * self.chunk_row
        routed = (self.plan.n_jobs + 1) * (self.chunk_row + 4 * tops + 24)
        return chunk_rows * (ahead + routed)

    def group_row(self, tops: int) -> int:
        """A row in each of two groups, one of which is collected and one written, with its place in the
        order."""
        return 2 * (self.sizes.row + 4 * tops) + 24

    def distributing(self, chunk_rows: int, group_rows: int, tops: int) -> int:
        groups = max(SMALLEST_GROUP, group_rows * self.group_row(tops))
        return self.sizes.reading + self.chunks(chunk_rows, tops) + groups + self.write_buffers

    @property
    def write_buffers(self) -> int:
        """Groups that wait to be written: never more than all rows."""
        return min(WRITE_BUFFERS, 2 * self.sizes.n_rows * self.sizes.row)

    # Trees that are grown.

    @property
    def _kind(self) -> _core.RowKind:
        plan, sizes = self.plan, self.sizes
        return _core.RowKind(
            sizes.n_features, sizes.ranked, plan.classification, sizes.weighted, plan.bootstrap
        )

    @property
    def _rules(self) -> _core.TreeRules:
        return self.plan.bottom_rules()

    @property
    def _fields(self) -> int:
        """The fields of a row: record, key, target, weight and number."""
        numbered = self.sizes.oob or self.sizes.gathered
        return self.sizes.record + 16 + 8 * self.sizes.weighted + 8 * numbered

    @property
    def held_image(self) -> int:
        """The image, if rows are gathered from it."""
        return self.sizes.image if self.sizes.gathered else 0

    def gathered(self) -> MemoryModel:
        """The same fit with rows that are gathered from an image."""
        row = self.plan.reference_layout(self.sizes.n_rows).row_bytes
        return replace(self, sizes=replace(self.sizes, row=row, gathered=True))

    def _block(self, rows: int) -> int:
        """The blocks that rows are read in: their bytes and their fields."""
        return min(rows, block_rows(self.sizes.row)) * (self.sizes.row + self._fields)

    def mixed_leaves(self, rows: int) -> int:
        """Leaves of a tree on `rows` rows that can hold several classes, without identical rows."""
        plan = self.plan
        if not plan.limits_growth:
            return 0
        smallest = max(2, plan.min_samples_leaf)
        deepest = 2 ** min(62, plan.max_depth) if plan.max_depth is not None else rows
        return min(rows // smallest + 1, deepest)

    def of_bucket(self, rows: int, trees_at_once: int = 1) -> int:
        """A bucket while trees are grown on it: rows as read, rank codes, trees, and votes."""
        kind, plan = self._kind, self.plan
        held = _core.bucket_bytes(rows, kind)
        made = _core.making_bytes(rows, kind) + rows * self._fields + self._block(rows)
        whole = not plan.class_weights and not self.sizes.weighted and not plan.balanced_subsample
        tree = _core.growing_bytes(rows, kind, self._rules, whole, self.mixed_leaves(rows))
        if plan.levels:
            tree += rows * (_SET_SEARCH_ROW + 2 * _SET_BYTES) + max(plan.levels) * _SET_SEARCH_LEVEL
        if self.sizes.oob:
            seen = plan.trees_per_top * rows // 8
            tree = max(tree, 16 * rows + self._block(rows) + self._votes_at_work) + seen
        return held + max(made, trees_at_once * tree)

    def of_bottom_tree(self, rows: int) -> int:
        """A tree that was grown on a bucket of `rows` rows."""
        leaves = self.plan.most_leaves(rows)
        mixed = min(leaves, self.mixed_leaves(rows)) * self.plan.n_classes
        return _TREE_OBJECT + 8 * self.sizes.n_features + self._leaf_bytes * leaves + 4 * mixed

    @property
    def _leaf_bytes(self) -> int:
        """A leaf and an inner node, with its set of levels."""
        return 2 * _NODE_BYTES + (_SET_BYTES if self.plan.levels else 0)

    def of_leaf(self, rows: int, most_keys: int = FEWEST_KEYS) -> int:
        """A bucket that is one leaf, whose rows are streamed."""
        counter = 3 * _core.CopyCounter.bytes(min(rows, most_keys)) // 2  # it grows
        votes = self._votes_at_work if self.sizes.oob else 0
        return counter + 2 * self._block(rows) + votes

    @property
    def _votes_at_work(self) -> int:
        return max(VOTES_AT_WORK, 4 * self.sizes.vote_row)

    @property
    def largest_bucket(self) -> int:
        return min(self.sizes.tree_rows, self.plan.largest_bucket(self.sizes.n_rows))

    def top_tree(self) -> int:
        """A top sample as it is drawn, then read and routed, and what is grown on of it; or a subset."""
        plan, sizes = self.plan, self.sizes
        if not plan.needs_samples(sizes.n_rows):
            return 0
        sample = min(plan.top_sample, sizes.n_rows)
        drawn = sample * 60
        read = sample * (self._fields + 12) + 2 * floats_at_a_time(sizes.n_features) * 4 * sizes.n_features
        return max(drawn, read + self.of_bucket(plan.largest_sample(sizes.n_rows)))

    # What stays.

    def index(self, buckets: int) -> int:
        """The index of all trees, if the top trees have `buckets` buckets in total."""
        return buckets * (_BUCKET_INDEX + self.plan.trees_per_top * _TREE_INDEX)

    def blocks(self, buckets: int, groups: int) -> int:
        """The index of blocks on disk, of top trees with `buckets` buckets in total."""
        return buckets * _BLOCK_INDEX * groups

    def expected_buckets(self) -> int:
        """Of a top tree: as a sample is split until too few of its rows are left, unevenly."""
        plan, n = self.plan, self.sizes.n_rows
        if not plan.needs_top_trees(n):
            return 1
        sample = min(plan.top_sample, n)
        most = plan.top_rules(sample / n).min_samples_split
        return min(sample, max(1, 2 * sample // most))

    # Votes out of bag.

    def scoring(self, rows_at_a_time: int) -> int:
        """Means are computed for `rows_at_a_time` rows; a metric and the caller get those of all rows."""
        sizes = self.sizes
        if not sizes.oob:
            return 0
        result = 8 * sizes.outputs * sizes.n_rows if sizes.kept_votes else 0
        metric = 24 * sizes.n_rows if sizes.metric else 0
        return result + metric + rows_at_a_time * MEANS_COPIES * sizes.vote_row

    @property
    def votes(self) -> int:
        """Of all rows, in memory."""
        return self.sizes.n_rows * self.sizes.vote_row if self.sizes.oob else 0

    # All together.

    def least(self, bucket_rows: int = 0) -> int:
        """The lowest sufficient memory limit on disk, if a bucket has `bucket_rows` rows."""
        index = self.index(self.sizes.n_tops * self.expected_buckets())
        fewest = fewest_rows_of_means(self.sizes.n_rows)
        chunk = min(SMALLEST_CHUNK, self.plan.chunk_size)
        stages = [
            self.top_tree(),
            self.held_image + self.of_bucket(max(bucket_rows, self.largest_bucket)) + index,
            self.held_image + self.scoring(fewest) + index,
            self.held_image + self.fewest_distributed(chunk),
        ]
        return self._limit_for(max(self.sampling(chunk), self.sizes.codec + max(stages)))

    def least_to_grow(self) -> int:
        """The lowest limit under which a top tree, and the trees of a bucket, can be grown."""
        index = self.index(self.sizes.n_tops * self.expected_buckets())
        bucket = self.of_bucket(self.largest_bucket) + index
        return self._limit_for(self.sizes.codec + max(self.top_tree(), bucket))

    def fewest_distributed(self, chunk_rows: int) -> int:
        """Distributing rows for one top tree at a time, in the smallest groups."""
        return self.distributing(chunk_rows, 0, 1) + self.blocks(self.expected_buckets(), 1)

    def in_memory(self, workers: int = 1, bucket_rows: int = 0) -> int:
        """The limit under which everything can stay in memory while `workers` workers are busy, if a bucket
        has `bucket_rows` rows."""
        plan, sizes = self.plan, self.sizes
        rows = self.rows_in_memory
        chunk = min(SMALLEST_CHUNK, plan.chunk_size)
        trees = self.trees_in_memory
        stages = (
            min(workers, sizes.n_tops) * self.top_tree(),
            sizes.reading + self.chunks(chunk, sizes.n_tops) + rows,
            rows + self.grown_in_memory + self.growing(workers, max(bucket_rows, self.largest_bucket)),
            2 * trees + self.votes,  # as they are copied into the forest
            trees + self.votes + self.scoring(0),
        )
        return self._limit_for(max(self.sampling(chunk), sizes.codec + max(stages)))

    def growing(self, workers: int, bucket_rows: int) -> int:
        """Buckets on which workers grow trees; several share one if there are fewer buckets."""
        plan, n_rows = self.plan, self.sizes.n_rows
        buckets = self.sizes.n_tops * self.expected_buckets()
        trees_at_once = min(plan.trees_of_tops(n_rows)[0], -(-workers // buckets))
        return min(workers, buckets) * self.of_bucket(bucket_rows, trees_at_once)

    @property
    def rows_in_memory(self) -> int:
        """All rows as records, and their order for each top tree."""
        sizes = self.sizes
        copied = 0 if sizes.in_arrays else 8 + 8 * sizes.weighted
        return sizes.n_rows * (sizes.record + 8 + copied + 4 * (sizes.n_tops + 1))

    @property
    def grown_in_memory(self) -> int:
        """What accumulates while trees are grown: the trees, and the out-of-bag votes."""
        return self.trees_in_memory + self.votes

    @property
    def trees_in_memory(self) -> int:
        plan, sizes = self.plan, self.sizes
        of_top = self.expected_buckets()
        buckets = sizes.n_tops * of_top
        leaves = plan.most_leaves(sizes.tree_rows, of_top)
        mixed = min(leaves, of_top * self.mixed_leaves(self.largest_bucket))
        objects = of_top * (_TREE_OBJECT + 8 * sizes.n_features)
        nodes = self._leaf_bytes * leaves + 4 * sizes.outputs * mixed * plan.classification
        return sizes.n_trees * (objects + nodes) + self.index(buckets)

    def _limit_for(self, planned: int) -> int:
        slack = _SLACK_BYTES + self.plan.n_jobs * _SLACK_OF_THREAD
        fixed = self.limits.resident + slack + self.sizes.labels + planned
        return math.ceil(fixed / (1 - _SLACK_SHARE))

    def refuse_below(self, least: int, way: str | None = None, named: int = 0) -> None:
        """Refuse a limit below the least, and name a sufficient one."""
        if not (refuses and self.limits.memory_given and self.limits.memory < least):
            return
        raise MemoryLimitError(self.limits.memory, int(max(least, named) * _ROUNDED_UP), way or self.advice)


# Chunks that are read, wait to be worked on, or are looked at.
_CHUNKS_AHEAD = 7
