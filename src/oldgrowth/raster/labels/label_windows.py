"""Labels of pixels, found for many lines at a time, whatever strips of a scene are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ...datasets.files import SourceFile
from ...errors import NoLabelsError
from ..reading.layers import Layers
from ..reading.strips import Strip, StripLabels

WINDOW_PIXELS = 1 << 23  # whose labels are found at a time: most scenes whole


class WindowedLabels(ABC):
    """Labels of the pixels of scenes; those found last are kept."""

    name: str
    files: tuple[SourceFile, ...]
    colors: Mapping[int, str] = MappingProxyType({})  # of labels, if the file has them

    def __init__(self, scenes: Sequence[Layers]) -> None:
        self.scenes = tuple(scenes)
        self._last: tuple[Strip, tuple[npt.NDArray[Any], ...]] | None = None

    @abstractmethod
    def _found(self, lines: Strip) -> tuple[npt.NDArray[Any], ...]:
        """What is known of the pixels of some lines, as arrays by line and pixel."""

    @abstractmethod
    def _labels(self, *arrays: npt.NDArray[Any]) -> StripLabels:
        """The labels of some lines from what is known of them."""

    @abstractmethod
    def _none(self) -> str:
        """Why no pixel has a label, for an error."""

    @property
    @abstractmethod
    def reading_bytes(self) -> int:
        """Memory for reading, beside what is in memory already."""

    @abstractmethod
    def fingerprint(self) -> dict[str, Any]: ...

    def read(self, strip: Strip) -> StripLabels:
        for file in self.files:
            file.check_unchanged()
        parts = []
        for window in self._windows(strip):
            part = slice(max(0, strip.first - window.first), strip.stop - window.first)
            parts.append([one[part] for one in self._window(window)])
        if len(parts) == 1:
            return self._labels(*parts[0])
        return self._labels(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def check_any(self) -> None:
        """Raise an error unless some pixel has a label."""
        for i, scene in enumerate(self.scenes):
            for window in self._windows(Strip(i, 0, scene.grid.height)):
                if self._labels(*self._window(window)).present.any():
                    return
        raise NoLabelsError(self.files[0].path, self._none())

    def _windows(self, strip: Strip) -> Iterator[Strip]:
        """The windows that have lines of a strip."""
        grid = self.scenes[strip.scene].grid
        lines = max(1, WINDOW_PIXELS // grid.width)
        for first in range(strip.first // lines * lines, strip.stop, lines):
            yield Strip(strip.scene, first, min(grid.height, first + lines))

    def _window(self, window: Strip) -> tuple[npt.NDArray[Any], ...]:
        last = self._last
        if last is None or last[0] != window:
            self._last = last = None  # free it before the next one is made
            self._last = last = (window, self._found(window))
        return last[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_last": None}

    @property
    def _window_pixels(self) -> int:
        """The most pixels of a window."""
        sizes = [scene.grid.width * scene.grid.height for scene in self.scenes]
        widest = max(scene.grid.width for scene in self.scenes)
        return max(widest, min(max(sizes), WINDOW_PIXELS))
