"""Images in memory whose pixels are the rows of a dataset."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from .. import _core


class RowImage(Protocol):
    """An image that is filled as the rows of its dataset are read."""

    def complete(self) -> None:
        """Read what was not read yet."""

    def encode(
        self,
        codec: _core.RowCodec,
        numbers: npt.NDArray[np.uint64],
        targets: npt.NDArray[np.float64],
        records: npt.NDArray[np.uint8],
        keys: npt.NDArray[np.uint64],
    ) -> None:
        """Write the records and keys of the rows of these numbers."""
