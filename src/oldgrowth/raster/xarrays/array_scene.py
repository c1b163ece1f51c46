"""A part of a scene whose pixels are arrays: read, masked and made to patches like one of files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from affine import Affine

from ...forest.batch_predict import Needs, plan_batches
from ...forest.forest import Forest
from ...forest.predict import predict_means
from ...system.memory import memory_limit_of
from ..maps.map_layers import MapLayer
from ..reading.grid import Grid
from ..reading.layers import LayerReader, Layers, Together
from ..reading.line_buffer import LineBuffer
from ..reading.strips import Strip, StripLabels
from ..scenes.scene import Scene


@dataclass(frozen=True)
class ArrayLayers(Layers):
    """Layers of arrays by line and pixel. They may be lazy: only the lines of a strip are taken of them."""

    arrays: Mapping[str, Any] = field(default_factory=dict)

    @contextmanager
    def reader(self) -> Iterator[LayerReader]:
        groups = [Together(band.file, (band,)) for band in self.every]
        yield LayerReader(self, groups, [_ArrayLines(self.arrays[band.name]) for band in self.every])


class _ArrayLines(LineBuffer):
    """Lines of an array with one band."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def lines(self, first: int, stop: int) -> npt.NDArray[Any]:
        return np.asarray(self._array[first:stop])[None]


@dataclass(frozen=True)
class Halo:
    """The border of a block that belongs to its neighbours: lines and pixels at its four sides."""

    top: int = 0
    bottom: int = 0
    left: int = 0
    right: int = 0

    def inner(self, height: int, width: int) -> tuple[slice, slice]:
        return slice(self.top, height - self.bottom), slice(self.left, width - self.right)


@dataclass(frozen=True)
class _Inside:
    """A filter that keeps pixels that are not in the halo."""

    part: tuple[slice, slice]
    width: int

    def keeps(self, strip: Strip, labels: StripLabels | None) -> npt.NDArray[np.bool_]:
        lines, pixels = np.arange(strip.first, strip.stop), np.arange(self.width)
        of_lines = (lines >= self.part[0].start) & (lines < self.part[0].stop)
        of_pixels = (pixels >= self.part[1].start) & (pixels < self.part[1].stop)
        return of_lines[:, None] & of_pixels

    def fingerprint(self) -> dict[str, Any]:
        return {"part": str(self.part)}


@dataclass(frozen=True)
class Prediction:
    """How the pixels of blocks are predicted: small, as every task has it, and without the forest."""

    layers: Layers  # without a grid of its own
    patch: int
    features: tuple[str, ...] | None
    layer: MapLayer
    hard: bool
    memory_limit: Any

    def of_block(
        self, forest: Forest, arrays: Mapping[str, Any], halo: Halo, n_jobs: int
    ) -> npt.NDArray[Any]:
        """The pixels of a map, by band, line and pixel, for a block without its halo."""
        height, width = next(iter(arrays.values())).shape
        part = halo.inner(height, width)
        scene = self._scene(arrays, (height, width), part)
        out = np.full((len(self.layer.bands), height, width), self.layer.nodata, dtype=self.layer.dtype)
        needs = Needs(8 * forest.n_outputs, 24 * forest.n_outputs + 5 * scene.n_features)
        plan = plan_batches(forest, memory_limit_of(self.memory_limit), n_jobs, needs, refuse=False)
        with scene.scenes[0].reader() as reader:
            for strip in scene.strips:
                piece = scene._piece(reader, strip, 0)
                for first in range(0, piece.rows, plan.rows):
                    some = slice(first, first + plan.rows)
                    lines, pixels = strip.first + piece.lines[some], piece.pixels[some]
                    x = np.empty((len(lines), scene.n_features), np.uint8 if piece.all_bytes else np.float32)
                    piece.fill(x, first)
                    means = predict_means(forest, self.hard, x, plan.n_jobs, None, plan.evict)
                    out[:, lines, pixels] = self.layer.pixels(means).T
        return out[:, part[0], part[1]]

    def _scene(self, arrays: Mapping[str, Any], shape: tuple[int, int], part: tuple[slice, slice]) -> Scene:
        grid = Grid(shape[1], shape[0], Affine.identity(), None)
        fields = {**vars(self.layers), "grid": grid, "arrays": arrays}
        scene = Scene([ArrayLayers(**fields)], self.patch).filtered(_Inside(part, shape[1]))
        if self.features is None or self.features == scene.feature_names:
            return scene
        chosen = scene.select(self.features)
        assert isinstance(chosen, Scene)
        return chosen
