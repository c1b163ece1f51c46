"""Errors of a fit: its limits, directories and checkpoints."""

from __future__ import annotations

from ..messages.surface import Say, in_python
from .base import DataError, OldgrowthError


class InfiniteValueError(DataError):
    """A value is infinite, or becomes so as float32."""

    def __init__(self, row: int, column: object, where: str = "") -> None:
        source = f" of {where}" if where else ""
        super().__init__(
            "Input X contains infinity or a value too large for dtype('float32'): "
            f"row {row}, column {column}{source}. Missing values are allowed as NaN; replace infinite ones."
        )


class ChangedDataError(DataError):
    """A second pass over the data found other rows than the first."""

    def __init__(self, first_row: int, last_row: int, where: str) -> None:
        super().__init__(
            f"The data changed while it was read: rows {first_row} to {last_row} of {where} hold a value in "
            "the second pass that was not there in the first. Do not write to the data during fit."
        )


class TooManyFeaturesError(DataError):
    """More features than a node can name."""

    def __init__(self, n_features: int, limit: int) -> None:
        super().__init__(f"X has {n_features} features, but at most {limit} fit the node format of a forest.")


class TooManyBucketsError(DataError):
    """More buckets than the row index of a top tree can name."""

    def __init__(self, n_buckets: int, limit: int) -> None:
        super().__init__(
            lambda say: (
                f"A top tree would have about {n_buckets} buckets, but at most {limit} are possible: "
                f"choose a larger {_name(say, 'bucket_size')}."
            )
        )


class SpillDirectoryError(OldgrowthError, OSError):
    """The directory for what does not fit memory cannot be used."""


class SpillFullError(SpillDirectoryError):
    """The disk is full."""

    def __init__(self, path: object, needed: int, used: int, free: int) -> None:
        super().__init__(
            f"The disk with {path} is full: {needed:,} more bytes were needed, {used:,} are used by this "
            f"fit, {free:,} are free. Free some, choose another spill_dir, or a lower spill_limit."
        )


class DirectoryInUseError(OldgrowthError):
    """Another process works in the checkpoint directory."""

    def __init__(self, path: object) -> None:
        super().__init__(
            f"checkpoint_dir={str(path)!r} is in use by another process: wait for it, or choose another "
            "directory."
        )


class DamagedBlockError(OldgrowthError):
    """What was read back from the spill directory is not what was written to it."""

    def __init__(self, path: object, offset: int, wrong: str) -> None:
        super().__init__(
            f"The block at byte {offset} of {path} is damaged: {wrong}. "
            "The disk or another program changed it; nothing was trained on it."
        )


class UnseenLabelError(DataError):
    """A label that the first pass did not meet."""

    def __init__(self, label: object, row: int, where: str) -> None:
        super().__init__(
            f"The data changed while it was read: row {row} of {where} has the label {label!r} in the second "
            "pass, which no row had in the first. Do not write to the data during fit."
        )


class CheckpointError(OldgrowthError):
    """The checkpoint directory belongs to another fit, or is damaged."""

    def __init__(self, path: object, what: str) -> None:
        super().__init__(
            f"checkpoint_dir={str(path)!r} cannot be continued: {what}. "
            "Use the same data and parameters, or an empty directory."
        )


class SharedCheckpointError(CheckpointError):
    """Other users can change what is in the checkpoint directory."""

    def __init__(self, path: object, shared: object, why: str) -> None:
        where = why if shared == path else f"of {shared}, {why}"
        OldgrowthError.__init__(
            self,
            f"checkpoint_dir={str(path)!r} cannot be used: {where}, and a fit would train on whatever they "
            "put there. Choose a directory of your own that nobody else can write to "
            f"(chmod go-w {shared}), or one that does not exist yet.",
        )


class DamagedCheckpointError(CheckpointError):
    """A file of a checkpoint does not hold what a fit wrote to it."""

    def __init__(self, path: object, what: str, directory: object) -> None:
        OldgrowthError.__init__(
            self,
            f"{path} is damaged: {what}. The disk or another program changed it; nothing was trained on it. "
            f"Remove {directory} and fit again: the fit then begins anew.",
        )


class MemoryLimitError(OldgrowthError):
    """The memory limit is too low for this data and these parameters."""

    def __init__(self, limit: int, least: int, way: str) -> None:
        self.least = least
        megabytes = -(-least // 10**6)
        super().__init__(
            f"memory_limit of {limit / 1e6:,.0f} MB is too low: at least {megabytes:,} MB are needed here "
            f"(memory_limit='{megabytes}MB').{' ' if way else ''}{way}"
        )


class DiskTooSmallError(SpillDirectoryError):
    """The buckets of one top tree, the trees and the votes do not fit the disk, or the spill limit."""

    def __init__(self, path: object, needed: int, free: int, limit: int, votes: int = 0) -> None:
        most = ""
        if 2 * votes > needed:
            most = (
                f" {votes / 1e9:,.3g} GB of them are for out-of-bag votes, one for each row, class and top "
                "tree: without oob_score, or with fewer classes or trees, less is needed."
            )
        super().__init__(
            f"About {needed / 1e9:,.3g} GB of disk are needed in {path}, {free / 1e9:,.3g} GB are free and "
            f"the spill_limit is {limit / 1e9:,.3g} GB: choose a spill_dir with more room, or a spill_limit "
            f"of at least {-(-needed // 10**6)}MB.{most}"
        )


class SpillLimitError(SpillDirectoryError):
    """A fit would write more than the spill limit allows."""

    def __init__(self, path: object, limit: int, used: int, wanted: int) -> None:
        least = -(-max(int(1.5 * limit), used + wanted) // 10**6)
        super().__init__(
            f"The spill_limit of {limit / 1e6:,.0f} MB is reached: {used / 1e6:,.1f} MB are in {path}, and "
            f"{wanted:,} more bytes were needed. Trees came out larger than expected: a spill_limit of "
            f"{least}MB may do; with a checkpoint_dir the fit then goes on where it was."
        )


class OutOfMemoryError(OldgrowthError, MemoryError):
    """The system gives the process no more memory."""

    def __init__(self, reason: str, resident: str, address_space: str | None) -> None:
        limit = f" and may address {address_space} (ulimit -v)" if address_space else ""
        super().__init__(
            lambda say: (
                f"The system gave no more memory ({reason or 'no reason given'}): the process has {resident}"
                f"{limit}. Raise its limits, or choose a lower {_name(say, 'memory_limit')} or fewer "
                f"{_name(say, 'n_jobs')}."
            )
        )


class ThreadLimitError(OldgrowthError, RuntimeError):
    """The system starts no more threads for the process."""

    def __init__(self, reason: str, running: int, address_space: str | None) -> None:
        limit = f", or its limit of {address_space} on addresses (ulimit -v)" if address_space else ""
        super().__init__(
            lambda say: (
                f"The system started no thread beside the {running} of the process: {reason}. Choose fewer "
                f"{_name(say, 'n_jobs')}, or raise the limit on processes and threads (ulimit -u){limit}."
            )
        )


def _name(say: Say, knob: str) -> str:
    """A knob without a value."""
    return knob if say is in_python else say(knob)
