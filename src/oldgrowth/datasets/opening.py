"""open_dataset: detects the kind of a source and opens it. FORMATS lists the file formats."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..checks import refuse_masked
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

# For each file format: its file name extensions, its opener, and its options.
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
    """Open a dataset of any size, to be read in batches.

    Parameters
    ----------
    source : path, URL, list of paths, array, data frame or callable
        - Parquet (``.parquet``), Arrow IPC or Feather (``.arrow``, ``.feather``), CSV (``.csv``, ``.tsv``,
          ``.csv.gz``): a file, a directory, a glob or a list of files. Directories and globs are read sorted
          by path, lists in the order given. Directories named ``key=value`` are columns too.
        - ``.npy``, ``.npz`` and HDF5 (``.h5``) files; numpy arrays and memory maps of two dimensions.
        - pandas and polars data frames, polars LazyFrames, pyarrow tables, and any object with
          ``__arrow_c_stream__`` that can be read more than once.
        - A callable that returns a new iterator over the same batches each time it is called: ``X``,
          ``(X, y)`` or ``(X, y, weight)``.

        Paths may start with ``~``; URLs are read with fsspec (``pip install fsspec``).
    target : str, int, path or array, optional
        The column with the labels. For arrays and ``.npy`` files: a column number, an array, or the path of
        a ``.npy`` file. For ``.npz`` and HDF5 files: the name of a member; by default "y" if it exists.
        Not allowed for callables.
    features : list, or str for ``.npz`` and HDF5, optional
        Names of the feature columns, in this order; by default all columns but target and weight. For
        matrices (arrays, ``.npy``, ``.npz``, HDF5): a list of column numbers, or a list with a name for each
        column; a str is the name of the member that contains X, by default "X". In an HDF5 file without "X",
        or if ``features`` lists one-dimensional datasets, each of these datasets is a column.
    weight : str, int, path or array, optional
        The weights of the rows, specified like ``target``.
    **options
        ``format``: "parquet", "arrow", "csv", "npy", "npz" or "hdf5", for files whose names do not tell.
        For CSV: ``delimiter``; ``missing``, the strings that mark missing values; ``types``, Arrow types of
        columns by name, as in ``types={"label": "string"}``; ``header``, False for files without a header
        (columns are then named "0", "1", ...), or a list of column names for such files; ``decimal``, the
        decimal mark; ``encoding``, such as "latin-1" or "utf-16" (UTF-8 by default). Quoted values may
        contain line breaks. Compression by gzip, bzip2 and Zstandard is detected.
        For HDF5: ``external_files=True`` allows values in other files (external storage, virtual datasets),
        which can be any files on this machine.

    Returns
    -------
    Dataset
        Rows in a fixed order, which can be read any number of times.

    Examples
    --------
    >>> import numpy as np
    >>> from oldgrowth import open_dataset
    >>> data = open_dataset(np.arange(12).reshape(4, 3), target=2)
    >>> [(batch.x.shape, batch.y.tolist()) for batch in data.batches(3)]
    [((3, 2), [2, 5, 8]), ((1, 2), [11])]
    """
    for name, given in (("source", source), ("target", target), ("weight", weight)):
        refuse_masked(name, given)
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
            options_are = f"whose options are {', '.join(known)}" if known else "which has no options"
            raise ParameterError(name, value, f"omitted for this source, {options_are}")


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
        raise UnknownSourceError(repr(source), f"{first} and {second} have different formats")
    (name,) = formats
    _, opener, known = FORMATS[name]
    _check_options(options, known)
    opened: Dataset = opener(files, *columns, **options)
    return opened
