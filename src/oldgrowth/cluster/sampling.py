"""The first pass over partitions on workers, and what is grown on the rows that they keep of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ChangedSourceError
from ..fitting.context import Prepared
from ..fitting.learned import Learned
from ..fitting.top_trees import TopTree, only_bucket, save_top_tree, saved_top_tree
from ..plan import Plan
from ..reporting.progress import StageProgress
from ..rows.streamed_rows import StreamedRows
from ..rows.training_rows import Place
from ..storage.sampled import Sampled
from . import work
from .fleet import Job
from .job_progress import JobProgress
from .journal import Codes, Journal
from .row_parts import RowParts, number_of
from .values import CandidatePart, GrownBucket, Held, PartEnd, Shared


class Sampling:
    """What is known of the partitions, and which worker keeps the candidates of each."""

    def __init__(self, rows: StreamedRows, parts: RowParts, journal: Journal) -> None:
        self._rows, self._parts, self._journal = rows, parts, journal
        self._plan: Plan | None = None  # of the first pass
        self.ends: list[PartEnd] = []
        self._candidates: dict[int, CandidatePart] = {}

    def worker_of(self, number: int) -> str | None:
        """The worker that has read a partition."""
        part = self._candidates.get(number)
        return None if part is None else part.held.worker

    def sample(self, plan: Plan, progress: StageProgress) -> Sampled:
        """What workers learn of their partitions, merged in the order of the rows."""
        self._plan, rows, journal = plan, self._rows, self._journal
        whole = Learned(rows, Place(), None)
        if journal.resume_learned(whole, rows, self._parts.used):
            sampled = whole.finish(rows)
            if (found := journal.parts(len(self._parts), rows.n_classes)) is not None:
                progress.skip(self._parts.used)
                self.ends, codes = found
                self._keep(codes)
                return sampled
            whole = Learned(self._fresh(), Place(), None)
        learned = self._learn_all(whole, progress)
        journal.save_learned(whole)
        sampled = whole.finish(rows)
        codes = [self._codes(part) for part in learned]
        for part, numbers in zip(learned, codes, strict=True):
            self.ends.append(PartEnd(part.end, part.trail, _class_rows(part, numbers, rows.n_classes)))
        self._keep(codes)
        journal.save_parts(self.ends, codes)
        return sampled

    def _fresh(self) -> StreamedRows:
        """The rows before anything was learned of their classes."""
        self._rows.labels = StreamedRows(self._rows.dataset, self._rows.classification).labels
        return self._rows

    def _learn_all(self, whole: Learned, stage: StageProgress) -> list[Learned]:
        """What was learned of each partition, without what `whole` is told."""
        waiting: dict[int, Learned] = {}
        learned_here: list[Learned] = []
        progress = JobProgress(stage, self._parts.fleet, "learn")

        def done(job: Job, learned: Learned, worker: str) -> None:
            number = number_of(job)
            self._candidates[number] = CandidatePart(Held(job.name, worker), None)
            progress.finished(job.name, learned.end.row - learned.start.row)
            waiting[number] = learned
            while len(learned_here) in waiting:
                following = waiting.pop(len(learned_here))
                whole.merge(following)
                learned_here.append(following)

        self._parts.run([self._learning(i) for i in range(len(self._parts))], done, progress=progress)
        return learned_here

    def _learning(self, number: int) -> Job:
        def arguments() -> tuple[Any, ...]:
            return self._parts[number], self._rows.classification, self._plan, self._parts.used

        return Job(f"learn-{number}", work.learn_part, arguments, only=self._parts.home(number))

    def _codes(self, learned: Learned) -> Codes:
        if self._rows.labels is None or learned.labels is None:
            return None
        return self._rows.labels.codes_of(learned.labels)

    def _keep(self, codes: list[Codes]) -> None:
        """The numbers that the classes of each partition have in the whole data; candidates of an interrupted
        fit are where the workers say."""
        fleet = self._parts.fleet
        for number, known in enumerate(codes):
            name = f"learn-{number}"
            held = Held(name, self.worker_of(number) or fleet.holder(name) or "")
            self._candidates[number] = CandidatePart(held, known)

    # From the candidates.

    def top_trees(self, prepared: Prepared, shared: Shared, progress: StageProgress) -> list[TopTree]:
        """Those of an interrupted fit are taken up."""
        plan, n_tops = prepared.plan, len(prepared.trees_of_tops)
        n_features = prepared.sampled.summary.n_features
        if not plan.needs_top_trees(prepared.n_rows):
            return [only_bucket(n_features)] * n_tops
        checkpoint = self._journal.checkpoint
        saved = {i: saved_top_tree(checkpoint, i, n_features, plan.levels) for i in range(n_tops)}
        tops = {i: top for i, top in saved.items() if top is not None}
        progress.skip(plan.top_sample * len(tops))

        def done(job: Job, top: TopTree) -> None:
            save_top_tree(checkpoint, number_of(job), top)
            tops[number_of(job)] = top
            progress.advance(plan.top_sample)

        self._draw("top-tree", work.grow_top, [i for i in range(n_tops) if i not in tops], shared, done)
        return [tops[i] for i in range(n_tops)]

    def subsets(
        self, trees: list[int], shared: Shared, store: Callable[[int, list[GrownBucket]], None]
    ) -> None:
        """Grow these trees of the baseline."""
        self._draw("subset", work.grow_subset, trees, shared, lambda job, grown: store(number_of(job), grown))

    def _draw(
        self,
        kind: str,
        function: Callable[..., Any],
        numbers: list[int],
        shared: Shared,
        use: Callable[[Job, Any], None],
    ) -> None:
        """Jobs that ask all workers for candidates; those of lost workers are learned again."""

        def done(job: Job, result: Any, worker: str) -> None:
            if not job.name.startswith("learn-"):
                use(job, result)
                return
            number = number_of(job)
            if result.end != self.ends[number].end:
                raise ChangedSourceError("the data", f"partition {number} is not what it was before")
            held = Held(job.name, worker)
            self._candidates[number] = replace(self._candidates[number], held=held)

        def restore(workers: set[str]) -> list[Job]:
            lost = [i for i, part in self._candidates.items() if part.held.worker not in workers]
            return [self._learning(i) for i in lost]

        def arguments(number: int) -> tuple[Any, ...]:
            return shared, number, tuple(self._candidates[i] for i in range(len(self._parts)))

        jobs = [Job(f"{kind}-{i}", function, partial(arguments, i)) for i in numbers]
        if jobs:
            self._parts.run(jobs, done, restore)


def _class_rows(learned: Learned, codes: Codes, n_classes: int) -> npt.NDArray[np.int64]:
    """The rows of each class in a partition, by the numbers that classes have in the whole data."""
    rows = np.zeros(n_classes, dtype=np.int64)
    if codes is not None:
        found = learned.summary.class_rows
        rows[codes[: len(found)]] = found
    return rows
