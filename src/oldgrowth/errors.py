"""Every error that a user can cause, each with a sentence that says what, where and which knob."""

from __future__ import annotations

from pathlib import Path


class OldgrowthError(ValueError):
    """The base of all errors raised for bad data or bad parameters."""


class ParameterError(OldgrowthError):
    """A parameter has a value that it cannot have."""

    def __init__(self, name: str, value: object, wanted: str) -> None:
        super().__init__(f"{name}={value!r} is not possible: {name} must be {wanted}.")


class DataError(OldgrowthError):
    """The rows, targets or weights cannot be learned from."""


class InfiniteValueError(DataError):
    """A value is infinite, or becomes so as float32."""

    def __init__(self, row: int, column: object) -> None:
        super().__init__(
            "Input X contains infinity or a value too large for dtype('float32'): "
            f"row {row}, column {column}. Missing values are allowed as NaN; replace infinite ones."
        )


class ChangedDataError(DataError):
    """A second pass over the data found other rows than the first."""

    def __init__(self, first_row: int, last_row: int) -> None:
        super().__init__(
            f"The data changed while it was read: rows {first_row} to {last_row} hold a value in the second "
            "pass that was not there in the first. Do not write to the data during fit."
        )


class TooManyFeaturesError(DataError):
    """More features than a node can name."""

    def __init__(self, n_features: int, limit: int) -> None:
        super().__init__(f"X has {n_features} features, but at most {limit} fit the node format of a forest.")


class TooManyBucketsError(DataError):
    """More buckets than the row index of a top tree can name."""

    def __init__(self, n_buckets: int, limit: int) -> None:
        super().__init__(
            f"A top tree would have about {n_buckets} buckets, but at most {limit} are possible: "
            "choose a larger bucket_size."
        )


class TooManyRowsError(DataError):
    """More rows than can be held in memory by their 32-bit number."""

    def __init__(self, n_rows: int, limit: int) -> None:
        super().__init__(f"X has {n_rows} rows, but at most {limit} can be trained on in memory.")


class ModelFileError(OldgrowthError):
    """A file that a forest cannot be read from."""


class NotAModelFileError(ModelFileError):
    """The file is something else."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(f"{path} is not a forest saved by oldgrowth: it begins with other bytes.")


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


class UnsavableError(OldgrowthError):
    """A forest holds something that its file cannot."""
