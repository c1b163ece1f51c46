"""Every error that a user can cause, each with a sentence that says what, where and which knob."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from .messages.surface import Say, difference, in_python, in_words_of, listed, on_command_line
from .messages.text import counted, printable


class OldgrowthError(ValueError):
    """The base of all errors raised for bad data or bad parameters.

    A message that tells its reader what to change is a function of how the surface in use spells it.
    """

    def __init__(self, message: str | Callable[[Say], str] = "") -> None:
        super().__init__(message if isinstance(message, str) else message(in_python))
        self.on_command_line = message if isinstance(message, str) else message(on_command_line)

    def __str__(self) -> str:
        return printable(super().__str__(), keep="\n")  # names from files may have control characters

    def replace(self, old: str, new: str) -> None:
        """Put it in other words, if what failed has another name for its reader."""
        self.args = tuple(arg.replace(old, new) if isinstance(arg, str) else arg for arg in self.args)
        self.on_command_line = self.on_command_line.replace(old, new)

    def __reduce__(self) -> tuple[Any, ...]:
        """The message alone: processes of joblib send errors to each other."""
        return _rebuilt, (type(self), self.args, vars(self))


def _rebuilt(cls: type[OldgrowthError], args: tuple[Any, ...], attributes: dict[str, Any]) -> OldgrowthError:
    error = cls.__new__(cls, *args)
    vars(error).update(attributes)
    return error


class ParameterError(OldgrowthError):
    """A parameter has a value that it cannot have."""

    def __init__(self, name: str, value: object, wanted: str | Callable[[Say], str]) -> None:
        def message(say: Say) -> str:
            known = in_words_of(say, wanted) if isinstance(wanted, str) else wanted(say)
            bare = name if say is in_python else say(name)
            return f"{say(name, value)} is not possible: {bare} must be {known}."

        super().__init__(message)


class UnknownParameterError(OldgrowthError, TypeError):
    """An estimator does not have a parameter of this name."""

    def __init__(self, estimator: str, name: str, way: str) -> None:
        super().__init__(f"{estimator} has no parameter {name}: {way}{'' if way.endswith('?') else '.'}")


class DataError(OldgrowthError):
    """The rows, targets or weights cannot be learned from."""


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


class TooManyRowsError(DataError):
    """More rows than can be held in memory by their 32-bit number."""

    def __init__(self, n_rows: int, limit: int) -> None:
        super().__init__(f"X has {n_rows} rows, but at most {limit} can be trained on in memory.")


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


class MissingExtraError(OldgrowthError):
    """Something needs a package that is not installed."""

    def __init__(self, requirement: str, source: str) -> None:
        package = requirement.replace(">=", " ") + " or newer"
        super().__init__(f"{source} needs {package}: install it with pip install '{requirement}'.")


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


class NoDataError(DataError):
    """There is no file, or no row, to read."""

    def __init__(self, source: object, what: str) -> None:
        super().__init__(f"{source} holds no data: {what}.")


class UnknownSourceError(DataError):
    """A source of a kind or format that cannot be read."""

    def __init__(self, source: object, what: str | Callable[[Say], str]) -> None:
        super().__init__(
            lambda say: (
                f"{source} cannot be opened as a dataset: {what if isinstance(what, str) else what(say)}."
            )
        )


class UnreadableFileError(DataError):
    """The system does not let us read a file."""

    def __init__(self, file: str, error: OSError) -> None:
        denied = isinstance(error, PermissionError)
        way = "ask its owner for permission to read it" if denied else "the disk or the system failed"
        super().__init__(f"{file} cannot be read ({error.strerror}): {way}.")


class DamagedFileError(DataError):
    """A file that is cut off, corrupted or not of its format."""

    def __init__(self, file: str, kind: str, reason: object) -> None:
        text = " ".join(str(reason).split()).rstrip(".")
        super().__init__(
            f"{file} cannot be read to its end as {kind}: {text}. The file is cut off, damaged "
            "or of another format: write it anew."
        )


class PythonObjectsError(DataError):
    """An array in a file that is made of Python objects, which are pickled."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} holds Python objects, which are not opened because they can run code: save it as an "
            "array of numbers, or of text for labels, as with array.astype(float) or array.astype(str)."
        )


