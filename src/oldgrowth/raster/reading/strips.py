"""Strips of lines, and what is known of their pixels beside the bands: labels, and which ones are rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...datasets.labels import Labels


@dataclass(frozen=True)
class Strip:
    """Lines of one of the scenes, read at a time."""

    scene: int
    first: int
    stop: int


class StripLabels(Protocol):
    """The labels of the pixels of a strip."""

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """Which pixels have one, by line and pixel."""
        ...

    def at(self, lines: npt.NDArray[np.intp], pixels: npt.NDArray[np.intp]) -> Labels: ...


@dataclass(frozen=True)
class StripRows:
    """Which pixels of a strip are rows, and their labels."""

    strip: Strip
    lines: npt.NDArray[np.intp]  # counted from the first line of the strip
    pixels: npt.NDArray[np.intp]
    labels: StripLabels | None


class LabelSource(Protocol):
    """Where labels of pixels come from."""

    name: str
    colors: Mapping[int, str]  # of labels, if the file has them

    @property
    def reading_bytes(self) -> int:
        """Memory for reading them, beside what is in memory already."""
        ...

    def read(self, strip: Strip) -> StripLabels: ...

    def fingerprint(self) -> dict[str, Any]: ...


class PixelFilter(Protocol):
    """Which of the pixels that may be rows are. As text, it tells what these pixels are."""

    def keeps(self, strip: Strip, labels: StripLabels | None) -> npt.NDArray[np.bool_]: ...

    def fingerprint(self) -> dict[str, Any]: ...
