"""The results of a forest for all valid pixels of a scene, in the order of the scan."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ...checks import hard_votes
from ...datasets.batches import Span
from ...forest.batch_predict import BatchPlan, BatchPredictor, Needs, columns_for, plan_batches
from ...forest.predict import predict_means
from ...reporting.progress import StageProgress
from ...rows.read_ahead import read_ahead
from ..reading.strips import Strip
from ..scenes.scene import Scene, ScenePiece
from .map_layers import MapLayer
from .raw_map import RawMap, segment_bytes

SAVED_EVERY = 5.0  # seconds


class SceneLines(Scene):
    """All valid pixels of a scene from a line on; remembers which pixels its rows are."""

    def __init__(self, scene: Scene, first: int) -> None:
        self.__dict__.update(vars(scene._changed()))
        self._labels, self._filters, self.target = None, (), None
        self._first_line, self._is_part, self.first_row = first, True, 0
        self._read: deque[npt.NDArray[np.int64]] = deque()

    @property
    def strips(self) -> list[Strip]:
        first = self._first_line
        return [replace(s, first=max(first, s.first)) for s in super().strips if s.stop > first]

    def _pieces(self, rows: int, span: Span, carry: tuple[str, ...]) -> Iterator[ScenePiece]:
        width = self.scenes[0].grid.width
        for strip, piece in zip(self.strips, super()._pieces(rows, span, carry), strict=True):
            self._read.append((strip.first + piece.lines.astype(np.int64)) * width + piece.pixels)
            yield piece

    def take(self, rows: int) -> npt.NDArray[np.int64]:
        """The numbers of the pixels of the next rows."""
        parts = []
        while rows:
            part = self._read.popleft()
            if len(part) > rows:
                self._read.appendleft(part[rows:])
                part = part[:rows]
            parts.append(part)
            rows -= len(part)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


@dataclass(frozen=True)
class MapWork:
    """What is predicted, for which layers, and with which means."""

    forest: Any
    scene: Scene
    layers: dict[str, MapLayer]
    limit: int
    n_jobs: int

    @property
    def size(self) -> tuple[int, int]:
        return self.scene.scenes[0].grid.width, self.scene.scenes[0].grid.height

    def identity(self, digest: str) -> str:
        """Of what is resumed: the same forest, scene and layers."""
        parts = [digest, hard_votes(self.forest), SceneLines(self.scene, 0).fingerprint()]
        parts += [(name, layer.described()) for name, layer in self.layers.items()]
        return hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).hexdigest()

    def lines(self, first: int) -> SceneLines:
        """The rows to predict, from a line on."""
        names = getattr(self.forest, "feature_names_in_", None)
        chosen = columns_for(self.scene, self.forest.n_features_in_, names).coded_for(self.forest._levels)
        assert isinstance(chosen, Scene)
        return SceneLines(chosen, first)

    def plan(self, lines: SceneLines) -> BatchPlan:
        result = 8 * self.forest.forest_.n_outputs
        # Results that wait and that are written, and numbers of pixels.
        needs = Needs(result, 2 * result + 32, segment_bytes(self.layers))
        return plan_batches(self.forest.forest_, self.limit, self.n_jobs, needs.with_reading(lines))

    def predict(self, raw: RawMap, stage: StageProgress) -> None:
        """Append the pixels of all lines that are not done yet."""
        lines = self.lines(raw.lines)
        kernel = partial(predict_means, self.forest.forest_, hard_votes(self.forest))
        _predict(BatchPredictor(kernel, self.plan(lines)), lines, raw, stage)


def _predict(predictor: BatchPredictor, lines: SceneLines, raw: RawMap, stage: StageProgress) -> None:
    """Append the pixels of all lines that are not done yet.

    Batches are read, predicted and written at the same time.
    """
    stage.skip(raw.pixels)
    saved = time.monotonic()
    predicted = ((batch.rows, means) for batch, means in predictor.of_dataset(lines))
    with closing(read_ahead(predicted, depth=1)) as results:
        for rows, means in results:
            before = raw.pixels
            raw.put(lines.take(rows), means)
            stage.advance(raw.pixels - before)
            if time.monotonic() - saved > SAVED_EVERY:
                raw.save()
                saved = time.monotonic()
    stage.advance(stage.total - raw.pixels if stage.total is not None else 0)
    raw.finish()
