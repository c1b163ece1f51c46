"""Values of a fit can be sent elsewhere, and a forest does not depend on where its tasks run."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldgrowth
from helpers import make_data
from oldgrowth import _core
from oldgrowth.fitting import pipeline
from oldgrowth.fitting.distribute import Reached
from oldgrowth.fitting.grow_task import Site, grow_in_parts, grow_task
from oldgrowth.fitting.resplit import StoreSplitter, split_large_buckets
from oldgrowth.fitting.tasks import Grown, GrowthRules, Task, TopTasks
from oldgrowth.fitting.top_trees import Root
from oldgrowth.planning.execution import GrowingRoom
from oldgrowth.rows.training_rows import Trail
from oldgrowth.storage import votes
from oldgrowth.storage.grown_trees import TreesInMemory
from oldgrowth.storage.leaf_buckets import LeafMemory
from stages import in_memory, pool, prepared, small_data, small_plan, through_top_trees


def travelled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, also of arrays and of what the core holds."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Trail):
        return same(one.state(), other.state())
    if isinstance(one, _core.RowCodec | _core.Profile):
        return same(one.__getstate__(), other.__getstate__())
    if is_dataclass(one):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    return bool(one == other)


@cache
def values() -> dict[str, Any]:
    """Of a small fit, stage by stage."""
    data = small_data()
    plan = small_plan(data, oob_score=True)
    with pool() as threads, pytest.MonkeyPatch.context() as patch:
        patch.setattr(votes, "VOTES_BYTES", 2**10)
        sampled, tops = through_top_trees(data, plan, threads)
        store = in_memory(sampled, tops, plan, threads)
        tree, _ = split_large_buckets(StoreSplitter(store, plan, threads), 0, tops[0], plan)
        store.set_depths(0, tree.bucket_depths)
        site = Site(store, LeafMemory(2**20, lambda: pytest.fail("no file is needed")), threads.stop)
        tasks = TopTasks.of(store, 0, tree, plan.trees_of_tops(data.n_rows), TreesInMemory())
        task = next(tasks.tasks(store))
        rules = GrowthRules(plan, data.n_features, [[]] * plan.n_estimators, 2**10)
        ready = prepared(sampled, plan)
        return {
            "plan": plan,
            "execution plan": ready.execution,
            "sizes": ready.model.sizes,
            "memory model": ready.model,
            "data summary": sampled.summary,
            "codec": sampled.codec,
            "end of a pass": sampled.end,
            "trail of a pass": sampled.trail,
            "top tree": tree,
            "root": Root(1, 2, 3),
            "reached": Reached(sampled.end, (1, 2, 3)),
            "tasks of a top tree": tasks,
            "task": task,
            "rules": rules,
            "result": grow_task(task, rules, site),
            "result in parts": list(grow_in_parts(task, rules, site)),
            "result of a leaf": grow_task(replace(task, leaf=True), rules, site),
        }


NAMES = [
    "plan", "execution plan", "sizes", "memory model", "data summary", "codec", "end of a pass",
    "trail of a pass", "top tree", "root", "reached", "tasks of a top tree", "task", "rules", "result",
    "result in parts", "result of a leaf",
]  # fmt: skip


def test_all_values_are_looked_at() -> None:
    assert list(values()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_what_travels_is_the_same_on_arrival(name: str) -> None:
    value = values()[name]
    assert same(travelled(value), value)


@pytest.mark.parametrize("live", [threading.Lock, lambda: ThreadPoolExecutor(1), Path(__file__).open])
def test_what_is_live_does_not_travel(live: Callable[[], Any]) -> None:
    """Or the test above would not see a file, a lock or a pool within a value."""
    held = live()
    try:
        for name in ("plan", "task", "rules", "data summary", "top tree", "result"):
            value = values()[name]
            with pytest.raises(TypeError, match="cannot pickle"):
                travelled(replace(value, **{fields(value)[0].name: held}))
    finally:
        if hasattr(held, "close"):
            held.close()


def test_different_values_are_distinguished() -> None:
    assert not same(values()["task"], replace(values()["task"], rows=1))
    assert not same(values()["top tree"], replace(values()["top tree"], importances=np.ones(7)))


def test_the_parts_of_a_result_are_the_whole() -> None:
    whole: Grown = values()["result"]
    first, *parts = values()["result in parts"]
    assert first == Grown() and len(parts) > 2
    assert all(len(part.votes) == 1 and part.trees is None for part in parts[:-1])
    assert same(parts[-1].trees, whole.trees) and len(whole.trees or ()) == 4
    for name in ("numbers", "targets", "sums", "trees"):
        given = np.concatenate([getattr(some, name) for part in parts for some in part.votes])
        np.testing.assert_array_equal(given, np.concatenate([getattr(some, name) for some in whole.votes]))


class ElsewhereEngine:
    """Runs the tasks of growing as if they were elsewhere, the last first: they and their results travel."""

    def __init__(self, n_jobs: int) -> None:
        self.workers = n_jobs
        self.stop = _core.Stop()
        self.travels = self.most_handed_out = 0
        self._waiting: dict[Future[Any], Callable[[], Any]] = {}

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = _Lazy(self)
        self._waiting[future] = lambda: function(*map(self._sent, args), **kwargs)
        return future

    def wait(self, tasks: Iterable[Future[Any]]) -> set[Future[Any]]:
        tasks = list(tasks)
        self.most_handed_out = max(self.most_handed_out, len(tasks))
        last = [task for task in tasks if not task.done()][-1:]
        for task in last:
            self.run(task)
        return {task for task in tasks if task.done()}

    def cancel(self) -> None:
        self.stop.set()

    def run(self, task: Future[Any]) -> None:
        if task in self._waiting:
            task.set_result(self._sent(self._waiting.pop(task)()))

    def _sent(self, value: Any) -> Any:
        if isinstance(value, Task | GrowthRules | Grown):
            self.travels += 1
            return travelled(value)
        return value


class _Lazy(Future):  # type: ignore[type-arg]
    """Is run when its result is wanted."""

    def __init__(self, engine: ElsewhereEngine) -> None:
        super().__init__()
        self._engine = engine

    def result(self, timeout: float | None = None) -> Any:
        self._engine.run(self)
        return super().result(timeout)


def fits_elsewhere(monkeypatch: pytest.MonkeyPatch) -> list[ElsewhereEngine]:
    """The engines of the fits that follow."""
    engines = []

    @contextmanager
    def elsewhere(n_jobs: int) -> Iterator[ElsewhereEngine]:
        engines.append(ElsewhereEngine(n_jobs))
        yield engines[-1]

    monkeypatch.setattr(pipeline, "workers", elsewhere)
    return engines


@pytest.mark.filterwarnings("ignore:.*were seen by every tree")
@pytest.mark.parametrize("vote_bytes", [2**62, 2**10])
@pytest.mark.parametrize("store", ["memory", "disk"])
def test_a_forest_does_not_depend_on_the_engine(
    monkeypatch: pytest.MonkeyPatch, store: str, vote_bytes: int
) -> None:
    x, y = make_data(3000, 6, 3, 0)

    def fit() -> Any:
        return oldgrowth.RandomForestClassifier(
            6, bucket_size=300, oob_score=True, random_state=0, store=store, trees_per_top=3, n_jobs=2
        ).fit(x, y)

    expected = fit()
    engines = fits_elsewhere(monkeypatch)
    room = "oldgrowth.planning.execution.GrowingRoom.vote_bytes"
    monkeypatch.setattr(room, property(lambda self: vote_bytes))
    monkeypatch.setattr(votes, "VOTES_BYTES", 2**10)
    found = fit()
    assert found.forest_.digest() == expected.forest_.digest()
    np.testing.assert_array_equal(found.oob_decision_function_, expected.oob_decision_function_)
    assert engines[0].travels >= (3 if vote_bytes > 2**10 else 4) * found.fit_report_.buckets


@pytest.mark.parametrize(("room", "at_once"), [(0, 1), (2**40, 6)])
def test_tasks_are_handed_out_as_far_as_memory_allows(
    monkeypatch: pytest.MonkeyPatch, room: int, at_once: int
) -> None:
    """A task that is handed out and whose result is not stored yet may take memory."""
    engines = fits_elsewhere(monkeypatch)
    monkeypatch.setattr(GrowingRoom, "now", lambda model, in_memory: GrowingRoom(model, room, in_memory))
    x, y = make_data(3000, 6, 3, 0)
    oldgrowth.RandomForestClassifier(4, bucket_size=300, random_state=0, store="disk", n_jobs=3).fit(x, y)
    assert engines[0].most_handed_out == at_once


def test_a_task_returns_no_more_than_there_is_room_for() -> None:
    """Beside the largest bucket; what every limit has room for is one tree, and votes in parts."""
    data = small_data()
    plan = small_plan(data, oob_score=True)
    with pool() as threads:
        model = prepared(through_top_trees(data, plan, threads)[0], plan).model
    largest = model.of_bucket(model.largest_bucket)
    tight, wide = (GrowingRoom(model, largest + more, in_memory=False) for more in (0, 2**30))
    assert tight.most_trees(200, leaf=False) == 1 and tight.vote_bytes == votes.FEWEST_VOTE_BYTES
    assert wide.most_trees(200, leaf=False) > 100 and wide.vote_bytes > 2**25
    assert wide.of_result(200, 1000, leaf=False) > 1000 * model.of_bottom_tree(200)
    assert wide.of_result(200, 2, leaf=False) - wide.of_result(200, 1, leaf=False) < wide.result_bytes
