"""Errors of forests: their files, what is written, exports."""

from __future__ import annotations

import errno
from pathlib import Path

from .base import OldgrowthError


class ModelFileError(OldgrowthError):
    """A file that a forest cannot be read from."""


class UnreadableModelFileError(ModelFileError, OSError):
    """The system does not let us read a file; `errno` is the system's word for why."""

    def __init__(self, path: str | Path, error: OSError) -> None:
        super().__init__(f"{path} could not be read: {error.strerror}.")
        self.errno = error.errno


class MissingModelFileError(UnreadableModelFileError, FileNotFoundError):
    """There is no file of this name."""


class NotAModelFileError(ModelFileError):
    """The file is something else."""

    def __init__(self, path: str | Path, why: str = "it begins with other bytes") -> None:
        super().__init__(f"{path} is not a forest saved by oldgrowth: {why}.")


class NewerModelFileError(ModelFileError):
    """The file has a format that this version does not know."""

    def __init__(self, path: str | Path, version: int, known: int) -> None:
        super().__init__(
            f"{path} has format version {version}, but this oldgrowth reads versions up to {known}: "
            "a newer oldgrowth is needed."
        )


class TruncatedModelFileError(ModelFileError):
    """The file ends too early."""

    def __init__(self, path: str | Path, size: int, wanted: int) -> None:
        super().__init__(
            f"{path} is truncated: {size:,} of {wanted:,} bytes are there. Copy or save it again."
        )


class CorruptedModelFileError(ModelFileError):
    """The file does not hold what was written to it; `section` says where."""

    def __init__(self, path: str | Path, section: str, what: str) -> None:
        super().__init__(f"{path} is corrupted in its section {section}: {what}. Copy or save it again.")
        self.section = section


class DamagedForestError(OldgrowthError):
    """The temporary file of a forest that was fitted on disk is not what was written to it."""

    def __init__(self, directory: str | Path, what: str) -> None:
        super().__init__(
            f"The forest was fitted on disk, and its temporary file in {directory} is damaged: {what}. "
            "The disk or another program changed it: fit again."
        )


class OutputError(OldgrowthError, OSError):
    """Where a file is to be written, there is something that must not be replaced."""

    def __init__(self, path: str | Path, kind: str) -> None:
        super().__init__(
            f"{path} is {kind}, and only regular files are replaced. Choose the name of a file to write."
        )


class UnwritableFileError(OldgrowthError, OSError):
    """The system does not let us write a file; `errno` is the system's word for why."""

    def __init__(self, path: str | Path, error: OSError) -> None:
        missing = error.errno == errno.ENOENT
        why = f"the directory {Path(path).parent} does not exist" if missing else error.strerror
        super().__init__(f"{path} could not be written: {why}. A file that was there before is unchanged.")
        self.errno = error.errno


class UnsavableError(OldgrowthError):
    """A forest holds something that its file cannot."""


class ExportError(OldgrowthError):
    """A forest is beyond what another format can hold."""

    def __init__(self, target: str, what: str) -> None:
        super().__init__(f"The forest cannot be given to {target}: {what}.")


class NoBucketRowsError(OldgrowthError):
    """A forest of which it is not known how many rows each bucket had."""

    def __init__(self, n_buckets: int, kept: int) -> None:
        why = "it was saved by an older version: fit it again"
        if n_buckets > kept:
            why = f"it has {n_buckets:,} buckets; a larger bucket_size makes fewer"
        super().__init__(
            "The forest does not know the rows of each bucket, which are kept for up to "
            f"{kept:,} buckets: {why}. Quantiles are in fit_report_.bucket_rows."
        )
