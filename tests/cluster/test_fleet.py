"""Jobs are handed out, and handed out again when workers are lost."""

from __future__ import annotations

import pickle
from concurrent.futures import Future
from typing import Any

import pytest

from oldgrowth.cluster.fleet import Fleet, Job, WorkerLostError
from oldgrowth.cluster.handing_out import run
from oldgrowth.cluster.values import Outcome
from oldgrowth.errors import ClusterError, NoWorkersError, PeerLostError, SpillFullError


class Simulated(Fleet):
    """Workers that do what `work` says, at once: it is given the worker and the job, and may raise."""

    def __init__(self, workers: list[str], work: Any) -> None:
        super().__init__(patience=0.1)
        self.alive, self._work = workers, work
        self._excluded: set[str] = set()
        self.done: list[tuple[str, str]] = []

    def workers(self) -> list[str]:
        return [worker for worker in self.alive if worker not in self._excluded]

    def start(self, worker: str, job: Job) -> Future[Any]:
        future: Future[Any] = Future()
        self.done.append((worker, job.name))
        try:
            future.set_result(Outcome(self._work(worker, job), received=1))
        except WorkerLostError as error:
            future.set_exception(error)
        return future

    def give_up(self, future: Future[Any]) -> None: ...

    def everywhere(self, function: Any) -> dict[str, Any]:
        return {}

    def exclude(self, worker: str, for_good: bool = False) -> None:
        self._excluded.add(worker)

    def joins(self, worker: str, *held: str) -> None:
        self.alive.append(worker)
        self._held |= dict.fromkeys(held, worker)


def jobs(*names: str, prefers: str | None = None) -> list[Job]:
    return [Job(name, print, tuple, lambda: prefers) for name in names]


def test_jobs_go_to_the_workers_that_they_prefer() -> None:
    fleet = Simulated(["a", "b"], lambda worker, job: None)
    run(fleet, [*jobs("1", "2"), *jobs("3", prefers="a")], lambda *_: None)
    assert ("a", "3") in fleet.done and len(fleet.done) == 3


def test_a_job_of_a_lost_worker_is_done_elsewhere() -> None:
    def work(worker: str, job: Job) -> str:
        if worker == "a":
            fleet.alive.remove("a")
            raise WorkerLostError(worker)
        return job.name.upper()

    fleet = Simulated(["a", "b"], work)
    found = []
    run(fleet, jobs("x", "y"), lambda job, result, worker: found.append((job.name, result, worker)))
    assert sorted(found) == [("x", "X", "b"), ("y", "Y", "b")]
    assert fleet.redone == ["x"] and fleet.lost == ["a"]
    assert fleet.counted.received == {"b": 2}


def test_what_is_lost_is_made_again_before_other_jobs() -> None:
    missing = ["rows-1", "rows-2"]
    fleet = Simulated(["a"], lambda worker, job: None)

    def done(job: Job, result: Any, worker: str) -> None:
        if job.name in missing:
            missing.remove(job.name)

    run(fleet, jobs("grow-1", "grow-2"), done, lambda workers: jobs(*missing))
    assert [name for _, name in fleet.done] == ["rows-1", "rows-2", "grow-1", "grow-2"]


def test_what_a_worker_has_is_not_made_by_others() -> None:
    """Nor is it made again by others when its worker comes back in time."""
    missing = ["rows-1", "rows-2"]
    fleet = Simulated(["a"], lambda worker, job: None)
    fleet.patience = 60.0

    def done(job: Job, result: Any, worker: str) -> None:
        if job.name in missing:
            missing.remove(job.name)

    def restore(workers: set[str]) -> list[Job]:
        if "b" not in workers:
            fleet.joins("b", "rows-1", "rows-2")
        return jobs(*missing)

    run(fleet, jobs("grow"), done, restore)
    assert fleet.done[:2] == [("b", "rows-1"), ("b", "rows-2")] and fleet.redone == []


def test_a_worker_that_does_not_answer_others_is_used_no_more() -> None:
    def work(worker: str, job: Job) -> Any:
        return PeerLostError("b", "no answer") if worker == "a" and "b" in fleet.workers() else None

    fleet = Simulated(["a", "b"], work)
    run(fleet, jobs("1", "2", "3"), lambda *_: None)
    assert fleet.workers() == ["a"]
    assert {name for _, name in fleet.done} == {"1", "2", "3"}


def test_a_job_that_ends_its_workers_is_not_tried_for_ever() -> None:
    def work(worker: str, job: Job) -> None:
        fleet.alive = [f"w{len(fleet.done)}"]
        raise WorkerLostError(worker)

    fleet = Simulated(["w0"], work)
    with pytest.raises(ClusterError, match=r"'grow-0' was lost with 3 workers \(w0, w1, w2\)"):
        run(fleet, jobs("grow-0"), lambda *_: None)


def test_a_fleet_without_workers_is_an_error_in_time() -> None:
    with pytest.raises(NoWorkersError, match="has had no worker for"):
        run(Simulated([], lambda *_: None), jobs("1"), lambda *_: None)


def test_errors_of_workers_arrive_as_they_are() -> None:
    error = SpillFullError("/scratch", 1, 2, 3)  # an OSError, too
    sent = pickle.loads(pickle.dumps(error))
    assert type(sent) is SpillFullError and str(sent) == str(error)


def test_values_are_sent_once_to_each_worker() -> None:
    fleet = Simulated(["a", "b"], lambda *_: None)
    one, other = fleet.share("plan"), fleet.share("trees")
    assert fleet.to_send("a", (one, 5)) == {0: "plan"}
    assert fleet.to_send("a", (one, other)) == {1: "trees"}
    assert fleet.to_send("b", (one, other)) == {0: "plan", 1: "trees"}
