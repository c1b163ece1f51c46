"""Checks of the arguments of `open_dataset` that do not depend on the format."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np

from ..checks import path_of
from ..errors import MissingColumnError, ParameterError, UnknownSourceError
from ..messages.surface import short
from .columns import AllBut

# Libraries whose tables are not supported, and how to convert them.
ELSEWHERE = {
    "dask": "write it with to_parquet('rows') and open that directory, or use compute() if it fits in memory",
    "pyspark": "write it with write.parquet('rows') and open that directory",
    "xarray": "use its to_dataframe(), or its values as a 2-D array",
    "scipy": "sparse data is not supported: use toarray() if it fits in memory",
    "torch": "use its numpy()",
    "tensorflow": "use its numpy()",
}


def checked_source(source: Any) -> Any:
    """Return the source with paths as text; refuse lists of anything but paths."""
    if isinstance(source, os.PathLike | str):
        return _text("source", source)
    if isinstance(source, list | tuple):
        if not all(isinstance(path, os.PathLike | str) for path in source):
            other = next(item for item in source if not isinstance(item, os.PathLike | str))
            raise UnknownSourceError(
                f"A {type(source).__name__} that contains a {type(other).__name__}",
                "a list must contain paths; convert numbers with numpy.array",
            )
        return [_text("source", path) for path in source]
    return source


def _text(name: str, path: Any) -> str:
    """A path as it was written: pathlib would change the separators of URLs."""
    path_of(name, path)
    return str(os.fspath(path))


def library_of(source: Any) -> str:
    return type(source).__module__.partition(".")[0].replace("dask_expr", "dask")


def unknown_kind(source: Any) -> UnknownSourceError:
    """The error for an object of an unsupported type."""
    kind, library = type(source), library_of(source)
    what = ELSEWHERE.get(
        library, "use a path, a list of paths, an array, a data frame, or a function that returns batches"
    )
    shown = kind.__name__ if library in ("builtins", "") else f"{library} {kind.__name__}"
    return UnknownSourceError(f"A source of type {shown}", what)


def checked_role(role: str, value: Any, frame: Any = None) -> Any:
    """Check target or weight: None, the name or number of a column, a path, or an array of values."""
    if value is None:
        return None
    if isinstance(value, np.integer) or (isinstance(value, int) and not isinstance(value, bool)):
        name = _own_name(frame, int(value))
        if frame is not None and not isinstance(name, str):
            raise MissingColumnError(name, "the pandas DataFrame", frame.columns)
        return name
    if isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        if not isinstance(text, str) or not text or "\0" in text:
            raise ParameterError(role, value, "the name of a column, as non-empty text")
        return Path(text) if isinstance(value, Path) else text
    if _is_hashable(value) and frame is not None:
        return _own_name(frame, value)
    if isinstance(value, Mapping | Set | bytes | bool | float | complex) or not hasattr(value, "__len__"):
        raise ParameterError(role, value, "the name or number of a column, or an array of values")
    return value


def checked_features(features: Any, frame: Any = None) -> Any:
    """Check features: None, the name of a member, or a list of names or numbers of columns."""
    if features is None or isinstance(features, AllBut):
        return features
    if isinstance(features, str):
        if not features:
            raise ParameterError("features", features, "the name of at least one column")
        return features
    if isinstance(features, Mapping | Set | bytes) or not isinstance(features, Iterable):
        raise ParameterError("features", features, "a list of column names or numbers")
    given = list(features)
    names = [_own_name(frame, name) if _is_hashable(name) else name for name in given]
    for name in names:
        if isinstance(name, bool | np.bool_) or not isinstance(name, str | int | np.integer):
            wanted = f"a list of column names or numbers, which {short(name)} in it is not"
            raise ParameterError("features", given, wanted)
    names = [int(name) if isinstance(name, np.integer) else name for name in names]
    missing = [name for name in names if frame is not None and not isinstance(name, str)]
    if missing:
        raise MissingColumnError(missing, "the pandas DataFrame", frame.columns)
    return names


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _own_name(frame: Any, name: Any) -> Any:
    """The text of a column name of a pandas frame that is not text itself."""
    if frame is None or isinstance(name, str) or name not in frame.columns:
        return name
    return str(name)


def pandas_frame(source: Any) -> Any:
    """The source if it is a pandas data frame, whose column names may be of any type; else None."""
    pandas = sys.modules.get("pandas")
    return source if pandas is not None and isinstance(source, pandas.DataFrame) else None
