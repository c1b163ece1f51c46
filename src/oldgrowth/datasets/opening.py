"""open_dataset: finds out what a source is and opens it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import OnceOnlyError, ParameterError, UnknownSourceError
from .arguments import checked_features, checked_role, checked_source, pandas_frame, unknown_kind
from .base import Dataset
from .callables import CallableDataset
from .csv import EXTENSIONS as CSV
from .csv import CSVDataset
from .csv_options import NAMES as CSV_OPTIONS
from .files import find_files
from .frames import ArrowTableDataset, PandasDataset, PolarsDataset
from .hdf5 import EXTENSIONS as HDF5
from .hdf5 import open_hdf5
from .ipc import EXTENSIONS as IPC
from .ipc import IPCDataset
from .numpy_files import NPY, NPZ, open_array, open_npy, open_npz
from .parquet import EXTENSIONS as PARQUET
from .parquet import ParquetDataset
from .sniffing import format_of
from .streams import ArrowStreamDataset, LazyFrameDataset

# Format, the endings of its files, how it is opened, and the options it takes.
FORMATS: dict[str, tuple[tuple[str, ...], Any, tuple[str, ...]]] = {
    "parquet": (PARQUET, ParquetDataset, ()),
    "arrow": (IPC, IPCDataset, ()),
    "csv": (CSV, CSVDataset, CSV_OPTIONS),
    "npy": (NPY, open_npy, ()),
    "npz": (NPZ, open_npz, ()),
    "hdf5": (HDF5, open_hdf5, ("external_files",)),
}


def open_dataset(
    source: Any, target: Any = None, features: Sequence[Any] | None = None, weight: Any = None, **options: Any
) -> Dataset:
    """Open data of any size and kind, to be read in batches.

    Parameters
    ----------
    source : path, URL, list of paths, array, data frame or callable
        - Parquet (``.parquet``), Arrow IPC or Feather (``.arrow``, ``.feather``), CSV (``.csv``, ``.tsv``,
          ``.csv.gz``): a file, a directory, a glob or a list of files. Directories and globs are read sorted
          by path, lists in the order given. Directories named ``key=value`` are columns too.
        - ``.npy``, ``.npz`` and HDF5 (``.h5``) files; numpy arrays and memory maps of two dimensions.
        - pandas and polars data frames, polars LazyFrames, pyarrow tables, and any object with
          ``__arrow_c_stream__`` that can be read more than once.
        - A callable that returns, each time it is called, a fresh iterator over the same batches: ``X``,
          ``(X, y)`` or ``(X, y, weight)``.

        Paths may begin with ``~``; URLs are read by fsspec (``pip install fsspec``).
    target : str, int, path or array, optional
        The column with the labels. For arrays and ``.npy``: a column number, an array, or the path of a
        ``.npy`` file. For ``.npz`` and HDF5: the name of a member, by default "y" if there is one.
        For callables: none.
    features : list, or str for ``.npz`` and HDF5, optional
        Names of the columns to learn from, in this order; all but target and weight by default. For matrices
        (arrays, ``.npy``, ``.npz``, HDF5): a list of column numbers, or a list with a name for each column;
        a str is the member that holds X, by default "X". An HDF5 file without "X", or of which features names
        one-dimensional datasets, has a column in each of these.
    weight : str, int, path or array, optional
        The weights of the rows, given like target.
    **options
        ``format``: of files whose names do not tell: "parquet", "arrow", "csv", "npy", "npz" or "hdf5".
        For CSV: ``delimiter``; ``missing``, the texts that mean a missing value; ``types``, Arrow types of
        columns by name, as in ``types={"label": "string"}``; ``header``, False for files that begin with a
        row (columns are then called "0", "1", ...), or a list of names for their columns; ``decimal``, the
        decimal mark; ``encoding``, as "latin-1" or "utf-16" (UTF-8 by default). Values in quotes may hold
        line ends. Compression by gzip, bzip2 and Zstandard is seen by itself.
        For HDF5: ``external_files=True`` allows a file to have values in other files (external storage,
        virtual datasets), which can be any files of this machine.

    Returns
    -------
    Dataset
        Rows in a fixed order, which can be read as often as wanted.

    Examples
    --------
    >>> import numpy as np
    >>> from oldgrowth import open_dataset
    >>> data = open_dataset(np.arange(12).reshape(4, 3), target=2)
    >>> [(batch.x.shape, batch.y.tolist()) for batch in data.batches(3)]
    [((3, 2), [2, 5, 8]), ((1, 2), [11])]
    """
    frame = pandas_frame(source)
    source = checked_source(source)
    columns = (
        checked_role("target", target, frame),
        checked_features(features, frame),
        checked_role("weight", weight, frame),
    )
    if isinstance(source, str | list):
        return _open_files(source, columns, options)
    _check_options(options, ())
    opener = _opener(source)
    opened: Dataset = opener(source, *columns)
    return opened


def _opener(source: Any) -> Any:
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if isinstance(source, np.ndarray):
        return open_array
    if pandas is not None and isinstance(source, pandas.DataFrame):
        return PandasDataset
    if polars is not None and isinstance(source, polars.DataFrame):
        return PolarsDataset
    if polars is not None and isinstance(source, polars.LazyFrame):
        return LazyFrameDataset
    if isinstance(source, pa.Table):
        return ArrowTableDataset
    if hasattr(source, "__arrow_c_stream__"):
        return ArrowStreamDataset
    if hasattr(source, "__next__"):
        raise OnceOnlyError(f"An iterator ({type(source).__name__})")
    if callable(source) and not isinstance(source, type):
        return CallableDataset
    raise unknown_kind(source)


def _check_options(options: dict[str, Any], known: tuple[str, ...]) -> None:
    for name, value in options.items():
        if name not in known:
            wanted = f"one of {', '.join(known)}" if known else "left out: this source takes no options"
            raise ParameterError(name, value, wanted)


def _open_files(source: str | list[str], columns: tuple[Any, Any, Any], options: dict[str, Any]) -> Dataset:
    given = options.pop("format", None)
    if given is not None and not (isinstance(given, str) and given in FORMATS):
        raise ParameterError("format", given, f"one of {', '.join(FORMATS)}")
    ends = [end for ends, _, _ in FORMATS.values() for end in ends]
    files = find_files(source, ends if given is None else [""])
    endings = {name: ends for name, (ends, _, _) in FORMATS.items()}
    formats = {given: files[0]} if given is not None else {format_of(file, endings): file for file in files}
    if len(formats) > 1:
        first, second, *_ = (file.path for file in formats.values())
        raise UnknownSourceError(repr(source), f"{first} and {second} are of different formats")
    (name,) = formats
    _, opener, known = FORMATS[name]
    _check_options(options, known)
    opened: Dataset = opener(files, *columns, **options)
    return opened
