"""How a forest is fitted: sample, top trees, distribute, grow, assemble."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..datasets.level_counts import LevelLimit
from ..forest.forest import Forest
from ..messages.log import warn
from ..messages.warnings import SpillsToMemoryWarning
from ..plan import Plan
from ..planning.execution import (
    LimitCheck,
    choose_execution,
    chunk_rows_for,
    expected_disk,
    largest_model,
    refuse_at_start,
    with_rounds,
)
from ..planning.memory_model import FIRST_PASS_SHARE, MemoryModel
from ..planning.planner import Planner
from ..planning.sizes import Sizes, Widths
from ..planning.subset_memory import memory_model_of
from ..reporting.progress import Observers, StoppedByCallback
from ..reporting.report import FitReport, Recorder
from ..rows.class_codes import LabelLimit
from ..rows.training_rows import TrainingRows
from ..storage.fit_workspace import FitWorkspace
from ..storage.grown_trees import GrownTrees, TreesInMemory, TreesOnDisk
from ..storage.sampled import Sampled
from ..storage.votes import AllVotes, OobOnDisk, OobRows, OutOfBag
from ..system.limits import Limits
from ..system.memory import keep_freed_memory
from ..system.signals import ended_by_signals
from ..system.threads import workers
from .assemble import Assembled, assemble
from .context import FitContext, Prepared
from .grow import Sinks, grow
from .levels import learn_levels
from .rounds import saved_store, with_saved_rounds
from .sample import sample
from .strategy import Strategy, strategy_of
from .top_trees import TopTree, grow_top_trees


@dataclass(frozen=True)
class Fitted:
    """The result of a fit."""

    forest: Forest
    report: FitReport
    importances: npt.NDArray[np.float64]
    oob: Any  # what the caller made of the out-of-bag predictions
    votes: AllVotes | None = None  # if they are kept for a fit that adds trees
    continued: bool = False  # whether the first trees go on with the last top tree of the earlier forest


def fit_forest(
    rows: TrainingRows,
    planner: Planner,
    limits: Limits,
    observers: Observers,
    use_oob: Callable[[Iterator[OobRows]], Any],
    keep_checkpoint: bool = False,
) -> Fitted:
    """Run all stages. Files in the checkpoint directory are removed at the end, unless `keep_checkpoint`."""
    first_pass = FirstPass.planned(planner, rows, limits)  # what is not possible is refused before any work
    with live(limits, first_pass.plan.n_jobs, observers, keep_checkpoint) as context:
        planner = _begin(context, planner, rows, first_pass.model)
        learn_levels(rows, context, first_pass.level_limit)
        sampled = _sample(context, planner, rows, first_pass)
        prepared = _prepare(context, planner, sampled, limits)
        prepared, tops = _top_trees(context, prepared)
        grown = _bottom_trees(context, prepared, tops)
        made = _assemble(context, prepared, grown)
        oob = use_oob(_out_of_bag(context, prepared, grown, made.forest)) if prepared.plan.oob else None
        votes = grown.sinks.votes
        kept = votes.kept(prepared.voted_on) if votes is not None and prepared.plan.keep_votes else None
        report = completed(context.recorder.report, prepared, grown.bucket_sizes, made)
    continued = prepared.plan.continues(prepared.n_rows)
    return Fitted(made.forest, report, made.importances, oob, kept, continued)


@dataclass(frozen=True)
class FirstPass:
    """What is decided before the first pass: a preliminary plan, and the most memory and disk that it can
    take."""

    plan: Plan
    model: MemoryModel

    @staticmethod
    def planned(planner: Planner, rows: TrainingRows, limits: Limits) -> FirstPass:
        plan = planner.expect(rows.n_rows, rows.n_features, rows.n_classes)
        plan = replace(plan, levels=rows.levels)
        refuse_at_start(planner, rows, limits)
        model = largest_model(plan, rows, rows.n_rows or 1, limits)
        return FirstPass(replace(plan, chunk_size=chunk_rows_for(model)), model)

    @property
    def _room(self) -> int:
        return max(0, self.model.room(self.model.limits.resident))

    @property
    def candidate_bytes(self) -> int:
        """Memory for rows that may be in a top sample."""
        return self._room // FIRST_PASS_SHARE

    @property
    def label_bytes(self) -> int:
        """Memory for labels."""
        left = self.model.room(self.model.limits.resident) - self.candidate_bytes
        return max(2**20, left - self.model.sampling(self.plan.chunk_size))

    @property
    def level_limit(self) -> LevelLimit:
        """Memory for the levels of categorical features."""
        return LevelLimit(self.label_bytes, self.model.limits.memory)

    @property
    def at_work(self) -> int:
        """Memory of chunks and of rows that are kept, and what is left over for safety."""
        return self.candidate_bytes + self.model.chunks(self.plan.chunk_size, 1) + self.model.slack


@contextmanager
def live(limits: Limits, n_jobs: int, observers: Observers, keep_checkpoint: bool) -> Iterator[FitContext]:
    """Files, threads and reporting of a fit, ended with it however it ends."""
    keep_freed_memory(limits.memory if limits.memory_given else None)
    recorder = Recorder(observers, limits.memory)
    with (
        ended_by_signals(),
        _told_how_to_resume(recorder, limits.checkpoint_dir),
        FitWorkspace(limits.spill_dir, limits.checkpoint_dir, keep_checkpoint) as workspace,
        workers(n_jobs) as engine,
    ):
        workspace.stop, workspace.limit = engine.stop, limits.spill_limit
        recorder.disk = lambda: workspace.opened
        yield FitContext(workspace, engine, recorder)


def _begin(context: FitContext, planner: Planner, rows: TrainingRows, model: MemoryModel) -> Planner:
    """Start anew or resume, with the seed that the fit began with."""
    workspace, recorder, checkpoint = context.workspace, context.recorder, context.checkpoint
    begun = checkpoint.begin(
        planner.identity() | {"data": rows.fingerprint() if workspace.persistent else {}}
    )
    if rows.n_rows is not None and (disk := expected_disk(model)).needed:
        recorder.say(f"may need up to about {disk}")
    if checkpoint.resumed:
        recorder.say(f"resuming the fit in {model.limits.checkpoint_dir}")
    return planner.with_seed(begun["seed"])


def _sample(context: FitContext, planner: Planner, rows: TrainingRows, first_pass: FirstPass) -> Sampled:
    plan = replace(first_pass.plan, seed=planner.seed)
    limit_check = LimitCheck(planner, rows, first_pass.model.limits, first_pass.at_work)
    if first_pass.model.limits.memory_given:
        rows.limit_labels(LabelLimit(first_pass.label_bytes, limit_check.limit_for_labels))
    with context.recorder.stage("sample", rows.n_rows, rows.nbytes) as progress:
        sampled = sample(rows, plan, context, progress, first_pass.candidate_bytes, limit_check.check_so_far)
    if context.checkpoint.active:
        context.checkpoint.build_on(sampled.checksum)
    return sampled


def _prepare(context: FitContext, planner: Planner, sampled: Sampled, limits: Limits) -> Prepared:
    """Plan the remaining stages, after the first pass."""
    summary, recorder = sampled.summary, context.recorder
    plan = replace(planner.plan(summary, sampled.rows.classes), levels=sampled.rows.levels)
    widths = Widths.of(sampled.codec.widths, codec=sampled.codec.bytes)
    sizes = Sizes.of(plan, sampled.rows, summary.n_rows, widths, summary.weighted)
    sizes = sizes.with_classes(summary.class_rows)
    begun_with = saved_store(context.checkpoint)
    expected = memory_model_of(
        plan, sizes, limits if begun_with is None else replace(limits, store=begun_with)
    )
    execution, model = choose_execution(expected, max(stage.peak_memory for stage in recorder.report.stages))
    if begun_with is not None:
        execution = replace(execution, why="as the interrupted fit began")
    recorder.say(f"store: {execution.store} ({execution.why})")
    if execution.on_disk and limits.spills_to_memory:
        warn(SpillsToMemoryWarning(limits.directory))
    if (disk := expected_disk(expected)).needed:
        recorder.say(f"needs about {disk}")
    plan = replace(plan, chunk_size=execution.chunk_rows)
    prepared = Prepared(sampled, plan, execution, model)
    if planner.earlier is None or not plan.oob:
        return prepared
    return replace(prepared, earlier_votes=planner.earlier.votes_on(prepared.voted_on))


def _top_trees(context: FitContext, prepared: Prepared) -> tuple[Prepared, list[TopTree]]:
    """The top trees, and the rounds in which their buckets are made."""
    plan = prepared.plan
    rows = plan.top_sample * len(prepared.trees_of_tops) if plan.needs_top_trees(prepared.n_rows) else 0
    with context.recorder.stage("top trees", rows) as progress:
        tops = grow_top_trees(
            prepared.sampled,
            plan,
            context.engine,
            progress,
            context.checkpoint,
            prepared.execution.tops_at_once,
        )
    execution = with_rounds(prepared.execution, prepared.model, max(top.n_buckets for top in tops))
    return replace(prepared, execution=with_saved_rounds(execution, context.checkpoint)), tops


@dataclass(frozen=True)
class _Grown:
    """The top trees, split further where buckets were too large, the rows of their buckets, and where the
    bottom trees and the votes are."""

    tops: list[TopTree]
    bucket_sizes: list[npt.NDArray[np.int64]]
    sinks: Sinks
    strategy: Strategy


def _bottom_trees(context: FitContext, prepared: Prepared, tops: list[TopTree]) -> _Grown:
    strategy = strategy_of(prepared.plan)
    votes = strategy.new_votes(context, prepared) if prepared.plan.oob else None
    if votes is not None and prepared.earlier_votes is not None:
        votes.begin_with(prepared.earlier_votes)
    sinks = Sinks(_new_trees(context, prepared, votes), votes)
    split, sizes = list(tops), []
    for done in strategy.rounds(context, prepared, tops, sinks.trees):
        left = done.unfinished(sinks.trees, prepared.trees_of_tops)
        strategy.check_buckets(prepared, done, left)
        grown = sum(prepared.n_rows * prepared.trees_of_tops[i] for i in done.tops if i not in left)
        grow(done.store, left, context, prepared, sinks, grown)
        for i, top in done.tops.items():
            split[i] = top
            sizes.append(done.sizes[i])
        context.recorder.report.buckets_split += done.n_split
    return _Grown(split, sizes, sinks, strategy)


def _new_trees(context: FitContext, prepared: Prepared, votes: OutOfBag | None) -> GrownTrees:
    if not prepared.on_disk:
        return TreesInMemory()
    logged = votes if isinstance(votes, OobOnDisk) else None
    summary = prepared.sampled.summary
    return TreesOnDisk(context.workspace.get(), summary.n_features, prepared.plan, logged)


def _assemble(context: FitContext, prepared: Prepared, grown: _Grown) -> Assembled:
    with context.recorder.stage("assemble", prepared.n_rows) as progress:
        spilled = context.workspace.get() if prepared.on_disk else None
        made = assemble(
            prepared.sampled.summary.n_features,
            prepared.plan,
            grown.tops,
            prepared.trees_of_tops,
            grown.sinks.trees,
            spilled,
        )
        progress.advance(prepared.n_rows)
    return made


def _out_of_bag(context: FitContext, prepared: Prepared, grown: _Grown, forest: Forest) -> Iterator[OobRows]:
    """The means over the trees that did not see each row, some rows at a time."""
    trees, votes = grown.sinks.trees, grown.sinks.votes
    assert votes is not None
    if isinstance(votes, OobOnDisk) and isinstance(trees, TreesOnDisk):
        votes.keep(trees.runs)
    with context.recorder.stage("out of bag", prepared.n_rows) as progress:
        yield from grown.strategy.out_of_bag(votes, prepared, forest, progress)


def completed(
    report: FitReport, prepared: Prepared, sizes: list[npt.NDArray[np.int64]], made: Assembled
) -> FitReport:
    """The report with what is known in the end; `sizes` are the rows of the buckets of each top tree."""
    summary = prepared.sampled.summary
    plan, execution = prepared.plan, prepared.execution
    report.rows, report.features = summary.n_rows, summary.n_features
    report.record_bytes = summary.record_bytes
    report.top_trees = len(sizes) if plan.needs_top_trees(summary.n_rows) else 0
    report.trees, report.nodes, report.depth = plan.new_trees, made.forest.n_nodes, made.depth
    report.bucket_size, report.top_sample = plan.bucket_size, plan.top_sample
    report.store, report.store_reason = execution.store, execution.why
    report.rounds = -(-len(sizes) // execution.tops_per_round)
    report.count_buckets(sizes)
    return report


@contextmanager
def _told_how_to_resume(recorder: Recorder, checkpoint_dir: Path | None) -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, StoppedByCallback) as stop:
        way = "nothing was kept; with a checkpoint_dir a fit can go on where it was."
        if checkpoint_dir is not None:
            same = f"the same data and parameters and checkpoint_dir={str(checkpoint_dir)!r}"
            way = f"call fit again with {same} to go on."
        told = stop.raised if isinstance(stop, StoppedByCallback) else stop
        told.add_note(f"The fit was interrupted: {way}")
        recorder.say(f"interrupted: {way}")
        raise
