"""The time, disk and network of a fit on many workers, on paper.

Rates are measured by benchmarks/cluster.py on this machine, or are those of typical hardware. The model adds
up what each stage reads, computes, writes and sends, and divides it among the workers; the client's part is
not divided.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rates:
    """Of one worker."""

    sample: float  # rows a second and thread in the first pass
    route: float  # rows a second, thread and top tree in the second pass
    grow: float  # rows a second, thread and tree
    network: float = 0.9e9  # bytes a second
    disk: float = 1.0e9  # bytes a second
    client: float = 0.5e9  # bytes of trees a second that the client stores, and writes to the model
    task: float = 0.0055  # seconds of the client and the scheduler for a task


@dataclass(frozen=True)
class Fit:
    rows: int
    row_bytes: int  # on disk, for each top tree
    source_bytes: int  # of a row in the files
    trees: int
    top_trees: int
    nodes_per_row: float = 0.22  # and tree; fully grown on noisy imagery


@dataclass(frozen=True)
class Modelled:
    """Seconds by stage; bytes of disk for each worker, and of all messages between workers; tasks."""

    stages: dict[str, float]
    disk: float
    network: float
    tasks: int

    @property
    def seconds(self) -> float:
        return sum(self.stages.values())


# Bytes of rows in a task of growth, and how many tasks a worker has if that is fewer.
MOST_RANGE_BYTES, FEWEST_RANGE_BYTES, RANGES_PER_WORKER = 2**30, 64 * 2**20, 8
PARTS_PER_WORKER = 8


def modelled(fit: Fit, rates: Rates, workers: int, threads: int, cores: int = 2**31) -> Modelled:
    """`cores` is the number of all cores, if workers share them."""
    n, cores = fit.rows, min(cores, workers * threads)
    bucketed = fit.top_trees * fit.row_bytes * n
    sent = bucketed * (1 - 1 / workers)
    range_bytes = max(FEWEST_RANGE_BYTES, bucketed / (RANGES_PER_WORKER * workers))
    ranges = int(bucketed / min(MOST_RANGE_BYTES, range_bytes)) + 1
    tasks = 2 * PARTS_PER_WORKER * workers + fit.top_trees + ranges
    model_bytes = 8 * fit.nodes_per_row * fit.trees * n
    read = fit.source_bytes * n / (workers * rates.disk)
    written = bucketed / (workers * rates.disk)
    stages = {
        "sample": max(n / (cores * rates.sample), read),
        "distribute": max(n * fit.top_trees / (cores * rates.route), read + written),
        "grow": n * fit.trees / (cores * rates.grow) + sent / (workers * rates.network),
        "assemble": 2 * model_bytes / rates.client,
        "tasks": tasks * rates.task,
    }
    return Modelled(stages, bucketed / workers, sent, tasks)
