"""open_dataset: finds out what a source is and opens it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ParameterError, UnknownSourceError
from .base import Dataset
from .csv import EXTENSIONS as CSV
from .csv import CSVDataset
from .files import SourceFile, find_files
from .numpy_files import NPY, NPZ, open_array, open_npy, open_npz
from .parquet import EXTENSIONS as PARQUET
from .parquet import ParquetDataset

# Format, the endings of its files, how it is opened, and the options it takes.
FORMATS: dict[str, tuple[tuple[str, ...], Any, tuple[str, ...]]] = {
    "parquet": (PARQUET, ParquetDataset, ()),
    "csv": (CSV, CSVDataset, ("delimiter", "missing", "types")),
    "npy": (NPY, open_npy, ()),
    "npz": (NPZ, open_npz, ()),
}
MAGIC = ((b"PAR1", "parquet"), (b"\x93NUMPY", "npy"), (b"PK\x03\x04", "npz"))


def open_dataset(
    source: Any, target: Any = None, features: Sequence[Any] | None = None, weight: Any = None, **options: Any
) -> Dataset:
    """Open data of any size and kind, to be read in batches."""
    if isinstance(source, (str, Path)) or _is_list_of_paths(source):
        return _open_files(source, target, features, weight, options)
    _check_options(options, ())
    if isinstance(source, np.ndarray):
        return open_array(source, target, features, weight)
    raise UnknownSourceError(f"A source of type {type(source).__name__}", "it is not known how to read it")


def _is_list_of_paths(source: Any) -> bool:
    return isinstance(source, (list, tuple)) and all(isinstance(path, (str, Path)) for path in source)


def _check_options(options: dict[str, Any], known: tuple[str, ...]) -> None:
    for name, value in options.items():
        if name not in known:
            wanted = f"one of {', '.join(known)}" if known else "left out: this source takes no options"
            raise ParameterError(name, value, wanted)


def _open_files(source: Any, target: Any, features: Any, weight: Any, options: dict[str, Any]) -> Dataset:
    given = options.pop("format", None)
    if given is not None and given not in FORMATS:
        raise ParameterError("format", given, f"one of {', '.join(FORMATS)}")
    ends = [end for ends, _, _ in FORMATS.values() for end in ends]
    files = find_files(source, ends if given is None else [""])
    formats = {given: files[0]} if given is not None else {format_of(file): file for file in files}
    if len(formats) > 1:
        first, second, *_ = (file.path for file in formats.values())
        raise UnknownSourceError(repr(source), f"{first} and {second} are of different formats")
    (name,) = formats
    _, opener, known = FORMATS[name]
    _check_options(options, known)
    opened: Dataset = opener(files, target, features, weight, **options)
    return opened


def format_of(file: SourceFile) -> str:
    """The format of a file by the end of its name, else by its first bytes."""
    name = Path(file.path).name.lower()
    for kind, (ends, _, _) in FORMATS.items():
        if name.endswith(ends):
            return kind
    with file.open() as source:
        begin = source.read(8)
    for magic, kind in MAGIC:
        if begin.startswith(magic):
            return kind
    raise UnknownSourceError(
        file.path, f"its format is not known by its name; give format=, one of {', '.join(FORMATS)}"
    )