class OtherFilesError(DataError):
    """An HDF5 file that keeps values in other files, which may be any file of the machine."""

    def __init__(self, where: str, other: str) -> None:
        super().__init__(
            lambda say: (
                f"{where} keeps its values in another file ({other}), which is read only if you allow it "
                f"with {say('external_files', True)}: a file can name any other file of this machine."
            )
        )


class MissingValuesError(DataError):
    """An HDF5 dataset with values that are nowhere, for which zeros would be read."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where} {what}: zeros would be read where values are missing.")


class BrokenLinkError(DataError):
    """A link of an HDF5 file that leads nowhere."""

    def __init__(self, where: str, target: str) -> None:
        super().__init__(
            lambda say: (
                f"{where} is a link to {target}: mend the link, or name the datasets to be used with "
                f"{say('features')}."
            )
        )


class ReadError(DataError):
    """A source that is no file failed while it was read."""

    def __init__(self, kind: str, row: int, reason: object) -> None:
        super().__init__(f"The {kind} failed after row {row}: {' '.join(str(reason).split()).rstrip('.')}.")


class BadValueError(DataError):
    """A text file holds something that is not a value of its column."""

    def __init__(self, file: str, line: int, column: str, what: str) -> None:
        super().__init__(
            lambda say: (
                f"{file}, line {line}, column {column}: {what}. Mend the line, name the text of missing "
                f"values with {say('missing')}, or give the type of the column with {say('types')}."
            )
        )
        self.line = line


class DecimalCommaError(DataError):
    """Numbers are written with a comma where a point was expected."""

    def __init__(self, file: str, line: int, column: str, value: str) -> None:
        super().__init__(
            lambda say: (
                f"{file}, line {line}, column {column}: {value!r} is no number with a decimal point. If its "
                f"comma is the decimal mark, give {say('decimal', ',')}."
            )
        )


class EncodingError(DataError):
    """A text file is not in the encoding that it is read in."""

    def __init__(self, where: str, what: str, encoding: str | None = None) -> None:
        likely = encoding or "latin-1"
        other = "" if encoding else ", or whichever it was written in"
        super().__init__(lambda say: f"{where} {what}: give {say('encoding', likely)}{other}.")


class HeaderError(DataError):
    """The first line of a text file is not a header as it is read."""

    def __init__(self, file: str, what: str, knob: str, value: Any) -> None:
        super().__init__(lambda say: f"The first line of {file} {what}, give {say(knob, value)}.")


class BrokenLineError(DataError):
    """A line of a text file has another number of values than its header, or than the lines before it."""

    def __init__(self, file: str, line: int, values: tuple[int, int], text: str, first: bool) -> None:
        wanted, got = values
        shown = text if len(text) <= 60 else f"{text[:60]} ..."
        begin = f"{file}, line {line}, has {counted(got, 'value')} instead of {wanted}: {shown!r}."

        def message(say: Say) -> str:
            if first and got > wanted:
                return (
                    f"{begin} Remove what stands above the names of the columns, or give what separates "
                    f"values with {say('delimiter')}."
                )
            return f"{begin} Mend the line, or the file is cut off here."

        super().__init__(message)


class UnclosedQuoteError(DataError):
    """A value in quotes goes on to the end of the file, or for longer than is read at a time."""

    def __init__(self, file: str, what: str) -> None:
        super().__init__(
            f"{file} {what}: a quote is not closed, or the file is cut off or has other line ends."
        )


_MOST_CORRECTED = 3  # names that are not there for which those that are there are searched
_MOST_COMPARED = 2_000  # names that one is compared with


def _nearest(text: str, names: Sequence[str]) -> list[str]:
    """Names like this one, among those of about its length; each comparison takes time."""
    likely = [name for name in names if abs(len(name) - len(text)) <= 2 + len(text) // 3]
    likely.sort(key=lambda name: name[:1] != text[:1])
    return get_close_matches(text, likely[:_MOST_COMPARED], n=3)


class MissingColumnError(DataError):
    """Columns were asked for that are not there."""

    def __init__(
        self, wanted: object | Sequence[object], where: str, columns: Iterable[object], what: str = "column"
    ) -> None:
        missing = list(wanted) if isinstance(wanted, list | tuple) else [wanted]
        found = list(columns)
        names = [name for name in found if isinstance(name, str)]
        texts = [str(name) for name in missing[:_MOST_CORRECTED]]
        words = [name for name in missing[:_MOST_CORRECTED] if isinstance(name, str) and not name.isdecimal()]
        close = [name for text in words for name in _nearest(text.strip(), names)]
        close += [name for name in names if name.strip() in texts and name not in close]
        near = " or ".join(repr(name) for name in dict.fromkeys(close))
        hint = f"Its {what}s are {listed(found)}."
        if close:
            hint = f"Did you mean {near}{difference(missing, close)}?"
        nouns = what if len(missing) == 1 else f"{what}s"
        super().__init__(f"{where} has no {nouns} {listed(missing)}. {hint}")


class NoMemberError(DataError):
    """A file of several arrays in which none is called X."""

    def __init__(self, file: str, what: str, members: Iterable[str]) -> None:
        names = list(members)
        likely = names[0] if names else "X"
        super().__init__(
            lambda say: (
                f"{file} has no {what} 'X' with the rows. Its {what}s are {listed(names)}: name the one that "
                f"has the rows, as in {say('features', likely)}."
            )
        )


class NamelessColumnsError(DataError):
    """Columns were asked for by name where there are no names."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(
            lambda say: (
                f"The columns of {where} have no names, so {what} is not possible: give the names of all "
                f"columns with {say('features')}."
            )
        )


