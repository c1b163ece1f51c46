"""Every error that a user can cause, each with a sentence that says what, where and which knob."""


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


class SpillDirectoryError(OldgrowthError, OSError):
    """The directory for what does not fit memory cannot be used."""


class SpillFullError(SpillDirectoryError):
    """The disk is full."""

    def __init__(self, path: object, needed: int, used: int, free: int) -> None:
        super().__init__(
            f"The disk with {path} is full: {needed:,} more bytes were needed, {used:,} are used by this fit, "
            f"{free:,} are free. Free some, choose another spill_dir, or a lower spill_limit."
        )


class DirectoryInUseError(OldgrowthError):
    """Another process works in the checkpoint directory."""

    def __init__(self, path: object) -> None:
        super().__init__(
            f"checkpoint_dir={str(path)!r} is in use by another process: wait for it, or choose another directory."
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

    def __init__(self, label: object, row: int) -> None:
        super().__init__(
            f"The data changed while it was read: row {row} has the label {label!r} in the second pass, which "
            "no row had in the first. Do not write to the data during fit."
        )


class CheckpointError(OldgrowthError):
    """The checkpoint directory belongs to another fit, or is damaged."""

    def __init__(self, path: object, what: str) -> None:
        super().__init__(
            f"checkpoint_dir={str(path)!r} cannot be continued: {what}. "
            "Use the same data and parameters, or an empty directory."
        )


class MemoryLimitError(OldgrowthError):
    """The memory limit is too low for this data and these parameters."""

    def __init__(self, limit: int, least: int) -> None:
        megabytes = -(-least // 10**6)
        super().__init__(
            f"memory_limit of {limit / 1e6:,.0f} MB is too low: at least {megabytes:,} MB are needed here "
            f"(memory_limit='{megabytes}MB'). A smaller bucket_size or top_sample needs less."
        )


class DiskTooSmallError(SpillDirectoryError):
    """The buckets of one top tree and the trees do not fit the disk, or the spill limit."""

    def __init__(self, path: object, needed: int, free: int, limit: int) -> None:
        super().__init__(
            f"About {needed / 1e9:,.3g} GB of disk are needed in {path}, {free / 1e9:,.3g} GB are free and the "
            f"spill_limit is {limit / 1e9:,.3g} GB: choose a spill_dir with more room, or a higher spill_limit."
        )
