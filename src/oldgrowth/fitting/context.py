"""What the stages of a fit are given: open resources, and what was decided after the first pass."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..plan import Plan
from ..planning.execution import ExecutionPlan
from ..planning.memory_model import MemoryModel
from ..reporting.report import Recorder
from ..storage.checkpoint import Checkpoint
from ..storage.fit_workspace import FitWorkspace
from ..storage.sampled import Sampled
from ..storage.votes import AllVotes
from .engine import Engine


@dataclass(frozen=True)
class FitContext:
    """The open resources of a fit: files, threads, and the observers of its progress."""

    workspace: FitWorkspace
    engine: Engine
    recorder: Recorder

    @cached_property
    def checkpoint(self) -> Checkpoint:
        return self.workspace.checkpoint()


@dataclass(frozen=True)
class Prepared:
    """What is known before top trees are grown: the rows, the plan, and how it is carried out."""

    sampled: Sampled
    plan: Plan
    execution: ExecutionPlan
    model: MemoryModel
    earlier_votes: AllVotes | None = None  # out-of-bag, of the trees of an earlier fit
    class_weights: list[list[float]] | None = (
        None  # in each tree, where they are known before trees are grown
    )

    @property
    def voted_on(self) -> tuple[int, bool]:
        """What out-of-bag votes must have in common to be added up."""
        return self.sampled.checksum, self.plan.hard_votes

    @property
    def n_rows(self) -> int:
        return self.sampled.summary.n_rows

    @property
    def on_disk(self) -> bool:
        return self.execution.on_disk

    @cached_property
    def trees_of_tops(self) -> list[int]:
        """How many bottom trees stand on each top tree."""
        return self.plan.trees_of_tops(self.n_rows)