class DuplicateColumnError(DataError):
    """Two columns of the same name, or one column in two roles."""

    def __init__(self, column: object, where: str, what: str = "occurs more than once") -> None:
        super().__init__(
            lambda say: (
                f"Column {column!r} of {where} {what}: rename it or leave it out with {say('features')}."
            )
        )


class SameRoleError(DataError):
    """One column as target and as weight, or as one of them and a feature."""

    def __init__(self, column: object, where: str, what: str) -> None:
        super().__init__(f"Column {column!r} of {where} {what}: a column can have one role only.")


class ColumnTypeError(DataError):
    """Columns whose type cannot be a feature, a target or a weight; `others` are more of the same role."""

    def __init__(
        self, column: object, where: str, found: object, role: str, others: Mapping[Any, object] | None = None
    ) -> None:
        columns = {column: found, **(others or {})}
        if len(columns) == 1:
            begin = f"Column {column!r} of {where} has the type {found} and cannot be a {role}"
        else:
            names = [f"{name!r} ({kind})" for name, kind in columns.items()]
            more = f" and {len(names) - 20:,} more" if len(names) > 20 else ""
            begin = f"{len(names)} columns of {where} cannot be {role}s: {', '.join(names[:20])}{more}"
        them = "it" if len(columns) == 1 else "them"

        def message(say: Say) -> str:
            wanted = {
                "feature": f"features must be numbers or bools: encode {them}, or choose others with "
                f"{say('features')}",
                "target": "a target must hold numbers, bools or strings, all of one kind",
                "weight": "weights must be numbers",
            }
            return f"{begin}{':' if len(columns) == 1 else '.'} {wanted[role]}."

        super().__init__(message)


class NotNumbersError(DataError, TypeError):
    """Columns of an array or a data frame that are not numbers; `columns` says what each holds."""

    def __init__(self, columns: Mapping[Any, str], reason: str = "") -> None:
        names = [f"{name!r} ({what})" for name, what in columns.items()]
        more = f" and {len(names) - 20:,} more" if len(names) > 20 else ""
        complex_numbers = any("complex" in what for what in columns.values())
        begin = "Complex data not supported. " if complex_numbers else ""
        why = f" ({reason})" if "argument must be" in reason else ""
        super().__init__(
            f"{begin}{'Columns' if len(names) > 1 else 'Column'} {', '.join(names[:20])}{more} of X "
            f"{'are' if len(names) > 1 else 'is'} not of numbers or bools: encode text as numbers, "
            f"and leave out the rest{why}."
        )


