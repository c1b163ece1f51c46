"""The report of a fit: what each stage did, and the resulting forest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..messages.notebook_html import html_table, in_html
from ..messages.text import counted, human_bytes
from ..system.memory import peak_memory, release_memory, resident_memory
from .progress import Machine, Observers, Progress, StageProgress

STAGE_HEADINGS = ("stage", "rows", "seconds", "share", "read", "written", "peak memory")
_QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
KEPT_BUCKETS = 100_000  # whose rows are kept one by one; for more, only quantiles


@dataclass(frozen=True)
class StageReport:
    """One stage: rows it handled, seconds it took, peak memory of the process meanwhile, bytes read (from the
    source and from disk) and written (to disk)."""

    name: str
    rows: int
    seconds: float
    peak_memory: int
    bytes_read: int = 0
    bytes_written: int = 0
    received: dict[str, int] = field(default_factory=dict)  # bytes of rows from other workers, by worker
    written: dict[str, int] = field(default_factory=dict)  # bytes to the disk of each worker

    def cells(self, all_seconds: float) -> tuple[str, ...]:
        """The row of the stage in a table; `all_seconds` are those of all stages."""
        moved = map(human_bytes, (self.bytes_read, self.bytes_written, self.peak_memory))
        return self.name, f"{self.rows:,}", f"{self.seconds:.2f}", f"{self.seconds / all_seconds:.1%}", *moved


@dataclass(repr=False)
class FitReport:
    """What `fit` did. Prints as a table; `as_dict()` gives plain values."""

    stages: list[StageReport] = field(default_factory=list)
    rows: int = 0
    features: int = 0
    record_bytes: int = 0
    top_trees: int = 0
    trees: int = 0
    buckets: int = 0
    bucket_size: int = 0
    top_sample: int = 0
    bucket_rows: dict[str, int] = field(default_factory=dict)
    rows_by_bucket: list[list[int]] = field(default_factory=list)  # for each top tree; empty if not kept
    buckets_split: int = 0  # because they came out too large
    nodes: int = 0
    depth: int = 0
    store: str = "memory"
    store_reason: str = ""
    rounds: int = 1  # in which top trees had their buckets on disk
    memory_limit: int = 0
    peak_memory: int = 0
    moved: int = 0  # bytes of rows between the workers of a cluster
    redone: int = 0  # jobs that were done again since a worker was lost

    @property
    def seconds(self) -> float:
        return sum(stage.seconds for stage in self.stages)

    def count_buckets(self, sizes: list[npt.NDArray[np.int64]]) -> None:
        """Record the rows of the buckets of each top tree."""
        self.buckets = sum(map(len, sizes))
        self.rows_by_bucket = [top.tolist() for top in sizes] if self.buckets <= KEPT_BUCKETS else []
        self.bucket_rows = quantiles_of_buckets(np.concatenate(sizes))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"seconds": self.seconds}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> FitReport:
        """The inverse of `as_dict()`; fields that another version has or lacks are ignored."""
        known = _known(cls, values)
        known["stages"] = [StageReport(**_known(StageReport, stage)) for stage in known.get("stages", [])]
        return cls(**known)

    def __str__(self) -> str:
        return "\n".join([*map(_aligned, [STAGE_HEADINGS, *self.stage_cells()]), *self._sentences()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The same as a table, for notebooks."""
        table = html_table(STAGE_HEADINGS, [[in_html(cell) for cell in row] for row in self.stage_cells()])
        return table + "".join(f"<div>{in_html(sentence)}</div>" for sentence in self._sentences())

    def stage_cells(self) -> list[tuple[str, ...]]:
        """The cells of a table of the stages, with the total as the last row."""
        read, written = (sum(s.bytes_read for s in self.stages), sum(s.bytes_written for s in self.stages))
        total = StageReport("total", self.rows, self.seconds, self.peak_memory, read, written)
        return [stage.cells(self.seconds or 1.0) for stage in (*self.stages, total)]

    def _sentences(self) -> list[str]:
        lines = []
        groups = f"on {counted(self.top_trees, 'top tree')}" if self.top_trees else "without top trees"
        trees, nodes = counted(self.trees, "tree"), counted(self.nodes, "node")
        lines.append(f"{trees} {groups}, {nodes}, depth {self.depth}")
        sizes = self.bucket_rows
        if self.buckets > 1 and {"0%", "50%", "100%"} <= sizes.keys():  # they may come from a file
            lines.append(
                f"{self.buckets:,} buckets of {sizes['0%']:,} to {sizes['100%']:,} rows, "
                f"median {sizes['50%']:,}"
            )
        if self.buckets_split:
            lines.append(f"{counted(self.buckets_split, 'bucket')} split again because they were too large")
        place = "in memory" if self.store == "memory" else "on disk"
        rounds = f", in {self.rounds} rounds" if self.rounds > 1 else ""
        moved = f", {human_bytes(self.moved)} moved between workers" if self.moved else ""
        moved += f", {counted(self.redone, 'job')} done again" if self.redone else ""
        lines.append(f"kept {place}{rounds}: {self.store_reason}{moved}")
        lines.append(
            f"peak memory of the process {human_bytes(self.peak_memory)}, "
            f"limit {human_bytes(self.memory_limit)}"
        )
        return lines


