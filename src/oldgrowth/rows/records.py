"""Encodes rows as short records, and decodes them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from .. import _core
from ..datasets.batches import FloatsOrBytes
from ..errors import ChangedDataError

# Values that are made floats at a time.
_FLOATS_AT_A_TIME = 2**20


def floats_at_a_time(n_features: int) -> int:
    """Number of rows with this many features that are converted to floats at a time."""
    return max(64, min(65_536, _FLOATS_AT_A_TIME // n_features))


def encode(  # noqa: PLR0913 - rows, their place in the data, and the arrays to fill
    codec: _core.RowCodec,
    x: FloatsOrBytes,
    targets: npt.NDArray[np.float64],
    first_row: int,
    records: npt.NDArray[np.uint8] | None = None,
    keys: npt.NDArray[np.uint64] | None = None,
    where: str = "the data",
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64]]:
    """Rows as records, with a key for each that hashes its content; into the given arrays, or new ones."""
    if records is None:
        records = np.empty((len(x), codec.record_bytes), dtype=np.uint8)
    if keys is None:
        keys = np.empty(len(x), dtype=np.uint64)
    if not codec.encode(x, (targets + 0.0).view(np.uint64), records, keys):
        raise ChangedDataError(first_row, first_row + len(x) - 1, where)
    return records, keys


def decoded(
    codec: _core.RowCodec, records: npt.NDArray[np.uint8], places: npt.NDArray[np.uint32 | np.uint64]
) -> Iterator[npt.NDArray[np.float32]]:
    """The values of the records at these places, some rows at a time."""
    step = floats_at_a_time(len(codec.widths))
    for first in range(0, len(places), step):
        part = places[first : first + step]
        x = np.empty((len(part), len(codec.widths)), dtype=np.float32)
        codec.decode(records, part, x)
        yield x
