"""The time, disk and network of a fit on many workers, on paper.

Rates are measured by benchmarks/cluster.py on this machine, or are those of typical hardware. The model adds
up what each stage reads, computes, writes and sends, and divides it among the workers; the client's part is
not divided.
"""

from __future__ import annotations

from dataclasses import dataclass

from oldgrowth.plan import auto_bucket_size, auto_top_sample


@dataclass(frozen=True)
class Rates:
    """Of one worker, unless said otherwise."""

    sample: float  # rows a second and thread in the first pass
    top: float  # sampled rows a second while a top tree is grown
    route: float  # rows a second, thread and top tree in the second pass
    grow: float  # rows a second, thread and tree
    network: float = 0.9e9  # bytes a second
    disk: float = 1.0e9  # bytes a second
    client: float = 0.5e9  # bytes of trees a second that the client stores, and writes to the model
    task: float = 0.003  # processor seconds of the client and the scheduler for a task
    turn: float = 0.011  # seconds of a worker between two tasks
    start: float = 1.0  # seconds of a fit between its stages


@dataclass(frozen=True)
class Fit:
    rows: int
    row_bytes: int  # on disk, for each top tree
    source_bytes: int  # of a row in the files
    trees: int
    top_trees: int
    nodes_per_row: float = 0.22  # and tree; fully grown on noisy imagery
    features: int = 81

    @property
    def bucket_size(self) -> int:
        return auto_bucket_size(self.rows, self.row_bytes)

    @property
    def top_sample(self) -> int:
        return auto_top_sample(self.rows, self.bucket_size)

    @property
    def model_bytes(self) -> float:
        return 8 * self.nodes_per_row * self.trees * self.rows

    @property
    def split_again(self) -> bool:
        """Whether the leaves of top trees with two sampled rows are larger than a bucket."""
        return 2 * self.rows > self.bucket_size * self.top_sample


@dataclass(frozen=True)
class Modelled:
    """Seconds by stage; bytes of disk for each worker, and of all messages between workers; tasks, and the
    seconds that the client and the scheduler have to do with them while workers work."""

    stages: dict[str, float]
    disk: float
    network: float
    tasks: int
    busy: float

    @property
    def seconds(self) -> float:
        return max(self.busy, sum(self.stages.values()))


# Bytes of rows in a task of growth, and how many tasks a worker has if that is fewer.
MOST_RANGE_BYTES, FEWEST_RANGE_BYTES, RANGES_PER_WORKER = 2**30, 64 * 2**20, 8
PARTS_PER_WORKER = 8


def modelled(fit: Fit, rates: Rates, workers: int, threads: int, cores: float = 2**31) -> Modelled:
    """`cores` is the number of all cores, if workers share them."""
    n, cores = fit.rows, min(cores, workers * threads)
    bucketed = fit.top_trees * fit.row_bytes * n
    sent = bucketed * (1 - 1 / workers)
    range_bytes = max(FEWEST_RANGE_BYTES, bucketed / (RANGES_PER_WORKER * workers))
    ranges = int(bucketed / min(MOST_RANGE_BYTES, range_bytes)) + 1
    tasks = 2 * PARTS_PER_WORKER * workers + fit.top_trees + ranges
    read = fit.source_bytes * n / (workers * rates.disk)
    written = bucketed / (workers * rates.disk)
    pulled = sent / (workers * rates.network)
    route = n * fit.top_trees / (cores * rates.route)
    at_once = min(workers, fit.top_trees, cores)
    sampled = fit.top_sample * fit.features * 4
    stages = {
        "sample": max(n / (cores * rates.sample), read),
        "top trees": fit.top_trees / at_once * (fit.top_sample / rates.top + sampled / rates.network),
        "distribute": max(route, read + written),
        "split": 0.0,
        "grow": n * fit.trees / (cores * rates.grow) + pulled,
        "assemble": 2 * fit.model_bytes / rates.client,
    }
    if fit.split_again:  # rows are pulled for the trees of buckets, and again to be split and written
        stages["split"] = 2 * pulled + max(route, 2 * written)
        sent, tasks = 3 * sent, tasks + 2 * ranges
    stages |= {"tasks": tasks / workers * rates.turn, "start": rates.start}
    return Modelled(stages, bucketed / workers, sent, tasks, tasks * rates.task)
