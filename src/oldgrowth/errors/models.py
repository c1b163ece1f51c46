"""Errors about forests: model files, output files and exports."""

from __future__ import annotations

import errno
from pathlib import Path

from .base import OldgrowthError


class ModelFileError(OldgrowthError):
    """A forest cannot be read from a file."""


class UnreadableModelFileError(ModelFileError, OSError):
    """The operating system failed to read a model file; `errno` is its error number."""

    def __init__(self, path: str | Path, error: OSError) -> None:
        super().__init__(f"{path} could not be read: {error.strerror}.")
        self.errno = error.errno


class MissingModelFileError(UnreadableModelFileError, FileNotFoundError):
    """The model file does not exist."""


class NotAModelFileError(ModelFileError):
    """The file is not a model file."""

    def __init__(self, path: str | Path, why: str = "it does not start like a model file") -> None:
        super().__init__(f"{path} is not a forest saved by oldgrowth: {why}.")


class NewerModelFileError(ModelFileError):
    """The model file has a newer format than this version reads."""

    def __init__(self, path: str | Path, version: int, known: int) -> None:
        super().__init__(
            f"{path} has format version {version}, but this version of oldgrowth reads formats up to "
            f"{known}: upgrade oldgrowth."
        )


class TruncatedModelFileError(ModelFileError):
    """The model file ends too early."""

    def __init__(self, path: str | Path, size: int, wanted: int) -> None:
        super().__init__(f"{path} is truncated: it has {size:,} of {wanted:,} bytes. Copy or save it again.")


class CorruptedModelFileError(ModelFileError):
    """The model file differs from what was written; `section` names the part."""

    def __init__(self, path: str | Path, section: str, what: str) -> None:
        super().__init__(f"{path} is corrupted in section {section}: {what}. Copy or save it again.")
        self.section = section


class DamagedForestError(OldgrowthError):
    """The temporary file of a forest fitted on disk differs from what was written."""

    def __init__(self, directory: str | Path, what: str) -> None:
        super().__init__(
            f"The forest was fitted on disk, and its temporary file in {directory} is damaged: {what}. "
            "The disk or another program changed it; fit again."
        )


class OutputError(OldgrowthError, OSError):
    """The output path is something that must not be replaced, such as a device or a directory."""

    def __init__(self, path: str | Path, kind: str) -> None:
        super().__init__(
            f"{path} is {kind}, and only regular files are replaced. Choose another output file."
        )


class UnwritableFileError(OldgrowthError, OSError):
    """The operating system failed to write a file; `errno` is its error number."""

    def __init__(self, path: str | Path, error: OSError) -> None:
        missing = error.errno == errno.ENOENT
        parent = Path(path).resolve().parent if Path(path).is_symlink() else Path(path).parent
        why = f"the directory {parent} does not exist" if missing else error.strerror
        super().__init__(f"{path} could not be written: {why}. An existing file is unchanged.")
        self.errno = error.errno


class UnsavableError(OldgrowthError):
    """A forest contains a value that a model file cannot store."""


class ExportError(OldgrowthError):
    """A forest exceeds the limits of another library or format."""

    def __init__(self, target: str, what: str) -> None:
        super().__init__(f"The forest cannot be exported to {target}: {what}.")


class NoBucketRowsError(OldgrowthError):
    """The numbers of rows of the buckets were not stored with the forest."""

    def __init__(self, n_buckets: int, kept: int) -> None:
        why = "it was saved by an older version. Fit it again"
        if n_buckets > kept:
            why = (
                f"they are stored for at most {kept:,} buckets, and it has {n_buckets:,}. A larger "
                "bucket_size gives fewer"
            )
        super().__init__(
            f"The forest has no row counts of its buckets: {why}. Quantiles are in fit_report_.bucket_rows."
        )


class SharedModelError(ModelFileError):
    """A task cannot use the model file that it was made for."""

    def __init__(self, path: str | Path, what: str) -> None:
        super().__init__(
            f"{path}, the forest of this prediction, {what}. Save the forest where all workers can read it, "
            "keep the file until everything is computed, and give its path as forest."
        )


class WarmStartError(OldgrowthError):
    """Trees cannot be added to a fitted forest."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"No trees can be added to this forest: {why}. With warm_start=False it is fitted anew; forests "
            "that were fitted apart are joined by oldgrowth.merge."
        )


class MergeError(OldgrowthError):
    """Forests cannot become one; `why` says what stands against it."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The forests cannot be merged: {why}.")
        self.why = why


class NotKeptError(OldgrowthError, AttributeError):
    """An attribute of scikit-learn's forests that these do not keep."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"The forest has no {name}: {why}.")
