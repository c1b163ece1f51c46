"""What a worker does in stage 4: grows the trees of a task and returns them. It stores nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .. import _core
from ..plan import Plan
from ..storage.bucket_store import Buckets
from ..storage.grown_trees import NO_SETS, BottomTree
from ..storage.leaf_buckets import LeafBucket, LeafMemory, RowPart, add_all
from ..storage.votes import Votes, vote_ranges
from .tasks import Grown, GrowthRules, Task


@dataclass(frozen=True)
class Site:
    """The resources where a task runs: the store of its bucket, memory for notes, and whether to stop."""

    store: Buckets
    leaf_memory: LeafMemory
    stop: _core.Stop


def grow_task(task: Task, rules: GrowthRules, site: Site, bucket: _core.Bucket | None = None) -> Grown:
    """Grow the trees of a task, with all their votes; on `bucket`, if it is already loaded."""
    _, grown = grow_in_parts(task, replace(rules, vote_bytes=2**62), site, bucket)
    return grown


def grow_in_parts(
    task: Task, rules: GrowthRules, site: Site, bucket: _core.Bucket | None = None
) -> Iterator[Grown]:
    """Grow the trees of a task. First an empty result, when the trees are grown; then votes, at most
    `rules.vote_bytes` at a time, each part when it is requested; the trees come with the last votes."""
    if task.leaf:
        yield from _grow_leaf(task, rules, site)
        return
    if bucket is None:
        bucket = site.store.load(task.top, task.bucket)
    tree_rules, bootstrap = _tree_rules(rules, site), _bootstrap(rules.plan)
    trees, drawn = [], []
    for tree in task.trees:
        number = task.first_tree + tree
        *found, seen = _core.grow_bottom(
            bucket,
            tree_rules,
            bootstrap,
            number,
            task.bucket,
            task.depth,
            rules.class_weights[number],
            rules.bootstrapped_votes,
        )
        trees.append(BottomTree(*found))
        drawn.append(seen)
    votes: Iterable[Votes] = ()
    if rules.plan.oob:
        votes = _votes(bucket, site.store.numbers(task.top, task.bucket), trees, drawn, rules.plan)
    yield from _parts(trees, votes, rules.vote_bytes)


def class_totals(task: Task, plan: Plan, site: Site) -> list[npt.NDArray[np.float64]]:
    """For each tree of a task, the weight that it draws of each class."""
    rules, bootstrap = plan.bottom_rules(), _bootstrap(plan)
    leaves = [_core.Leaf(rules, bootstrap, task.first_tree + tree, []) for tree in task.trees]
    with LeafBucket(site.store, task.top, task.bucket, task.rows, site.leaf_memory) as bucket:
        add_all(leaves, bucket)
    for leaf in leaves:
        leaf.finish()
    return [leaf.class_totals() for leaf in leaves]


def _parts(trees: list[BottomTree], votes: Iterable[Votes], most_bytes: int) -> Iterator[Grown]:
    """Results with at most `most_bytes` bytes of votes each, the trees in the last."""
    yield Grown()
    waiting: list[Votes] = []
    n_bytes = 0
    for some in votes:
        if waiting and n_bytes + some.nbytes > most_bytes:
            yield Grown(_taken_out(waiting))
            n_bytes = 0
        waiting.append(some)
        n_bytes += some.nbytes
    yield Grown(tuple(waiting), tuple(trees))


def _taken_out(votes: list[Votes]) -> tuple[Votes, ...]:
    """Empty a list and return its items: a suspended generator must not hold what it has yielded."""
    taken = tuple(votes)
    votes.clear()
    return taken


def _tree_rules(rules: GrowthRules, site: Site) -> _core.TreeRules:
    tree_rules = rules.plan.bottom_rules()
    tree_rules.stop_by(site.stop)
    return tree_rules


def _bootstrap(plan: Plan) -> _core.Bootstrap:
    return _core.Bootstrap(plan.bootstrap, plan.sample_mean, plan.seed)


def _votes(
    bucket: _core.Bucket,
    numbers: npt.NDArray[np.uint32 | np.uint64],
    trees: list[BottomTree],
    drawn: list[npt.NDArray[np.uint8]],
    plan: Plan,
) -> Iterator[Votes]:
    """The votes of trees on the rows of their bucket that they did not see."""
    targets = bucket.targets(plan.target_scale)
    for part in vote_ranges(bucket.rows, plan):
        votes = Votes.none(numbers[part], targets[part], plan)
        if plan.bootstrap:
            counter = votes.counter(plan)
            for tree, seen in zip(trees, drawn, strict=True):
                voter = _core.VotingTree(tree.nodes, tree.table, tree.sets, plan.levels)
                _core.add_oob_votes(bucket, seen, voter, part.start, counter)
        yield votes


def _grow_leaf(task: Task, rules: GrowthRules, site: Site) -> Iterator[Grown]:
    """Trees on a bucket that they cannot split."""
    plan, tree_rules, bootstrap = rules.plan, _tree_rules(rules, site), _bootstrap(rules.plan)
    with LeafBucket(site.store, task.top, task.bucket, task.rows, site.leaf_memory) as bucket:
        numbers = [task.first_tree + tree for tree in task.trees]
        leaves = [_core.Leaf(tree_rules, bootstrap, n, rules.class_weights[n]) for n in numbers]
        add_all(leaves, bucket)
        trees = [
            BottomTree(nodes, table, np.zeros(rules.n_features), task.depth, NO_SETS)
            for nodes, table in (leaf.finish() for leaf in leaves)
        ]
        votes = _votes_of_leaves(leaves, bucket, plan) if plan.oob else ()
        yield from _parts(trees, votes, rules.vote_bytes)


def _votes_of_leaves(leaves: list[_core.Leaf], bucket: LeafBucket, plan: Plan) -> Iterator[Votes]:
    first = 0
    for rows, copies in _recut(bucket, plan):
        assert rows.numbers is not None
        votes = Votes.none(rows.numbers, rows.targets, plan)
        counter = votes.counter(plan)
        for leaf in leaves:
            leaf.vote(rows.keys, copies, rows.targets, rows.weights, first, counter)
        yield votes
        first += len(copies)


def _recut(bucket: LeafBucket, plan: Plan) -> Iterator[tuple[RowPart, npt.NDArray[np.uint64]]]:
    """The parts of a bucket, cut into ranges that votes are added up for."""
    for part, copies in bucket.parts():
        for some in vote_ranges(len(copies), plan):
            weights = None if part.weights is None else part.weights[some]
            numbers = None if part.numbers is None else part.numbers[some]
            yield RowPart(part.keys[some], part.targets[some], weights, numbers), copies[some]
