"""By what means a plan is carried out: which store, how much at a time, in how many rounds.

All of this follows from the limits on memory and disk. None of it shows in the forest.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .checkpoint_dir import bytes_used
from .checks import one_of, path_of
from .disk_plan import DiskNeeds
from .errors import DiskTooSmallError, MemoryLimitError, ParameterError
from .memory import READING_BYTES, human_bytes, memory_limit_of, resident_memory, size_of
from .plan import Plan
from .training_rows import TrainingRows
from .workspace import nearest_existing

# What Python, threads and libraries take beside what is planned.
_SLACK_BYTES = 48 * 2**20
_SLACK_SHARE = 0.03
_ROUNDED_UP = 1.02
_WRITE_BUFFERS = 2 * 8 * 2**20
_LARGEST_GROUP = 512 * 2**20
_SMALLEST_GROUP = 2 * 2**20
# Bytes of a bucket that are worth a read of their own, and of a group that are worth a write: longer groups
# would only be written later, with nothing to read meanwhile.
_RUN_BYTES = 256 * 2**10
_USUAL_GROUP = 16 * 2**20
_SMALLEST_CHUNK = 256
# Bytes of the nodes of a tree for each row it was grown on: what trees have that fit noise.
_TREE_BYTES = 5
# Of the free disk, what a fit may take when nothing is said.
_AUTO_SPILL_SHARE = 0.8


@dataclass(frozen=True)
class Limits:
    """What the caller allows, and what the process had when the fit began."""

    store: str
    memory: int
    memory_given: bool
    resident: int
    reading: int  # what reading the source takes beside: guessed, then measured in the first pass
    kept: int  # what of that stays when nothing is read
    spill_dir: Path | None
    spill_limit: int | None
    checkpoint_dir: Path | None

    @property
    def room(self) -> int:
        """Memory that may be planned with."""
        return self.memory - self.resident - self.reading - _SLACK_BYTES - int(_SLACK_SHARE * self.memory)

    @property
    def directory(self) -> Path:
        """Where files go."""
        return self.checkpoint_dir or _directory(self.spill_dir)


def with_source(limits: Limits, rows: TrainingRows) -> Limits:
    """What the source says that reading it takes, if it is more than the guess."""
    return replace(limits, reading=max(limits.reading, READING_BYTES // 2 + rows.reading_bytes))


def measured(limits: Limits, peak: int) -> Limits:
    """When the source was read once, with this peak, which has in it what is left as slack else. Where work
    takes longer than it did then, more rows wait for it."""
    kept = max(0, resident_memory() - limits.resident)
    return replace(limits, reading=max(READING_BYTES // 2, peak - limits.resident - _SLACK_BYTES), kept=kept)


def limits_of(params: dict[str, Any]) -> Limits:
    store = one_of("store", params.get("store", "auto"), ("auto", "memory", "disk"))
    names = ("spill_dir", "checkpoint_dir")
    paths = [None if params[name] is None else path_of(name, params[name]) for name in names]
    given = params.get("spill_limit", "auto")
    spill_limit = None
    if not (isinstance(given, str) and given == "auto"):
        spill_limit = size_of(
            "spill_limit", given, shutil.disk_usage(nearest_existing(_directory(paths[0]))).total
        )
    memory = params["memory_limit"]
    auto = isinstance(memory, str) and memory == "auto"
    return Limits(
        store,
        memory_limit_of(memory),
        not auto,
        resident_memory(),
        READING_BYTES,
        READING_BYTES,
        paths[0],
        spill_limit,
        paths[1],
    )


def _directory(spill_dir: Path | None) -> Path:
    return Path(tempfile.gettempdir()) if spill_dir is None else spill_dir


def bytes_of_votes(n_rows: int, outputs: int) -> int:
    """Votes out of bag, in memory: sums, how many trees, and the target of each row."""
    return n_rows * (8 * outputs + 12)


@dataclass(frozen=True)
class Sizes:
    """Bytes that rows take in each stage."""

    n_rows: int
    n_features: int
    n_tops: int
    n_trees: int
    outputs: int
    record: int  # of a row as the codec packs it
    row: int  # in a block on disk
    oob: bool
    in_arrays: bool  # the caller has the rows in memory
    tree_rows: int  # that each tree is grown on
    bucketed: bool  # all rows go to buckets

    @staticmethod
    def of(plan: Plan, rows: TrainingRows, n_rows: int, record: int, weighted: bool) -> Sizes:
        row = plan.row_layout(record, weighted).row_bytes
        n_tops = len(plan.trees_of_tops(n_rows))
        outputs = plan.n_classes or 1
        return Sizes(
            n_rows,
            rows.n_features,
            n_tops,
            plan.n_estimators,
            outputs,
            record,
            row,
            plan.oob,
            rows.random_access,
            min(n_rows, plan.top_sample) if plan.subsets else n_rows,
            not plan.subsets,
        )

    @property
    def chunk_row(self) -> int:
        return 4 * self.n_features + 32

    @property
    def grown_row(self) -> int:
        """While a bucket is grown: read, taken apart, ranked, with the grower's own arrays."""
        return self.row + self.record + 5 * self.n_features + 110

    @property
    def sampled_row(self) -> int:
        """In a top sample: the record, its key, target, weight and number, and where it is routed."""
        return self.record + 8 + 8 + 8 + 4 + 16

    @property
    def in_memory(self) -> int:
        """All rows and trees, with the memory store."""
        rows = self.record + 8 + 4 * (self.n_tops + 1) + (0 if self.in_arrays else 16)
        return self.n_rows * (rows + _TREE_BYTES * self.n_trees) + self.votes

    @property
    def votes(self) -> int:
        """Votes out of bag, in memory."""
        return bytes_of_votes(self.n_rows, self.outputs) if self.oob else 0


