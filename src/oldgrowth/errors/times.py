"""How dates and times become numbers: the line that does it, for the library in which they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["spans", "points", "periods", "clock"]

# Arrow's, pandas', NumPy's, polars' and Python's names of types.
_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("spans", re.compile(r"duration|timedelta", re.IGNORECASE)),
    ("points", re.compile(r"date|timestamp", re.IGNORECASE)),
    ("periods", re.compile(r"period", re.IGNORECASE)),
    ("clock", re.compile(r"time", re.IGNORECASE)),
)
# Days since 1970 fit float32 to about a minute.
_PANDAS: dict[Kind, str] = {
    "points": "(pd.to_datetime(X[c], utc=True) - pd.Timestamp(0, tz='UTC')) / pd.Timedelta(days=1)",
    "periods": "(X[c].dt.to_timestamp() - pd.Timestamp(0)) / pd.Timedelta(days=1)",
    "clock": "pd.to_timedelta(X[c].astype('string')) / pd.Timedelta(days=1)",
    "spans": "X[c] / pd.Timedelta(days=1)",
}
_POLARS: dict[Kind, str] = {
    "points": "pl.col({}).dt.epoch('s') / 86400",
    "clock": "pl.col({}).cast(pl.Int64) / 86400e9",
    "spans": "pl.col({}).dt.total_seconds() / 86400",
}
_OBJECTS: dict[Kind, str] = {
    "points": "(X[:, j].astype('M8[us]') - np.datetime64(0, 'us')) / np.timedelta64(1, 'D')",
    "spans": "X[:, j].astype('m8[us]') / np.timedelta64(1, 'D')",
}
_ARRAYS: dict[Kind, str] = {
    "points": "X = (X - np.datetime64(0, 'D')) / np.timedelta64(1, 'D')",
    "spans": "X = X / np.timedelta64(1, 'D')",
}
_SCANS = {
    ".csv": "pl.scan_csv({}, try_parse_dates=True)",
    ".feather": "pl.scan_ipc({})",
    ".arrow": "pl.scan_ipc({})",
    "": "pl.scan_parquet({})",
}


def way_with_times(kinds: Mapping[Any, object], where: str) -> str:
    """What makes numbers of the columns that hold times, by their types; empty if none does."""
    times: dict[Kind, list[Any]] = {}
    for name, found in kinds.items():
        said = str(found).split(":")[0]  # what follows is a value
        kind = next((kind for kind, pattern in _KINDS if pattern.match(said) or _inside(pattern, said)), None)
        if kind is not None:
            times.setdefault(kind, []).append(name)
    lines = [f"`{line}`" for line in _lines(times, where, list(map(str, kinds.values())))]
    makes = "makes" if len(lines) == 1 else "make"
    return f" {' and '.join(lines)} {makes} numbers of days of dates and times." if lines else ""


def _inside(pattern: re.Pattern[str], said: str) -> bool:
    """Whether a type is that of a dictionary, of categories or of an extension."""
    return said.startswith(("dictionary", "category", "extension")) and pattern.search(said) is not None


def _lines(times: dict[Kind, list[Any]], where: str, kinds: Sequence[str]) -> list[str]:
    """The lines for the source that messages call `where`."""
    is_file = "." in where
    if "pandas" in where and not is_file:
        return [f"for c in {times[kind]}: X[c] = {way}" for kind, way in _PANDAS.items() if kind in times]
    if not is_file and any(word in where for word in ("array", "callable", "numpy", "builtins")):
        if all(kind.startswith(("datetime64", "timedelta64")) for kind in kinds):
            return [way for kind, way in _ARRAYS.items() if kind in times]
        ways = [f"for j in {times[kind]}: X[:, j] = {way}" for kind, way in _OBJECTS.items() if kind in times]
        return ["X = np.array(X, dtype=object)", *ways] if ways and where != "numpy" else ways
    ways = [way.format(times[kind]) for kind, way in _POLARS.items() if kind in times]
    return [f"X = {_opened(where)}.with_columns({', '.join(ways)})"] if ways else []


def _opened(where: str) -> str:
    """How polars gets at a frame of its own, a table of Arrow, or files."""
    if "polars" in where:
        return "X"
    if "arrow" in where.lower() and "." not in where:
        return "pl.from_arrow(X)"
    scan = next(way for end, way in _SCANS.items() if end in where.lower())
    return scan.format(repr(where) if "." in where else "...")
