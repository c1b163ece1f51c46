"""Errors about a fit: its data, limits, directories and checkpoints."""

from __future__ import annotations

from ..messages.surface import Say, name_in
from ..messages.text import human_bytes, size_setting
from .base import DataError, OldgrowthError


class InfiniteValueError(DataError):
    """A value is infinite, or too large for float32."""

    def __init__(self, row: int, column: object, where: str = "") -> None:
        source = f" of {where}" if where else ""
        super().__init__(
            "Input X contains infinity or a value too large for dtype('float32'): "
            f"row {row}, column {column}{source}. Replace infinite values; NaN marks missing values."
        )


class ChangedDataError(DataError):
    """A second pass over the data found other values than the first."""

    def __init__(self, first_row: int, last_row: int, where: str) -> None:
        super().__init__(
            f"The data changed during the fit: rows {first_row} to {last_row} of {where} contain a value in "
            "the second pass that the first pass did not find. Do not write to the data during a fit."
        )


class TooManyFeaturesError(DataError):
    """The data has more features than a node can address."""

    def __init__(self, n_features: int, limit: int) -> None:
        super().__init__(f"X has {n_features:,} features, but a forest supports at most {limit:,}.")


class TooManyBucketsError(DataError):
    """A top tree would have more buckets than can be numbered."""

    def __init__(self, n_buckets: int, limit: int) -> None:
        super().__init__(
            lambda say: (
                f"A top tree would have about {n_buckets:,} buckets, but at most {limit:,} are supported: "
                f"choose a larger {name_in(say, 'bucket_size')}."
            )
        )


class SpillDirectoryError(OldgrowthError, OSError):
    """The directory for data that does not fit in memory cannot be used."""


class SpillFullError(SpillDirectoryError):
    """The disk is full."""

    def __init__(self, path: object, needed: int, used: int, free: int) -> None:
        super().__init__(
            f"The disk with {path} is full: {human_bytes(needed)} more were needed, {human_bytes(used)} are "
            f"used by this fit, {human_bytes(free)} are free. Free some space, choose another spill_dir, or "
            "a lower spill_limit."
        )


class DirectoryInUseError(OldgrowthError):
    """Another process uses the checkpoint directory."""

    def __init__(self, path: object) -> None:
        super().__init__(
            f"checkpoint_dir={str(path)!r} is in use by another process: wait for it to finish, or choose "
            "another directory."
        )


class DamagedBlockError(OldgrowthError):
    """A block read from the spill directory differs from what was written."""

    def __init__(self, path: object, offset: int, wrong: str) -> None:
        super().__init__(
            f"The block at byte {offset} of {path} is damaged: {wrong}. "
            "The disk or another program changed it; nothing was trained on it."
        )


class UnseenLabelError(DataError):
    """A second pass over the data found a label that the first did not."""

    def __init__(self, label: object, row: int, where: str) -> None:
        super().__init__(
            f"The data changed during the fit: row {row} of {where} has the label {label!r} in the second "
            "pass, which the first pass did not find. Do not write to the data during a fit."
        )


class CheckpointError(OldgrowthError):
    """The checkpoint directory belongs to another fit, or is damaged."""

    def __init__(self, path: object, what: str) -> None:
        super().__init__(
            f"The fit in checkpoint_dir={str(path)!r} cannot be resumed: {what}. "
            "Use the same data and parameters, or an empty directory."
        )


class SharedCheckpointError(CheckpointError):
    """Other users can write to the checkpoint directory."""

    def __init__(self, path: object, shared: object, why: str) -> None:
        where = why if shared == path else f"{shared}: {why}"
        OldgrowthError.__init__(
            self,
            f"checkpoint_dir={str(path)!r} cannot be used: {where}, so a fit could train on files that they "
            "changed. Choose a directory that only you can write to "
            f"(chmod go-w {shared}), or one that does not exist yet.",
        )


class DamagedCheckpointError(CheckpointError):
    """A file of a checkpoint differs from what was written.

    `directory` is to be removed; without it, the next fit finds the damage and repeats what was lost.
    """

    def __init__(self, path: object, what: str, directory: object | None = None) -> None:
        way = "Fit again with the same checkpoint_dir: what was lost is done again, and the rest is kept."
        if directory is not None:
            way = f"Remove {directory} and fit again, from the beginning."
        OldgrowthError.__init__(
            self,
            f"{path} is damaged: {what}. The disk or another program changed it; nothing was trained on it. "
            f"{way}",
        )


class MemoryLimitError(OldgrowthError):
    """The memory limit is too low for this data and these parameters."""

    def __init__(self, limit: int, least: int, way: str) -> None:
        self.least = least
        super().__init__(
            f"memory_limit of {human_bytes(limit)} is too low: at least {human_bytes(least)} are needed "
            f"(memory_limit={size_setting(least)!r}).{' ' if way else ''}{way}"
        )


class DiskTooSmallError(SpillDirectoryError):
    """The disk or the spill limit is too small for the buckets of one top tree, the trees and the votes."""

    def __init__(self, path: object, needed: int, free: int, limit: int, votes: int = 0) -> None:
        most = ""
        if 2 * votes > needed:
            most = (
                f" Out-of-bag votes, one for each row, class and top tree, take {human_bytes(votes)} of it: "
                "without oob_score, or with fewer classes or trees, less is needed."
            )
        super().__init__(
            f"The fit needs about {human_bytes(needed)} of disk in {path}, where {human_bytes(free)} are "
            f"free and the spill_limit is {human_bytes(limit)}: choose a spill_dir with more free space, or "
            f"a spill_limit of at least {size_setting(needed)}.{most}"
        )


class SpillLimitError(SpillDirectoryError):
    """A fit would write more than the spill limit allows."""

    def __init__(self, path: object, limit: int, used: int, wanted: int) -> None:
        least = max(int(1.5 * limit), used + wanted)
        super().__init__(
            f"The spill_limit of {human_bytes(limit)} is reached: {human_bytes(used)} are in {path}, and "
            f"{human_bytes(wanted)} more were needed, because trees are larger than expected. A spill_limit "
            f"of {size_setting(least)} may be enough; with a checkpoint_dir the fit is then resumed."
        )


class OutOfMemoryError(OldgrowthError, MemoryError):
    """The operating system refused to allocate memory."""

    def __init__(self, reason: str, resident: str, address_space: str | None) -> None:
        used = f"Out of memory{f' ({reason})' if reason else ''}: the process uses {resident}"

        def say_it(say: Say) -> str:
            if address_space is None:
                jobs, memory = name_in(say, "n_jobs"), name_in(say, "memory_limit")
                return f"{used}. Raise its limits, or lower {memory} or {jobs}."
            return (
                f"{used} and may address {address_space} (ulimit -v). Raise this limit, or lower "
                f"{name_in(say, 'n_jobs')}."
            )

        super().__init__(say_it)


class ThreadLimitError(OldgrowthError, RuntimeError):
    """The operating system refused to start a thread."""

    def __init__(self, running: int, threads: str | None, address_space: str | None) -> None:
        limits = [
            *([f"{threads} processes and threads of the user (ulimit -u)"] if threads else []),
            *([f"{address_space} of addresses (ulimit -v)"] if address_space else []),
        ]
        allowed = f" Limits: {', '.join(limits)}." if limits else ""
        super().__init__(
            lambda say: (
                f"The system refused to start a thread in addition to the {running} of the process.{allowed} "
                f"Lower {name_in(say, 'n_jobs')}, or raise the limits of the process (ulimit -u, ulimit -v) "
                "or of its control group (pids.max)."
            )
        )