def merged_report(reports: list[FitReport]) -> FitReport:
    """The report of forests that become one: stages of the same name are added up, and so are trees and
    buckets; of sizes and peaks it has the largest."""
    merged = FitReport(store=reports[0].store, store_reason=f"merged from {counted(len(reports), 'forest')}")
    for name in dict.fromkeys(stage.name for report in reports for stage in report.stages):
        same = [stage for report in reports for stage in report.stages if stage.name == name]
        added = ("rows", "seconds", "bytes_read", "bytes_written")
        sums = {f: sum(getattr(stage, f) for stage in same) for f in added}
        merged.stages.append(StageReport(name, peak_memory=max(s.peak_memory for s in same), **sums))
    for name in ("top_trees", "trees", "buckets", "buckets_split", "nodes", "moved"):
        setattr(merged, name, sum(getattr(report, name) for report in reports))
    for name in (
        "rows", "features", "record_bytes", "bucket_size", "top_sample", "depth", "rounds", "memory_limit",
        "peak_memory",
    ):  # fmt: skip
        setattr(merged, name, max(getattr(report, name) for report in reports))
    if all(report.rows_by_bucket for report in reports):
        sizes = [np.array(top, dtype=np.int64) for report in reports for top in report.rows_by_bucket]
        merged.count_buckets(sizes)
    return merged


def _aligned(cells: tuple[str, ...]) -> str:
    """A line of the table."""
    widths = (12, 14, 10, 8, 10, 10, 13)
    sides = "<>>>>>>"
    return "".join(f"{cell:{side}{width}}" for cell, side, width in zip(cells, sides, widths, strict=True))


def quantiles_of_buckets(rows: npt.NDArray[np.int64]) -> dict[str, int]:
    """Quantiles of the rows per bucket; each is the number of rows of a bucket."""
    quantiles = np.quantile(rows, _QUANTILES, method="nearest")
    return {f"{q:.0%}": int(v) for q, v in zip(_QUANTILES, quantiles, strict=True)}


def _known(cls: type[FitReport | StageReport], values: dict[str, Any]) -> dict[str, Any]:
    """The values of known fields, which must have the right types."""
    known = {f.name: values[f.name] for f in fields(cls) if f.name in values}
    for f in fields(cls):
        value = known.get(f.name)
        if f.name in known and not _fits(value, str(f.type)):
            raise ValueError(f"{f.name} of the report is {value!r:.40}")
    return known


def _fits(value: Any, kind: str) -> bool:
    """Whether a value has the type of a field."""
    if kind == "int":
        return type(value) is int and abs(value) < 2**63
    if kind == "dict[str, int]":
        return type(value) is dict and all(type(k) is str and _fits(v, "int") for k, v in value.items())
    if kind == "list[list[int]]":
        return type(value) is list and all(type(top) is list for top in value)
    return type(value) is {"float": float, "str": str}.get(kind, list)


class DiskUse(Protocol):
    """What a workspace knows of its files."""

    bytes_read: int
    bytes_written: int

    def used(self) -> int:
        """Bytes of all files on disk now."""


class Recorder:
    """Times the stages, for the report and for the progress that is shown."""

    def __init__(self, observers: Observers, memory_limit: int) -> None:
        self.report = FitReport(memory_limit=memory_limit)
        self.disk: Callable[[], DiskUse | None] = lambda: None  # set once there is a workspace
        self._progress = Progress(observers, Machine(memory_limit, self._on_disk, self._moved))

    @contextmanager
    def stage(self, name: str, total: int | None, source_bytes: int | None = None) -> Iterator[StageProgress]:
        """A stage over `total` rows, which are `source_bytes` in the source."""
        started, highest = time.perf_counter(), peak_memory()
        read, written = self._moved()
        with self._progress.stage(name, total, source_bytes) as progress:
            yield progress
        seconds = time.perf_counter() - started
        self.report.peak_memory = max(self.report.peak_memory, peak_memory())
        # The peak of the process may be older than the stage: then the highest memory that was seen is used.
        peak = peak_memory() if peak_memory() > highest else max(progress.memory, resident_memory())
        read_now, written_now = self._moved()
        self.report.stages.append(
            StageReport(
                name,
                progress.done,
                seconds,
                peak,
                read_now - read + round((source_bytes or 0) * (1 - progress.skipped / max(1, progress.done))),
                written_now - written,
            )
        )
        release_memory()

    def say(self, sentence: str) -> None:
        self._progress.say(sentence)

    def _moved(self) -> tuple[int, int]:
        """Bytes read from and written to the workspace so far."""
        disk = self.disk()
        return (0, 0) if disk is None else (disk.bytes_read, disk.bytes_written)

    def _on_disk(self) -> int:
        disk = self.disk()
        return 0 if disk is None else disk.used()
