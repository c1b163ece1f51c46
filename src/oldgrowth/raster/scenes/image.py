"""The pixels of scenes in memory: rows are gathered from them by their numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np
import numpy.typing as npt

from ... import _core
from ...errors import ChangedDataError
from ..reading.layers import Layers, Pixels
from ..reading.strips import Strip


def image_bytes(scenes: Sequence[Layers], patch: int) -> int:
    """Memory of the images of some scenes."""
    return sum(_core.PatchImage.bytes_of(*_shape(layers, patch)) for layers in scenes)


class SceneImage:
    """An image for each scene, filled strip by strip as rows are read; see `RowImage`."""

    def __init__(
        self,
        scenes: Sequence[Layers],
        patch: int,
        columns: npt.NDArray[np.intp] | None,
        read: Callable[[list[Strip]], None],
    ) -> None:
        """`columns` are the features that count; `read` reads strips, which are then given to `put`."""
        chosen = [] if columns is None else columns.tolist()
        self._images = [_core.PatchImage(*_shape(layers, patch), chosen) for layers in scenes]
        self._grids, self._half = [layers.grid for layers in scenes], patch // 2
        self._read = read
        self._left: dict[Strip, None] = {}
        self._first_rows: npt.NDArray[np.uint64] | None = None
        self._lock = Lock()

    def expect(self, strips: Sequence[Strip]) -> None:
        """All strips that there are."""
        self._left = dict.fromkeys(strips)

    def put(
        self, strip: Strip, pixels: Pixels, valid: npt.NDArray[np.bool_], is_row: npt.NDArray[np.bool_]
    ) -> None:
        """A strip that was read: pixels with a border of half a patch, and which of its own are rows."""
        image, grid = self._images[strip.scene], self._grids[strip.scene]
        top, bottom = max(0, strip.first - self._half), min(grid.height, strip.stop + self._half)
        above = top - strip.first + self._half
        inside = np.s_[above : above + bottom - top, self._half : self._half + grid.width]
        image.put_values(top, np.ascontiguousarray(pixels[inside]), np.ascontiguousarray(valid[inside]))
        image.put_rows(strip.first, np.ascontiguousarray(is_row))
        self._left.pop(strip, None)

    def complete(self) -> None:
        with self._lock:
            if self._first_rows is not None:
                return
            self._read(list(self._left))
            for image in self._images:
                image.finish()
            counts = [image.n_rows for image in self._images]
            self._first_rows = np.cumsum([0, *counts], dtype=np.uint64)

    def encode(
        self,
        codec: _core.RowCodec,
        numbers: npt.NDArray[np.uint64],
        targets: npt.NDArray[np.float64],
        records: npt.NDArray[np.uint8],
        keys: npt.NDArray[np.uint64],
    ) -> None:
        assert self._first_rows is not None
        bits = (targets + 0.0).view(np.uint64)
        edges = np.searchsorted(numbers, self._first_rows).tolist()
        for image, first_row, start, stop in zip(
            self._images, self._first_rows, edges, edges[1:], strict=False
        ):
            part = slice(start, stop)
            here = numbers[part] - first_row
            if start < stop and not image.encode(codec, here, bits[part], records[part], keys[part]):
                raise ChangedDataError(int(numbers[start]), int(numbers[stop - 1]), "the scene")


def _shape(layers: Layers, patch: int) -> tuple[int, int, int, int, bool]:
    return layers.grid.height, layers.grid.width, len(layers.names), patch, layers.are_bytes