class DifferentFilesError(DataError):
    """Files of one dataset that do not have the same columns."""

    def __init__(self, file: str, column: str, what: str, first: str) -> None:
        super().__init__(
            f"The files of a dataset must have the same columns, but column {column!r} of {file} "
            f"{what} {first}."
        )


class ChangedSourceError(DataError):
    """A source is not what it was when it was opened or first read."""

    def __init__(self, where: str, what: str) -> None:
        source = f"The {where.removeprefix('the ')}" if where.startswith("the ") else where
        super().__init__(
            f"{source} changed since the dataset was opened: {what}. Do not write to it while "
            "it is used; open it anew."
        )


class MissingLabelError(DataError):
    """A row without a label, or with one that is no finite number."""

    def __init__(self, row: int, column: object, where: str, what: str = "is missing") -> None:
        super().__init__(
            f"The label in row {row}, column {column}, of {where} {what}: every row "
            "needs a label to learn from."
        )


class SameNumberError(DataError):
    """Two labels that differ as text and are the same number."""

    def __init__(self, column: str, label: str, other: str, row: int, where: str) -> None:
        same = "truth value" if other.strip().lower() in ("true", "false") else "number"
        super().__init__(
            lambda say: (
                f"The labels {label!r} and {other!r} of column {column!r} are the same {same} (row {row} of "
                f"{where}): to keep them apart have the column as text, in CSV with "
                f"{say('types', {column: 'string'})}."
            )
        )


class TooManyLabelsError(DataError):
    """A target with so many labels that they do not fit memory."""

    def __init__(self, column: str, labels: int, rows: int, taken: int, least: int) -> None:
        self.least = least
        megabytes = -(-least // 10**6)
        super().__init__(
            f"memory_limit is too low: the target {column!r} has {labels:,} different labels in its first "
            f"{rows:,} rows, which take {taken / 1e6:,.0f} MB. A column with another value in nearly every "
            "row is an id, not a class: choose another target. If all of these are classes, at least "
            f"{megabytes:,} MB are needed here (memory_limit='{megabytes}MB')."
        )


class WeightError(DataError):
    """A weight that is missing, negative or infinite."""

    def __init__(self, row: int, column: object, where: str, value: float) -> None:
        super().__init__(
            f"The weight in row {row}, column {column}, of {where} is {value}: weights must be "
            "finite and not negative."
        )


class BatchError(DataError):
    """A batch of a callable that does not fit the others."""

    def __init__(self, number: int, what: str) -> None:
        super().__init__(
            f"Batch {number} of the callable {what}: each batch must be X, (X, y) or "
            "(X, y, weight), all alike."
        )


class FailedBatchError(DataError):
    """The iterator of a callable raised an error."""

    def __init__(self, number: int, error: BaseException) -> None:
        super().__init__(f"The callable failed at batch {number}: {type(error).__name__}: {error}.")


class OnceOnlyError(DataError):
    """A source that can be read only once."""

    def __init__(self, source: str) -> None:
        super().__init__(
            f"{source} can be read only once, but training reads the data several times: give a file, or a "
            "callable that returns a fresh iterator of (X, y) batches each time."
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


class StoppedError(OldgrowthError):
    """The fit that a task belongs to has failed or was interrupted; its error is the one that is seen."""


class SceneError(OldgrowthError):
    """The scene of the demo could not be made."""

    def __init__(self, code: int, said: str) -> None:
        words = said.strip().splitlines() or ["it did not say why"]
        why = words[-1]
        if code < 0:
            why = f"its process was ended by signal {-code}, as a system short of memory does"
        super().__init__(f"The scene could not be made: {why.rstrip('.')}. A smaller --size needs less.")
