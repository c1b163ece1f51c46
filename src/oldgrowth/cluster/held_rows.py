"""The rows of the buckets, as the driver sees them: which worker has which, and how many there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..fitting.context import Prepared
from ..fitting.grow import balanced
from ..fitting.resplit import Large
from ..fitting.top_trees import TopTree
from ..storage.grown_trees import GrownTrees
from . import work
from .fleet import Job
from .job_progress import JobProgress
from .row_parts import RowParts, number_of
from .sampling import Sampling
from .split_runs import SplitRuns
from .values import BucketRange, GrownBucket, Held, Routed, Shared

# Called with a top tree's number, and what was grown on a range of its buckets.
Store = Callable[[int, list[GrownBucket]], None]


class HeldRows:
    """Splits buckets on workers as a `Splitter`."""

    def __init__(
        self, shared: Shared, prepared: Prepared, parts: RowParts, sampling: Sampling, range_bytes: int
    ) -> None:
        self._fleet, self._shared, self._prepared = parts.fleet, shared, prepared
        self._parts, self._sampling = parts, sampling
        self._range_rows = max(1, range_bytes // prepared.model.sizes.row)  # that a job has at a time
        self._runs: dict[int, Held] = {}  # of each partition
        self._split: dict[int, SplitRuns] = {}  # of each top tree
        self._tops: dict[int, TopTree] = {}
        self._shared_tops: Any = None
        self._trees: dict[int, TopTree] = {}  # as they are after splitting
        self._sizes: dict[int, npt.NDArray[np.int64]] = {}
        self._owners: dict[int, npt.NDArray[np.int64]] = {}

    def route(self, tops: dict[int, TopTree], progress: JobProgress) -> None:
        """Bring all rows into the buckets of these top trees."""
        self._tops, self._trees = tops, dict(tops)
        self._shared_tops = self._fleet.share(tops)
        self._runs, self._split = {}, {i: SplitRuns.of(top.n_buckets) for i, top in tops.items()}
        self._sizes = {i: np.zeros(top.n_buckets, dtype=np.int64) for i, top in tops.items()}
        self._owners = {i: np.arange(top.n_buckets) for i, top in tops.items()}
        counted: set[int] = set()

        def use(job: Job, result: Routed) -> None:
            number = number_of(job)
            if number in counted:
                return
            counted.add(number)
            for i, sizes in result.sizes.items():
                self._sizes[i] += sizes
            progress.finished(job.name, self._sampling.ends[number].end.row - self._parts[number].start.row)

        self._run([self._routing(i) for i in range(len(self._parts))], use, progress)

    def _routing(self, number: int) -> Job:
        def arguments() -> tuple[Any, ...]:
            return self._shared, self._parts[number], self._shared_tops, self._sampling.ends[number]

        name = f"route-{min(self._tops)}-{number}"
        reader = partial(self._sampling.worker_of, number)  # whose system may have the file in memory
        return Job(name, work.route_part, arguments, reader, self._parts.home(number))

    def _routed(self, job: Job, result: Routed) -> None:
        self._runs[number_of(job)] = result.held

    def _restoring(self, workers: set[str]) -> list[Job]:
        """Jobs that make again what is on none of these workers: partitions first, then what was split."""
        lost = [i for i, held in self._runs.items() if held.worker not in workers]
        if lost:
            return [self._routing(i) for i in lost]
        return [job for runs in self._split.values() for job in runs.to_restore(workers)]

    # As a `Splitter`.

    def sizes(self, top: int) -> npt.NDArray[np.int64]:
        return self._sizes[top]

    def trees(self, top: int, large: list[Large]) -> list[TopTree]:
        found: dict[int, list[TopTree]] = {}

        def arguments(some: list[Large]) -> tuple[Any, ...]:
            owners = self._owners[top][[bucket.bucket for bucket in some]]
            return self._shared, self._alone(top, owners), some

        groups = [large[i:j] for i, j in self._shares([bucket.rows for bucket in large])]
        jobs = [
            Job(f"split-tree-{i}", work.trees_of_buckets, partial(arguments, some))
            for i, some in enumerate(groups)
        ]
        self._run(jobs, lambda job, trees: found.update({number_of(job): trees}))
        return [tree for i in range(len(jobs)) for tree in found[i]]

    def split(self, top: int, trees: list[tuple[int, TopTree]]) -> None:
        """These buckets become several each. The rows of some of them make a run on some worker."""
        n_parts = np.array([tree.n_buckets for _, tree in trees], dtype=np.int64)
        moved = np.cumsum(n_parts - 1) - (n_parts - 1)
        places = np.array([at for at, _ in trees], dtype=np.int64) - moved  # as numbered before
        first_owner = self._split[top].next_owner
        sizes: dict[str, npt.NDArray[np.int64]] = {}
        jobs = []
        for i, j in self._shares(self._sizes[top][places].tolist()):
            owners, some = self._owners[top][places[i:j]], [tree for _, tree in trees[i:j]]
            jobs.append(self._splitting(top, owners, some))
        self._run(jobs, lambda job, result: sizes.update({job.name: result[1]}))
        new_owners = np.arange(first_owner, self._split[top].next_owner)
        new_sizes = np.concatenate([np.zeros(0, np.int64), *(sizes[job.name] for job in jobs)])
        for known, new in ((self._sizes, new_sizes), (self._owners, new_owners)):
            known[top] = _replaced(known[top], places, n_parts, new)

    def _splitting(self, top: int, owners: npt.NDArray[np.int64], trees: list[TopTree]) -> Job:
        """The job that splits the buckets with these owners, each by a tree."""
        runs = self._split[top]
        n_parts, first = sum(tree.n_buckets for tree in trees), runs.next_owner
        job = Job(
            f"split-{top}-{first}-{first + n_parts}",
            work.split_buckets,
            lambda: (self._shared, self._alone(top, owners), trees, first),
        )
        runs.add(job, n_parts, owners)
        return job

    def _run(
        self, jobs: list[Job], use: Callable[[Job, Any], None], progress: JobProgress | None = None
    ) -> None:
        """Run jobs that need the rows; what workers lose meanwhile is made again."""
        own = {job.name for job in jobs}

        def done(job: Job, result: Any, worker: str) -> None:
            if job.name.startswith("route-"):
                self._routed(job, result)
            elif job.function is work.split_buckets:
                self._split[int(job.name.split("-")[1])].made(job.name, result[0])
            if job.name in own:
                use(job, result)

        self._parts.run(jobs, done, self._restoring, progress)

    def set_tree(self, top: int, tree: TopTree) -> None:
        """The top tree with its large buckets split."""
        self._trees[top] = tree

    # Growth.

    def grow(self, grown: GrownTrees, store: Store, progress: JobProgress) -> None:
        """Grow all trees of all buckets that are not grown yet, some buckets at a time."""
        plan, trees = self._prepared.plan, self._prepared.trees_of_tops
        done = {top: grown.grown(top, tree.n_buckets, trees[top]) for top, tree in self._trees.items()}
        weights = self._balanced() if plan.balanced_subsample else None
        shared_weights = None if weights is None else self._fleet.share(weights)
        shared_trees = {top: self._fleet.share(tree) for top, tree in self._trees.items()}

        def arguments(top: int, first: int, stop: int) -> tuple[Any, ...]:
            buckets, here = self._range(top, first, stop), done[top][first:stop]
            buckets = replace(buckets, grown=here) if here.any() else buckets
            return self._shared, buckets, shared_trees[top], shared_weights

        def rows_left(top: int, first: int, stop: int) -> int:
            return int((~done[top][first:stop] * self._sizes[top][first:stop, None]).sum())

        def use(job: Job, result: list[GrownBucket]) -> None:
            top, first, stop = map(int, job.name.split("-")[1:])
            store(top, result)
            progress.finished(job.name, rows_left(top, first, stop))

        jobs = []
        for top in self._tops:
            for part in self._ranges(top):
                if left := rows_left(top, *part):
                    name = f"grow-{top}-{part[0]}-{part[1]}"
                    jobs.append(Job(name, work.grow_range, partial(arguments, top, *part)))
                progress.skip(int(self._sizes[top][slice(*part)].sum()) * trees[top] - left)
        self._run(jobs, use, progress)

    def _balanced(self) -> list[list[float]]:
        """The weights of the classes in each tree. Totals are added in the order of one machine."""
        plan, trees_of_tops = self._prepared.plan, self._prepared.trees_of_tops
        totals: dict[int, dict[int, list[npt.NDArray[np.float64]]]] = {top: {} for top in self._tops}
        trees = {top: self._fleet.share(tree) for top, tree in self._trees.items()}

        def arguments(top: int, first: int, stop: int) -> tuple[Any, ...]:
            return self._shared, self._range(top, first, stop), trees[top]

        def use(job: Job, result: dict[int, list[npt.NDArray[np.float64]]]) -> None:
            totals[int(job.name.split("-")[1])].update(result)

        jobs = [
            Job(f"classes-{top}-{first}-{stop}", work.drawn_classes, partial(arguments, top, first, stop))
            for top in self._tops
            for first, stop in self._ranges(top)
        ]
        self._run(jobs, use)
        counts = np.zeros((plan.n_estimators, plan.n_classes))
        for top, of_buckets in totals.items():
            first_tree = sum(trees_of_tops[:top])
            for bucket in np.argsort(-self._sizes[top], kind="stable").tolist():
                for tree, classes in enumerate(of_buckets[bucket]):
                    counts[first_tree + tree] += classes
        return balanced(counts)

    def _ranges(self, top: int) -> list[tuple[int, int]]:
        """Consecutive buckets for a job: where they begin, and end."""
        return _grouped(self._sizes[top].tolist(), self._range_rows)

    def _shares(self, rows: list[int]) -> list[tuple[int, int]]:
        """The same of buckets that are split, so that all workers have some."""
        share = -(-sum(rows) // max(1, len(self._fleet.workers())))
        return _grouped(rows, min(self._range_rows, share))

    def _range(self, top: int, first: int, stop: int) -> BucketRange:
        owners = self._owners[top]
        return BucketRange(
            top, first, owners[first:stop], len(owners), self._runs_with(top, owners[first:stop])
        )

    def _alone(self, top: int, owners: npt.NDArray[np.int64]) -> BucketRange:
        """The buckets with these owners, as if there were no others."""
        return BucketRange(top, 0, owners, len(owners), self._runs_with(top, owners))

    def _runs_with(self, top: int, owners: npt.NDArray[np.int64]) -> tuple[Held, ...]:
        """The runs that have rows of these owners, in the order of the rows."""
        split = self._split[top]
        runs = [self._runs[i] for i in range(len(self._parts))] if owners.min() < split.first else []
        return *runs, *split.held(owners)

    def drop(self) -> None:
        """Free the disks of the workers."""
        self._fleet.everywhere(work.drop_runs)


def _grouped(rows: list[int], most: int) -> list[tuple[int, int]]:
    """Buckets of so many rows each in groups of at most `most` rows, or of one bucket."""
    groups: list[tuple[int, int]] = []
    first, held = 0, 0
    for i, size in enumerate(rows):
        if held and held + size > most:
            groups.append((first, i))
            first, held = i, 0
        held += size
    return [*groups, (first, len(rows))] if rows else groups


def _replaced(
    values: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    n_parts: npt.NDArray[np.int64],
    parts: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """The values with those at these places replaced by several each."""
    repeats = np.ones(len(values), dtype=np.int64)
    repeats[places] = n_parts
    split = np.zeros(len(values), dtype=np.bool_)
    split[places] = True
    result = np.repeat(values, repeats)
    result[np.repeat(split, repeats)] = parts
    return result
