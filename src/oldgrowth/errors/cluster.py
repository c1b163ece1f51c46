"""Errors about fits on a cluster."""

from __future__ import annotations

from ..messages.text import counted, human_bytes
from .base import OldgrowthError


class ClusterError(OldgrowthError):
    """The cluster cannot do the work."""


class SchedulerLostError(ClusterError):
    """The scheduler does not answer any more."""

    def __init__(self, error: Exception) -> None:
        super().__init__(
            f"The scheduler of the cluster does not answer: {error}. With a checkpoint_dir, what is done is "
            "kept: call fit again."
        )


class NoWorkersError(ClusterError):
    """There is no worker to do the work."""

    def __init__(self, seconds: float, lost: list[str]) -> None:
        left = f" {counted(len(lost), 'worker')} left it, the last one {lost[-1]}." if lost else ""
        super().__init__(f"The cluster has had no worker for {seconds:.0f} seconds.{left}")


class DifferentWorkerError(ClusterError):
    """A worker would grow another forest."""

    def __init__(self, worker: str, what: str) -> None:
        super().__init__(
            f"Worker {worker} would not grow the same forest: {what}. Install the same oldgrowth everywhere."
        )


class WorkerDiskError(ClusterError):
    """The disk of a worker is too small."""

    def __init__(self, worker: str, needed: int, free: int) -> None:
        super().__init__(
            f"The disk of worker {worker} is too small: {human_bytes(needed)} are needed for the rows of a "
            f"single top tree, {human_bytes(free)} may be used. Choose another spill_dir, a higher "
            "spill_limit, or add workers."
        )


class WorkerMemoryError(ClusterError):
    """A worker has too little memory."""

    def __init__(self, worker: str, least: int, limit: int) -> None:
        super().__init__(
            f"Worker {worker} has too little memory: at least {human_bytes(least)} are needed, "
            f"{human_bytes(limit)} may be used. Give workers more memory (a fit uses up to 65 % of it), or a "
            "higher memory_limit; a smaller bucket_size or top_sample needs less."
        )


class ClientDiskError(ClusterError):
    """The disk of the client is too small for what it stores."""

    def __init__(self, path: object, trees: int, votes: int, free: int) -> None:
        of_votes = f" and {human_bytes(votes)} for out-of-bag votes" if votes else ""
        knobs = "a checkpoint_dir or spill_dir with more room" + (", or no oob_score" if votes else "")
        super().__init__(
            f"The disk of the client is too small: about {human_bytes(trees)} are needed for trees{of_votes} "
            f"in {path}, where {human_bytes(free)} are free. Choose {knobs}."
        )


class FullWorkerError(ClusterError):
    """The disk of a worker is full, or cannot be used."""

    def __init__(self, worker: str, error: Exception) -> None:
        super().__init__(
            f"Worker {worker} could not write its rows: {error} With a checkpoint_dir, what is done is kept: "
            "call fit again."
        )


class UnusableWorkerError(ClusterError):
    """A worker cannot take part in a fit."""

    def __init__(self, worker: str, error: object) -> None:
        super().__init__(f"Worker {worker} cannot be used: {error}")


class SharedProcessError(ClusterError):
    """Several workers are in one process."""

    def __init__(self, other: str) -> None:
        super().__init__(
            f"worker {other} is in the same process. Each worker needs one of its own, as in "
            "LocalCluster(processes=True); a worker may have several threads."
        )


class UnsharedRowsError(ClusterError):
    """Workers cannot read the rows."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} cannot be read by the workers: open files that they can read, as in "
            "open_dataset('/shared/train/*.parquet', target='label')."
        )


class PeerLostError(ClusterError):
    """A worker did not answer another one: what it has is made again elsewhere."""

    def __init__(self, worker: str, why: str) -> None:
        super().__init__(f"Worker {worker} did not answer: {why}.")
        self.worker = worker


class FailedTaskError(ClusterError):
    """A task failed again and again, each time because a worker was lost."""

    def __init__(self, name: str, workers: list[str]) -> None:
        super().__init__(
            f"The task {name!r} was lost with {counted(len(workers), 'worker')} ({', '.join(workers)}): it "
            "may take more memory than they have. Give workers more memory, or lower memory_limit."
        )
