"""Jobs are handed out, and handed out again when workers are lost."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from oldgrowth.cluster.fleet import Fleet, Job, WorkerLostError
from oldgrowth.errors import ClusterError, NoWorkersError, PeerLostError


class Simulated(Fleet):
    """Workers that do what `work` says, at once: it is given the worker and the job, and may raise."""

    def __init__(self, workers: list[str], work: Any) -> None:
        super().__init__(patience=0.1)
        self.alive, self._work = workers, work
        self.done: list[tuple[str, str]] = []

    def workers(self) -> list[str]:
        return [worker for worker in self.alive if worker not in self._excluded]

    def start(self, worker: str, job: Job) -> Future[Any]:
        future: Future[Any] = Future()
        self.done.append((worker, job.name))
        try:
            future.set_result(self._work(worker, job))
        except WorkerLostError as error:
            future.set_exception(error)
        return future

    def give_up(self, future: Future[Any]) -> None: ...

    def everywhere(self, function: Any, workers: Any = None) -> dict[str, Any]:
        return {}


def jobs(*names: str, prefers: str | None = None) -> list[Job]:
    return [Job(name, print, tuple, prefers) for name in names]


def test_jobs_go_to_the_workers_that_they_prefer() -> None:
    fleet = Simulated(["a", "b"], lambda worker, job: None)
    fleet.run([*jobs("1", "2"), *jobs("3", prefers="a")], lambda *_: None)
    assert ("a", "3") in fleet.done and len(fleet.done) == 3


def test_a_job_of_a_lost_worker_is_done_elsewhere() -> None:
    def work(worker: str, job: Job) -> str:
        if worker == "a":
            fleet.alive.remove("a")
            raise WorkerLostError(worker)
        return job.name.upper()

    fleet = Simulated(["a", "b"], work)
    found = []
    fleet.run(jobs("x", "y"), lambda job, result, worker: found.append((job.name, result, worker)))
    assert sorted(found) == [("x", "X", "b"), ("y", "Y", "b")]
    assert fleet.redone == 1 and fleet.lost == ["a"]


def test_what_is_lost_is_made_again_before_other_jobs() -> None:
    missing = ["rows-1", "rows-2"]
    fleet = Simulated(["a"], lambda worker, job: None)

    def done(job: Job, result: Any, worker: str) -> None:
        if job.name in missing:
            missing.remove(job.name)

    fleet.run(jobs("grow-1", "grow-2"), done, lambda workers: jobs(*missing))
    assert [name for _, name in fleet.done] == ["rows-1", "rows-2", "grow-1", "grow-2"]


def test_a_worker_that_does_not_answer_others_is_used_no_more() -> None:
    def work(worker: str, job: Job) -> Any:
        return PeerLostError("b", "no answer") if worker == "a" and "b" in fleet.workers() else None

    fleet = Simulated(["a", "b"], work)
    fleet.run(jobs("1", "2", "3"), lambda *_: None)
    assert fleet.workers() == ["a"]
    assert {name for _, name in fleet.done} == {"1", "2", "3"}


def test_a_job_that_ends_its_workers_is_not_tried_for_ever() -> None:
    def work(worker: str, job: Job) -> None:
        fleet.alive = [f"w{len(fleet.done)}"]
        raise WorkerLostError(worker)

    fleet = Simulated(["w0"], work)
    with pytest.raises(ClusterError, match=r"'grow-0' was lost with 3 workers \(w0, w1, w2\)"):
        fleet.run(jobs("grow-0"), lambda *_: None)


def test_a_fleet_without_workers_is_an_error_in_time() -> None:
    with pytest.raises(NoWorkersError, match="has had no worker for"):
        Simulated([], lambda *_: None).run(jobs("1"), lambda *_: None)


def test_values_are_sent_once_to_each_worker() -> None:
    fleet = Simulated(["a", "b"], lambda *_: None)
    one, other = fleet.share("plan"), fleet.share("trees")
    assert fleet.to_send("a", (one, 5)) == {0: "plan"}
    assert fleet.to_send("a", (one, other)) == {1: "trees"}
    assert fleet.to_send("b", (one, other)) == {0: "plan", 1: "trees"}
