"""How dates and times become numbers: the line that does it, for the library in which they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

# Arrow's, pandas', NumPy's and polars' names of types.
_TIMES = re.compile(r"(date|timestamp)", re.IGNORECASE)
_SPANS = re.compile(r"(duration|timedelta)", re.IGNORECASE)
# For points in time and spans of time. Days since 1970 fit float32 to about a minute.
_PANDAS = (
    "for c in {}: X[c] = (pd.to_datetime(X[c], utc=True) - pd.Timestamp(0, tz='UTC')) / pd.Timedelta(days=1)",
    "for c in {}: X[c] = X[c] / pd.Timedelta(days=1)",
)
_POLARS = (
    "X = {}.with_columns(pl.col({}).dt.epoch('s') / 86400)",
    "X = {}.with_columns(pl.col({}).dt.total_seconds() / 86400)",
)
_NUMPY = ("X = (X - np.datetime64(0, 'D')) / np.timedelta64(1, 'D')", "X = X / np.timedelta64(1, 'D')")
_SCANS = {
    ".csv": "pl.scan_csv({}, try_parse_dates=True)",
    ".feather": "pl.scan_ipc({})",
    ".arrow": "pl.scan_ipc({})",
    "": "pl.scan_parquet({})",
}


def way_with_times(kinds: Mapping[Any, object], where: str) -> str:
    """What makes numbers of the columns that hold times, by their types; empty if none does."""
    spans = [name for name, kind in kinds.items() if _SPANS.search(str(kind))]
    times = [name for name, kind in kinds.items() if name not in spans and _TIMES.search(str(kind))]
    lines = [f"`{_line(where, i, names)}`" for i, names in enumerate((times, spans)) if names]
    return f" {' and '.join(lines)} makes numbers of days of dates and times." if lines else ""


def _line(where: str, kind: int, names: Sequence[object]) -> str:
    """The line for the source that messages call `where`."""
    if "pandas" in where:
        return _PANDAS[kind].format(list(names))
    if "array" in where or where in ("numpy", "builtins"):
        return _NUMPY[kind]
    return _POLARS[kind].format(_opened(where), list(names))


def _opened(where: str) -> str:
    """How polars gets at a frame of its own, a table of Arrow, or files."""
    if "polars" in where:
        return "X"
    if "arrow" in where.lower() and "." not in where:
        return "pl.from_arrow(X)"
    scan = next(way for end, way in _SCANS.items() if end in where.lower())
    return scan.format(repr(where) if "." in where else "...")
