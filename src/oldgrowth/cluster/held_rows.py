"""The rows of the buckets, as the driver sees them: which worker has which, and how many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from .values import BucketRange, GrownBucket, Held, Routed, Shared

# Called with a top tree's number, and what was grown on a range of its buckets.
Store = Callable[[int, list[GrownBucket]], None]


class HeldRows:
    """Splits buckets on workers as a `Splitter`."""

    def __init__(self, shared: Shared, prepared: Prepared, parts: RowParts, sampling: Sampling) -> None:
        self._fleet, self._shared, self._prepared = parts.fleet, shared, prepared
        self._parts, self._sampling = parts, sampling
        self._runs: dict[int, Held] = {}  # of each partition
        self._split_runs: dict[int, dict[str, Held]] = {}  # of each top tree, by their names
        self._split_jobs: dict[str, Job] = {}  # that made them
        self._owners_of: dict[str, npt.NDArray[np.int64]] = {}
        self._parents: dict[str, str | None] = {}  # the runs that they were made of, unless of all partitions
        self._tops: dict[int, TopTree] = {}
        self._shared_tops: Any = None
        self._trees: dict[int, TopTree] = {}  # as they are after splitting
        self._sizes: dict[int, npt.NDArray[np.int64]] = {}
        self._owners: dict[int, npt.NDArray[np.int64]] = {}
        self._next_owner: dict[int, int] = {}

    def route(self, tops: dict[int, TopTree], progress: JobProgress) -> None:
        """Bring all rows into the buckets of these top trees."""
        self._tops, self._trees = tops, dict(tops)
        self._shared_tops = self._fleet.share(tops)
        self._runs, self._split_runs, self._split_jobs = {}, {i: {} for i in tops}, {}
        self._sizes = {i: np.zeros(top.n_buckets, dtype=np.int64) for i, top in tops.items()}
        self._owners = {i: np.arange(top.n_buckets) for i, top in tops.items()}
        self._next_owner = {i: top.n_buckets for i, top in tops.items()}
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
        gone = {
            name
            for runs in self._split_runs.values()
            for name, held in runs.items()
            if held.worker not in workers
        }
        return [self._split_jobs[name] for name in sorted(gone) if self._parents[name] not in gone]

    # As a `Splitter`.

    def sizes(self, top: int) -> npt.NDArray[np.int64]:
        return self._sizes[top]

    def trees(self, top: int, large: list[Large]) -> list[TopTree]:
        found: dict[str, TopTree] = {}

        def arguments(bucket: Large) -> tuple[Any, ...]:
            return self._shared, self._single(top, int(self._owners[top][bucket.bucket])), bucket

        jobs = [
            Job(f"split-tree-{i}", work.tree_of_bucket, partial(arguments, b)) for i, b in enumerate(large)
        ]
        self._run(jobs, lambda job, tree: found.update({job.name: tree}))
        return [found[job.name] for job in jobs]

    def split(self, top: int, trees: list[tuple[int, TopTree]]) -> None:
        """Each of these buckets becomes several, whose rows are in a run of their own on some worker."""
        splits, moved = [], 0
        for at, tree in trees:
            first = self._next_owner[top]
            self._next_owner[top] += tree.n_buckets
            owners = np.arange(first, first + tree.n_buckets)
            owner = int(self._owners[top][at - moved])
            splits.append(self._splitting(top, owner, tree, owners))
            moved += tree.n_buckets - 1
        sizes: dict[str, npt.NDArray[np.int64]] = {}
        self._run(splits, lambda job, result: sizes.update({job.name: result[1]}))
        for (at, _), job in zip(trees, splits, strict=True):
            owners = self._owners_of[job.name]
            for known, new in ((self._sizes, sizes[job.name]), (self._owners, owners)):
                known[top] = np.concatenate([known[top][:at], new, known[top][at + 1 :]])

    def _splitting(self, top: int, owner: int, tree: TopTree, owners: npt.NDArray[np.int64]) -> Job:
        job = Job(
            f"split-{top}-{owners[0]}",
            work.split_bucket,
            lambda: (self._shared, self._single(top, owner), tree, owners),
        )
        self._owners_of[job.name], self._split_jobs[job.name] = owners, job
        self._parents[job.name] = self._run_of(top, owner)
        return job

    def _run_of(self, top: int, owner: int) -> str | None:
        """The run with the rows of an owner that was made by splitting; None for the others."""
        named = (name for name in self._split_runs[top] if owner in self._owners_of[name])
        return next(named, None)

    def _run(
        self, jobs: list[Job], use: Callable[[Job, Any], None], progress: JobProgress | None = None
    ) -> None:
        """Run jobs that need the rows; what workers lose meanwhile is made again."""
        own = {job.name for job in jobs}

        def done(job: Job, result: Any, worker: str) -> None:
            if job.name.startswith("route-"):
                self._routed(job, result)
            elif job.name in self._split_jobs:
                self._split_runs[int(job.name.split("-")[1])][job.name] = result[0]
            if job.name in own:
                use(job, result)

        self._parts.run(jobs, done, self._restoring, progress)

    def set_tree(self, top: int, tree: TopTree) -> None:
        """The top tree with its large buckets split."""
        self._trees[top] = tree

    # Growth.

    def grow(self, range_bytes: int, grown: GrownTrees, store: Store, progress: JobProgress) -> None:
        """Grow all trees of all buckets that are not grown yet, some buckets at a time."""
        plan, trees = self._prepared.plan, self._prepared.trees_of_tops
        done = {top: grown.grown(top, tree.n_buckets, trees[top]) for top, tree in self._trees.items()}
        weights = self._balanced(range_bytes) if plan.balanced_subsample else None
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
            for part in self._ranges(top, range_bytes):
                if left := rows_left(top, *part):
                    name = f"grow-{top}-{part[0]}-{part[1]}"
                    jobs.append(Job(name, work.grow_range, partial(arguments, top, *part)))
                progress.skip(int(self._sizes[top][slice(*part)].sum()) * trees[top] - left)
        self._run(jobs, use, progress)

    def _balanced(self, range_bytes: int) -> list[list[float]]:
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
            for first, stop in self._ranges(top, range_bytes)
        ]
        self._run(jobs, use)
        counts = np.zeros((plan.n_estimators, plan.n_classes))
        for top, of_buckets in totals.items():
            first_tree = sum(trees_of_tops[:top])
            for bucket in np.argsort(-self._sizes[top], kind="stable").tolist():
                for tree, classes in enumerate(of_buckets[bucket]):
                    counts[first_tree + tree] += classes
        return balanced(counts)

    def _ranges(self, top: int, range_bytes: int) -> Iterator[tuple[int, int]]:
        rows = max(1, range_bytes // self._prepared.model.sizes.row)
        first, held = 0, 0
        for bucket, size in enumerate(self._sizes[top].tolist()):
            if held and held + size > rows:
                yield first, bucket
                first, held = bucket, 0
            held += size
        yield first, len(self._sizes[top])

    def _range(self, top: int, first: int, stop: int) -> BucketRange:
        owners = self._owners[top]
        return BucketRange(top, first, stop, owners, self._runs_with(top, owners[first:stop]))

    def _single(self, top: int, owner: int) -> BucketRange:
        """The bucket with this owner alone."""
        return BucketRange(top, 0, 1, np.array([owner]), self._runs_with(top, np.array([owner])))

    def _runs_with(self, top: int, owners: npt.NDArray[np.int64]) -> tuple[Held, ...]:
        """The runs that have rows of these owners, in the order of the rows."""
        runs: list[Held] = []
        if owners.min() < self._tops[top].n_buckets:
            runs += [self._runs[i] for i in range(len(self._parts))]
        split = self._split_runs[top]
        return *runs, *(split[name] for name in split if np.isin(owners, self._owners_of[name]).any())

    def drop(self) -> None:
        """Free the disks of the workers."""
        self._fleet.everywhere(work.drop_runs)
