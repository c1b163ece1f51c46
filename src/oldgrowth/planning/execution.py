"""How a plan is carried out: which store, how much at a time, in how many rounds.

All of this follows from the limits on memory and disk, and none of it affects the forest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from .. import _core
from ..errors import DiskTooSmallError, ParameterError
from ..messages.text import human_bytes
from ..plan import AUTO_BUCKET_BYTES, AUTO_BUCKET_SIZES, AUTO_ONE_BUCKET, Plan
from ..rows.data_summary import DataSummary
from ..rows.training_rows import TrainingRows
from ..storage.checkpoint_dir import bytes_used
from ..storage.votes import FEWEST_VOTE_BYTES
from ..system.limits import Limits, disk_space, nearest_existing
from ..system.memory import resident_memory
from .disk_plan import DiskEstimate, DiskNeeds
from .memory_model import FEWEST_KEYS, FIRST_PASS_SHARE, SMALLEST_CHUNK, SMALLEST_GROUP, MemoryModel
from .planner import Planner
from .sizes import MOST_CODES, Sizes, Widths
from .subset_memory import memory_model_of

_LARGEST_GROUP = 512 * 2**20
# Bytes of a bucket that are worth a read of their own, and of a group that are worth a write: longer groups
# would only be written later, with nothing to read meanwhile.
_RUN_BYTES = 256 * 2**10
_READING_VARIES = 1.06  # margin for libraries that read files, whose memory is not known exactly
_USUAL_GROUP = 16 * 2**20
# The results of each worker get the room beside the largest bucket divided by this.
_RESULTS_SHARE = 8
# Freed memory is kept if the room is as many times what the buckets on which workers grow trees take.
_KEPT_TIMES = 3
_MANY_CLASSES = 2**20  # as trees have the most nodes for
# Of the free disk, what a fit may take when nothing is said.
_AUTO_SPILL_SHARE = 0.8


@dataclass(frozen=True)
class ExecutionPlan:
    store: str
    why: str
    on_disk: bool
    chunk_rows: int
    group_rows: int
    tops_at_once: int  # top trees grown at a time
    tops_per_round: int
    oob_bytes: int  # for votes out of bag; more are kept on disk


@dataclass(frozen=True)
class GrowingRoom:
    """The memory for buckets, and for the trees and votes that workers return, during growth."""

    model: MemoryModel
    room: int
    in_memory: bool  # trees stay in memory, and the room is what is left beside them

    @staticmethod
    def now(model: MemoryModel, in_memory: bool) -> GrowingRoom:
        """What the process has left; what is grown needs a part of it if it stays in memory."""
        grown = model.grown_in_memory if in_memory else 0
        return GrowingRoom(model, max(0, model.room(resident_memory()) - grown), in_memory)

    def may_keep_freed(self, workers: int, largest: int) -> bool:
        """Whether memory may stay in the process when it is freed, if this is the largest bucket: parts of
        it may be too small for the next bucket, and leaves may take half of the room."""
        return _KEPT_TIMES * self.model.growing(workers, largest) <= self.room

    @cached_property
    def most_keys(self) -> int:
        """Different rows of a bucket that is one leaf which are remembered at a time."""
        keys = FEWEST_KEYS
        while self.model.of_leaf(2**62, 2 * keys) <= self.room // (2 * self.model.plan.n_jobs):
            keys *= 2
        return keys

    @cached_property
    def result_bytes(self) -> int:
        """What a task may return, if that is more than what every limit has room for."""
        beside_largest = max(0, self.room - self.model.of_bucket(self.model.largest_bucket))
        return beside_largest // (_RESULTS_SHARE * self.model.plan.n_jobs)

    @property
    def vote_bytes(self) -> int:
        """Votes that a task returns at a time."""
        return max(FEWEST_VOTE_BYTES, self.result_bytes)

    def of_votes(self, rows: int) -> int:
        """All votes on a bucket with this number of rows."""
        return rows * self.model.sizes.vote_row if self.model.sizes.oob else 0

    def most_trees(self, rows: int, leaf: bool) -> int:
        """Trees that one task may return."""
        return max(1, self.result_bytes // max(1, self._of_tree(rows, leaf)))

    def of_result(self, rows: int, trees: int, leaf: bool) -> int:
        """What a task with this number of trees returns at a time."""
        return trees * self._of_tree(rows, leaf) + min(self.of_votes(rows), self.vote_bytes)

    def of_bucket(self, rows: int, leaf: bool, trees_at_once: int = 1) -> int:
        """A bucket while this number of trees is grown on it."""
        if leaf:
            return self.model.of_leaf(rows, self.most_keys)
        return self.model.of_bucket(rows, trees_at_once)

    def _of_tree(self, rows: int, leaf: bool) -> int:
        """A returned tree, unless it stays in memory; and which rows it drew, until its votes are made."""
        tree = 0 if self.in_memory else self.model.of_bottom_tree(1 if leaf else rows)
        return tree + (rows // 8 if self.model.sizes.oob and not leaf else 0)


class LimitCheck:
    """Refuses a limit as soon as it is certainly too low, whatever the remaining rows contain."""

    def __init__(self, planner: Planner, rows: TrainingRows, limits: Limits, first_pass: int = 0) -> None:
        self._planner, self._rows, self._limits = planner, rows, limits
        self._first_pass = first_pass  # bytes of chunks, of rows that are kept, and of slack
        self._reading = rows.reading_bytes

    def check_so_far(self, n_rows: int, n_classes: int, profile: _core.Profile, weighted: bool) -> None:
        """Like `check`, during the first pass."""
        widths = Widths.of(profile.widths(), profile.bytes, profile.codec_bytes)
        if not self._rows.random_access:  # reading may take more than the source could tell
            grown = resident_memory() - self._limits.resident
            self._reading = max(self._reading, grown - profile.bytes - self._first_pass)
        self.check(n_rows, n_classes, widths, weighted)

    def check(self, n_rows: int, n_classes: int, widths: Widths, weighted: bool = False) -> None:
        """So many rows and classes there are at least, and as wide as this the rows are at least."""
        models = [
            self._model(n, n_classes, w, weighted)
            for n in self._numbers_of_rows(n_rows)
            for w in self._widths(widths, n)
        ]
        # The lowest is certainly needed; the highest is certainly enough.
        limits = [least_limit(model) for model in models]
        named = max(limits) if self._rows.random_access else int(max(limits) * _READING_VARIES)
        models[0].refuse_below(min(limits), named=named)

    def limit_for_labels(self, labels: int, taken: int, rows: int) -> int:
        """A sufficient limit if each further row has a label of its own, as those so far."""
        n_rows = max(rows, self._rows.expected_rows or 0)
        n_classes = labels + n_rows - rows
        models = [
            self._model(n_rows, n_classes, widths, weighted=False)
            for widths in self._widths(Widths.narrowest(self._rows.n_features), n_rows)
        ]
        all_taken = taken * n_classes // labels
        wide = [replace(model, sizes=replace(model.sizes, labels=all_taken)) for model in models]
        limits = [max(least_limit(model), model.learning_labels()) for model in wide]
        return int(max(limits) * _READING_VARIES)

    def _model(self, n_rows: int, n_classes: int, widths: Widths, weighted: bool) -> MemoryModel:
        summary = DataSummary(n_rows, self._rows.n_features, n_classes, widths.record)
        plan = self._planner.expected(summary)
        sizes = Sizes.of(plan, self._rows, n_rows, widths, weighted)
        return memory_model_of(plan, replace(sizes, reading=self._reading), self._limits)

    def _numbers_of_rows(self, at_least: int) -> list[int]:
        """As few as there can be, as many as are expected, and where buckets are the smallest."""
        if self._rows.n_rows is not None:
            return [self._rows.n_rows]
        expected = self._rows.expected_rows or AUTO_ONE_BUCKET + 1
        smallest = [AUTO_ONE_BUCKET + 1] if expected > AUTO_ONE_BUCKET > at_least else []
        return [at_least, max(at_least, expected), *smallest]

    def _widths(self, at_least: Widths, n_rows: int) -> list[Widths]:
        """As narrow as can be, as wide as can be, and where buckets have the fewest rows."""
        n = self._rows.n_features
        widest = Widths.widest(n, n_rows, self._rows.most_values)
        if widest.record < at_least.record:
            widest = at_least
        turn = AUTO_BUCKET_BYTES // AUTO_BUCKET_SIZES[0]
        found = [at_least, widest]
        if n_rows > MOST_CODES:  # features of many values may turn out to be ranked, or have to be known
            found[0] = replace(at_least, codec=0)
            if widest.ranked > at_least.ranked:
                found.append(Widths.most_codes(n, n_rows))
        if at_least.record < turn < widest.record:
            found.append(Widths(turn, at_least.ranked))
        return found


def least_limit(model: MemoryModel) -> int:
    """The lowest sufficient limit, in the requested store or, given a choice, the one that takes less."""
    store = _asked_for(model)
    if store == "memory":
        return model.in_memory()
    if store == "gather":
        return model.gathered().least()
    return model.least() if store == "disk" else min(model.least(), model.in_memory())


def chunk_rows_for(model: MemoryModel) -> int:
    """Rows read at a time: the requested number, or fewer if memory is short."""
    plan = model.plan
    share = max(0, model.room(model.limits.resident)) // FIRST_PASS_SHARE
    return max(
        min(SMALLEST_CHUNK, plan.chunk_size), min(plan.chunk_size, share // max(1, model.chunks(1, 1)))
    )


def choose_execution(model: MemoryModel, peak: int) -> tuple[ExecutionPlan, MemoryModel]:
    """Choose how the fit is carried out, after a first pass with this peak memory; returns the memory model
    of the choice, too. Refuses limits that are too low."""
    model.refuse_below(least_limit(model))
    store, why, model = _store(model)
    return _within_limits(store, why, model, peak), model


def execution_of_part(model: MemoryModel, n_rows: int, tops: int) -> ExecutionPlan:
    """How a worker distributes `n_rows` of the rows for these top trees, on its disk."""
    part = replace(model, sizes=replace(model.sizes, n_rows=n_rows))
    return _on_disk("disk", "on a cluster", part, 0, tops)


def _within_limits(store: str, why: str, model: MemoryModel, peak: int) -> ExecutionPlan:
    """How much is done at a time in a store."""
    plan, sizes, limits = model.plan, model.sizes, model.limits
    room = max(0, model.room(resident_memory()))
    chunk = min(SMALLEST_CHUNK, plan.chunk_size)
    top_trees = max(1, room // max(1, model.top_tree()))
    room = max(0, room - model.held_image)
    if store == "memory":
        spare = max(0, room - sizes.reading - model.rows_in_memory)
        chunk_rows = max(chunk, min(plan.chunk_size, spare // max(1, model.chunks(1, sizes.n_tops))))
        return ExecutionPlan(store, why, False, chunk_rows, sizes.n_rows, top_trees, sizes.n_tops, 2**62)
    return _on_disk(store, why, model, peak, _tops_per_round(plan, sizes, limits))


def _on_disk(store: str, why: str, model: MemoryModel, peak: int, tops_per_round: int) -> ExecutionPlan:
    """How much is done at a time in a store on disk."""
    plan, sizes = model.plan, model.sizes
    room = max(0, model.room(resident_memory()))
    top_trees = max(1, room // max(1, model.top_tree()))
    room = max(0, room - model.held_image)
    chunk = min(SMALLEST_CHUNK, plan.chunk_size)
    chunk_rows = max(chunk, min(plan.chunk_size, room // 8 // max(1, model.chunks(1, tops_per_round))))
    reading = max(sizes.reading, peak - resident_memory() - model.profile)
    group_room = room - reading - model.chunks(chunk_rows, tops_per_round) - model.write_buffers
    group_bytes = min(_LARGEST_GROUP, max(SMALLEST_GROUP, group_room))
    useful_bytes = max(_USUAL_GROUP, _RUN_BYTES * (sizes.n_rows // plan.bucket_size))
    most_rows = min(sizes.n_rows, group_bytes // model.group_row(tops_per_round), useful_bytes // sizes.row)
    return ExecutionPlan(
        store, why, True, chunk_rows, max(chunk_rows, most_rows), top_trees, tops_per_round, room // 4
    )


def with_rounds(execution: ExecutionPlan, model: MemoryModel, most_buckets: int) -> ExecutionPlan:
    """Lower the number of top trees in a round so that the index of their blocks fits in memory, if each has
    at most `most_buckets` buckets."""
    if not execution.on_disk:
        return execution
    groups = -(-model.sizes.n_rows // execution.group_rows)
    room = max(0, model.room(resident_memory()) - model.held_image) // 4
    fit = room // max(1, model.blocks(most_buckets, groups))
    return replace(execution, tops_per_round=max(1, min(execution.tops_per_round, fit)))


def refuse_large_bucket(model: MemoryModel, rows: int, in_memory: bool) -> None:
    """Refuse a bucket that cannot be split, if its `rows` rows do not fit in memory."""
    way = f"{rows:,} rows must be in memory at once: the rules for splits keep them together."
    model.refuse_below(model.in_memory(bucket_rows=rows) if in_memory else model.least(rows), way)


def refuse_at_start(planner: Planner, rows: TrainingRows, limits: Limits) -> None:
    """Before the first pass, refuse memory and disk limits that are too low for any rows."""
    if limits.store == "memory" and limits.checkpoint_dir is not None:
        raise ParameterError("store", limits.store, "'auto' or 'disk' with a checkpoint_dir")
    if limits.store == "gather" and rows.image_bytes is None:
        raise ParameterError("store", limits.store, "'auto', 'memory' or 'disk': only scenes can be gathered")
    n_classes = 0 if not planner.classification else max(2, rows.n_classes)
    narrow = Widths.narrowest(rows.n_features)
    LimitCheck(planner, rows, limits).check(rows.n_rows or 1, n_classes, narrow)
    if rows.n_rows is not None:
        _refuse_disk_at_start(planner, rows, limits, n_classes)


def _refuse_disk_at_start(planner: Planner, rows: TrainingRows, limits: Limits, n_classes: int) -> None:
    """Refuse a disk that is too small even for the narrowest rows and one rare class, and name the space that
    the widest rows and classes of noise need."""

    def model(widths: Widths, n_classes: int) -> MemoryModel:
        plan = planner.expected(DataSummary(n_rows, rows.n_features, n_classes, widths.record))
        return memory_model_of(plan, Sizes.of(plan, rows, n_rows, widths), limits)

    n_rows = rows.n_rows or 1
    narrow = model(Widths.narrowest(rows.n_features), n_classes)
    store, _, narrow = _store(narrow)
    plan = narrow.plan
    classes_known = not plan.classification or rows.n_classes > 0
    if store == "memory" or (not classes_known and (plan.oob or plan.limits_growth)):
        return  # each class takes disk: the first pass will tell how many there are
    widest = Widths.widest(rows.n_features, n_rows, rows.most_values)
    wide = model(widest, n_classes if classes_known else _MANY_CLASSES)
    wide = wide.gathered() if store == "gather" else wide
    _tops_per_round(plan, replace(narrow.sizes, mixed=0.0), limits, DiskNeeds.of(wide.plan, wide.sizes))


def _asked_for(model: MemoryModel) -> str:
    """The store that must be used, or "auto"."""
    if model.fixed_store is not None:
        return model.fixed_store[0]
    if model.limits.store != "auto":
        return model.limits.store
    return "auto" if model.limits.checkpoint_dir is None else "disk"


def _store(model: MemoryModel) -> tuple[str, str, MemoryModel]:
    """The store, the reason for it, and the memory model of a fit with it."""
    store, limits = _asked_for(model), model.limits
    if limits.store != "auto" and store == limits.store:
        return store, "as asked for", model.gathered() if store == "gather" else model
    if model.fixed_store is not None:
        return *model.fixed_store, model
    why = "there is a checkpoint_dir"
    if store == "auto":
        needed = model.in_memory(model.plan.n_jobs)
        why = f"{human_bytes(needed)} needed in memory, the limit is {human_bytes(limits.memory)}"
        if needed <= limits.memory:
            return "memory", why, model
        if model.in_memory() <= limits.memory < model.least():
            return "memory", f"{why}: fewer threads work at a time", model
    if _gathering_pays(model):
        return "gather", f"{why}; the image has {human_bytes(model.sizes.image)}", model.gathered()
    return "disk", why, model


def _gathering_pays(model: MemoryModel) -> bool:
    """Whether the image is smaller than the buckets on disk and leaves memory for all threads."""
    sizes, plan = model.sizes, model.plan
    if not sizes.image or plan.subsets or sizes.image >= sizes.n_tops * sizes.n_rows * sizes.row:
        return False
    gathered = model.gathered()
    growing = gathered.growing(plan.n_jobs, gathered.largest_bucket)
    beside = max(growing, gathered.fewest_distributed(min(SMALLEST_CHUNK, plan.chunk_size)))
    index = gathered.index(sizes.n_tops * gathered.expected_buckets())
    return gathered.held_image + beside + index + sizes.codec <= gathered.room(model.limits.resident)


def expected_disk(model: MemoryModel) -> DiskEstimate:
    """The disk space that a fit will take, as far as it is known."""
    directory = nearest_existing(model.limits.directory)
    free = disk_space(directory).free
    store, _, model = _store(model)
    plan, sizes = model.plan, model.sizes
    if store == "memory":
        return DiskEstimate(0, free, directory)
    try:
        tops = _tops_per_round(plan, sizes, model.limits)
    except DiskTooSmallError:  # of which the fit has its own word, when rows are known
        tops = 1
    return DiskEstimate(DiskNeeds.of(plan, sizes).at_most(tops), free, directory)


def largest_model(plan: Plan, rows: TrainingRows, n_rows: int, limits: Limits) -> MemoryModel:
    """The most memory that `n_rows` rows can need: all values distinct, and weights."""
    widths = Widths.widest(rows.n_features, n_rows, rows.most_values)
    return memory_model_of(plan, Sizes.of(plan, rows, n_rows, widths, weighted=True), limits)


def _tops_per_round(plan: Plan, sizes: Sizes, limits: Limits, named: DiskNeeds | None = None) -> int:
    """The number of top trees that the disk has room for at a time. An error states the needs in `named`, if
    given."""
    directory = nearest_existing(limits.directory)
    free = disk_space(directory).free + bytes_used(limits.checkpoint_dir)
    spill_limit = int(_AUTO_SPILL_SHARE * free) if limits.spill_limit is None else limits.spill_limit
    needs = DiskNeeds.of(plan, sizes)
    tops = needs.tops_within(min(spill_limit, free))
    if tops == 0:
        named = named or needs
        error = DiskTooSmallError(directory, named.at_most(1), free, spill_limit, named.votes)
        if limits.checkpoint_dir is not None:  # where all files are
            error.replace("choose a spill_dir", "choose a checkpoint_dir")
        raise error
    return min(sizes.n_tops, tops)