@dataclass(frozen=True)
class Means:
    store: str
    why: str
    chunk_rows: int
    group_rows: int
    tops_at_once: int  # top trees grown at a time
    grown_rows: int  # rows of buckets that are grown at a time
    tops_per_round: int
    oob_bytes: int  # for votes out of bag; more are kept on disk


def chunk_rows_for(plan: Plan, limits: Limits, n_features: int, given: bool) -> int:
    """Rows read at a time: what was asked for, or less than it if memory is short."""
    if given:
        return plan.chunk_size
    most = limits.room // 8 // (_chunks_at_once(plan) * (4 * n_features + 32))
    return max(_SMALLEST_CHUNK, min(plan.chunk_size, most))


def _chunks_at_once(plan: Plan) -> int:
    """Chunks that are read, wait, or are worked on."""
    return plan.n_jobs + 7


def choose_means(plan: Plan, sizes: Sizes, limits: Limits, chunk_rows: int) -> Means:
    """Refuses limits under which it cannot be done."""
    store, why = _store(plan, sizes, limits)
    if store == "memory":
        if not sizes.in_arrays:  # the caller's arrays may be larger than any limit
            _refuse_too_little(plan, limits, memory_for_all(plan, sizes, limits))
        many = 2**31
        return Means(store, why, chunk_rows, sizes.n_rows, many, many, sizes.n_tops, 2**62)
    least = least_memory(plan, sizes, limits, min(chunk_rows, _SMALLEST_CHUNK))
    _refuse_too_little(plan, limits, least)
    room = max(limits.room, least - limits.memory + limits.room)
    tops_per_round = _tops_per_round(plan, sizes, limits)
    chunks = _chunks_at_once(plan) * chunk_rows * sizes.chunk_row
    group_row = 2 * (sizes.row + 4 * tops_per_round) + 16
    group_bytes = min(_LARGEST_GROUP, max(_SMALLEST_GROUP, room - chunks - _WRITE_BUFFERS))
    useful_bytes = max(_USUAL_GROUP, _RUN_BYTES * (sizes.n_rows // plan.bucket_size))
    return Means(
        store,
        why,
        chunk_rows,
        max(chunk_rows, min(sizes.n_rows, group_bytes // group_row, useful_bytes // sizes.row)),
        max(1, room // max(1, _sample_bytes(plan, sizes))),
        max(1, room // sizes.grown_row),
        tops_per_round,
        room // 4,
    )


def expect_means(narrow: Plan, wide: Plan, rows: TrainingRows, limits: Limits, chunk_rows: int) -> None:
    """Refuse, before the first pass, a disk that will not do however narrow the rows turn out to be, and
    memory that may not do if they are wide."""
    if limits.store == "memory" and limits.checkpoint_dir is not None:
        raise ParameterError("store", limits.store, "'auto' or 'disk' with a checkpoint_dir")
    if rows.n_rows is None or wide.subsets:  # what is needed however few rows there turn out to be
        sizes = Sizes.of(narrow, rows, 1, rows.n_features, weighted=False)
        if not sizes.in_arrays:
            least = least_memory(narrow, sizes, limits, min(chunk_rows, _SMALLEST_CHUNK))
            if rows.n_rows is not None and wide.oob:
                sizes = Sizes.of(narrow, rows, rows.n_rows, rows.n_features, weighted=False)
                least = max(least, memory_for_all(narrow, sizes, limits))
            _refuse_too_little(narrow, limits, least)
    else:
        for plan, bytes_each in ((wide, 4), (narrow, 1)):
            sizes = Sizes.of(plan, rows, rows.n_rows, bytes_each * rows.n_features, weighted=False)
            if plan is wide and _store(plan, sizes, limits)[0] == "disk":
                _refuse_too_little(
                    plan, limits, least_memory(plan, sizes, limits, min(chunk_rows, _SMALLEST_CHUNK))
                )
            elif plan is narrow:
                choose_means(plan, sizes, limits, chunk_rows)


def _refuse_too_little(plan: Plan, limits: Limits, least: int, way: str | None = None) -> None:
    if limits.memory_given and limits.memory < least:
        if way is None and plan.subsets:
            way = f"{'Fewer trees or a' if plan.oob else 'A'} smaller subset_size would do with less."
        way = way or "A smaller bucket_size or top_sample needs less."
        # A little more than that: the process is not of the same size each time.
        raise MemoryLimitError(limits.memory, int(least * _ROUNDED_UP), way)


def refuse_large_bucket(plan: Plan, sizes: Sizes, limits: Limits, rows: int) -> None:
    """Refuse what no limit could tell before: a bucket of so many rows that came out and cannot be split."""
    least = least_memory(plan, sizes, limits, _SMALLEST_CHUNK, rows)
    way = f"{rows:,} rows have to be in memory at once: by the rules for splits they cannot be parted."
    _refuse_too_little(plan, limits, least, way)


def least_memory(plan: Plan, sizes: Sizes, limits: Limits, chunk_rows: int, bucket_rows: int = 0) -> int:
    """The lowest memory limit that would do, on disk, if a bucket has so many rows."""
    largest = max(bucket_rows, min(sizes.tree_rows, plan.largest_bucket(sizes.n_rows)))
    sampled = _sample_bytes(plan, sizes)
    stages = (
        limits.kept + max(sampled, largest * sizes.grown_row),
        limits.reading
        + _chunks_at_once(plan) * chunk_rows * sizes.chunk_row
        + _WRITE_BUFFERS
        + _SMALLEST_GROUP,
    )
    return math.ceil((limits.resident + _SLACK_BYTES + max(stages)) / (1 - _SLACK_SHARE))


def _sample_bytes(plan: Plan, sizes: Sizes) -> int:
    """A top sample, and what is grown on at once of it or of a bucket that is split again."""
    if sizes.n_rows <= plan.bucket_size:
        return 0
    held = 0 if plan.subsets else min(plan.top_sample, sizes.n_rows) * sizes.sampled_row
    return held + plan.largest_sample(sizes.n_rows) * sizes.grown_row


def memory_for_all(plan: Plan, sizes: Sizes, limits: Limits) -> int:
    """What the process takes if everything stays in memory."""
    bucket = plan.largest_sample(sizes.n_rows) if plan.subsets else min(sizes.n_rows, plan.bucket_size)
    sampled = _sample_bytes(plan, sizes)
    growing = plan.n_jobs * max(sampled, bucket * sizes.grown_row)
    kept = bucket * _TREE_BYTES * sizes.n_trees + sizes.votes if plan.subsets else sizes.in_memory
    reading = 0 if sizes.in_arrays else limits.reading
    return limits.resident + _SLACK_BYTES + max(reading, growing) + kept


def _store(plan: Plan, sizes: Sizes, limits: Limits) -> tuple[str, str]:
    if plan.subsets and plan.oob:  # as votes are not remembered, trees must not be either
        return "memory", "the out-of-bag votes of subsets are kept there"
    if limits.store != "auto":
        return limits.store, "as asked for"
    if limits.checkpoint_dir is not None:
        return "disk", "there is a checkpoint_dir"
    needed = memory_for_all(plan, sizes, limits)
    text = f"{human_bytes(needed)} needed in memory, the limit is {human_bytes(limits.memory)}"
    return ("memory" if needed <= limits.memory else "disk"), text


def _tops_per_round(plan: Plan, sizes: Sizes, limits: Limits) -> int:
    directory = nearest_existing(limits.directory)
    free = shutil.disk_usage(directory).free + bytes_used(limits.checkpoint_dir)
    spill_limit = int(_AUTO_SPILL_SHARE * free) if limits.spill_limit is None else limits.spill_limit
    needs = DiskNeeds.of(plan, sizes)
    tops = needs.tops_within(min(spill_limit, free))
    if tops == 0:
        raise DiskTooSmallError(directory, needs.at_most(1), free, spill_limit)
    return min(sizes.n_tops, tops)


def expected_disk(plan: Plan, sizes: Sizes, limits: Limits) -> str | None:
    """What a fit will take on disk, and what is free there; None if it takes none."""
    if _store(plan, sizes, limits)[0] == "memory":
        return None
    directory = nearest_existing(limits.directory)
    needed = human_bytes(DiskNeeds.of(plan, sizes).at_most(_tops_per_round(plan, sizes, limits)))
    return f"{needed} of disk in {directory}, where {human_bytes(shutil.disk_usage(directory).free)} are free"


def largest_disk(wide: Plan, rows: TrainingRows, limits: Limits) -> str | None:
    """The same before the first pass, for features of four bytes; None if rows are not counted yet."""
    if rows.n_rows is None:
        return None
    sizes = Sizes.of(wide, rows, rows.n_rows, 4 * rows.n_features, weighted=False)
    try:
        return expected_disk(wide, sizes, limits)
    except DiskTooSmallError:  # rows may be narrower: the first pass will tell
        return f"{human_bytes(DiskNeeds.of(wide, sizes).at_most(1))} of disk, which are not free"
