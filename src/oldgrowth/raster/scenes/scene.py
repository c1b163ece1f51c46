"""Scenes: the pixels of rasters as rows of a dataset, in the order in which they are scanned."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...datasets.base import Partition
from ...datasets.batches import BYTE_VALUES, FloatsOrBytes, Span
from ...datasets.labels import CodedLabels, Labels
from ...datasets.odd_texts import OddTexts
from ...datasets.partition_edges import nearest_edges
from ...errors import BandError
from ..labels.labelled import LabelledPixels
from ..reading.layers import LayerReader, Layers
from ..reading.patches import Rows, layer_of, patch_names, rows_around
from ..reading.recipe import check_recipe, recipe_of
from ..reading.strips import Strip
from .image import SceneImage, image_bytes
from .left_out import left_out_by, warn_of_scenes

# Of a strip, which is made into rows at a time, about.
STRIP_PIXELS, STRIP_BYTES = 1 << 17, 1 << 23


@dataclass(frozen=True)
class ScenePiece:
    """The rows of a strip."""

    first_row: int
    where: str
    around: Rows  # the patches of its pixels
    columns: npt.NDArray[np.intp] | None
    label_values: Labels | None

    @property
    def rows(self) -> int:
        return len(self.around.lines)

    @property
    def lines(self) -> npt.NDArray[np.intp]:
        """The line of each row within the strip."""
        return self.around.lines

    @property
    def pixels(self) -> npt.NDArray[np.intp]:
        """The pixel of each row within its line."""
        return self.around.pixels

    @property
    def all_bytes(self) -> bool:
        return self.around.all_bytes

    def fill(self, out: FloatsOrBytes, start: int) -> None:
        self.around.fill(out, start, self.columns)

    def labels(self, start: int, stop: int) -> Labels | None:
        if self.label_values is None:
            return None
        if isinstance(self.label_values, CodedLabels):
            codes = self.label_values.codes[start:stop]
            used, places = np.unique(codes, return_inverse=True)
            return CodedLabels(places.astype(np.int32), self.label_values.labels[used])
        return self.label_values[start:stop]

    def odd_texts(self, start: int, stop: int) -> OddTexts | None:
        return None

    def weights(self, start: int, stop: int) -> npt.NDArray[np.float64] | None:
        return None

    def carried(self, start: int, stop: int) -> pa.Table | None:
        return None


class Scene(LabelledPixels):
    """Pixels of one or several rasters as rows; made by `open_scene`."""

    kind = "Raster"
    way_to_target = "give labels to the scene with scene.with_labels(labels)"
    weight = None
    n_rows = None

    def __init__(self, scenes: Sequence[Layers], patch: int) -> None:
        super().__init__(scenes, patch)
        self.layer_names = self.scenes[0].names
        self.feature_names = patch_names(self.layer_names, patch)
        self.n_features = len(self.feature_names)
        self.nbytes = None
        self.opened_for: tuple[Any, Any] | None = None  # mask and nodata of the forest it was opened for
        self._columns: npt.NDArray[np.intp] | None = None
        self._range: tuple[int, int] | None = None  # of the strips of all scenes, in a partition
        self._image: SceneImage | None = None  # filled as strips are read

    @property
    def strips(self) -> list[Strip]:
        """All strips in their order. Nothing of a result depends on them."""
        found = []
        for i, layers in enumerate(self.scenes):
            edges = [*range(0, layers.grid.height, self._strip_lines(layers)), layers.grid.height]
            found += [Strip(i, first, stop) for first, stop in pairwise(edges)]
        return found if self._range is None else found[slice(*self._range)]

    def _strip_lines(self, layers: Layers) -> int:
        """Lines of a strip, so that its interleaved patches are small."""
        most = max(1, STRIP_BYTES // (layers.value_bytes * self.patch))
        return max(1, min(STRIP_PIXELS, most) // layers.grid.width)

    @property
    def expected_rows(self) -> int | None:
        if self.n_rows is not None:
            return self.n_rows
        return sum((strip.stop - strip.first) * self.scenes[strip.scene].grid.width for strip in self.strips)

    @property
    def most_values(self) -> int | None:
        return BYTE_VALUES if all(layers.are_bytes for layers in self.scenes) else None

    @property
    def reading_bytes(self) -> int:
        """Lines as they are read, the values of a strip with its border, and its interleaved lines."""
        most = 0
        for layers in self.scenes:
            lines, half = self._strip_lines(layers), self.patch // 2
            width = layers.grid.width + 2 * half
            values = (lines + 2 * half) * (layers.value_bytes + 4 * len(layers.names) * layers.are_bytes)
            patches = lines * self.patch * max(layers.value_bytes, 4 * len(layers.names))
            most = max(most, layers.reading_bytes(lines + 2 * half) + width * (values + patches + 48 * lines))
        return most + (0 if self._labels is None else self._labels.reading_bytes)

    # The image that rows are gathered from.

    @property
    def image_bytes(self) -> int:
        return image_bytes(self.scenes, self.patch)

    def with_image(self) -> tuple[Scene, SceneImage]:
        imaged = copy.copy(self)
        imaged._image = SceneImage(self.scenes, self.patch, self._columns, imaged._read_strips)
        imaged._image.expect(self.strips)
        return imaged, imaged._image

    def _read_strips(self, strips: list[Strip]) -> None:
        """Read strips just for the image."""
        for scene, layers in enumerate(self.scenes):
            with layers.reader() as reader:
                for strip in strips:
                    if strip.scene == scene:
                        self._piece(reader, strip, 0)

    # What a dataset has to tell.

    def _pieces(self, rows: int, span: Span, carry: tuple[str, ...]) -> Iterator[ScenePiece]:
        strips, first, begin = self.strips, self._first_of_strips, 0
        for strip in strips:  # those before the span are not read, if their rows are known
            count = self._counts.get(strip)
            if count is None or first + count > span.start:
                break
            first, begin = first + count, begin + 1
        for scene, some in groupby(strips[begin:], key=lambda strip: strip.scene):
            with self.scenes[scene].reader() as reader:
                for strip in some:
                    if self._is_part and span.stop is not None and first >= span.stop:
                        return
                    piece = self._piece(reader, strip, first)
                    self._counts[strip] = piece.rows
                    first += piece.rows
                    yield piece
                    del piece  # before there is another one

    def _piece(self, reader: LayerReader, strip: Strip, first_row: int) -> ScenePiece:
        chosen, labels = self._chosen(strip)
        if chosen.any():
            half = self.patch // 2
            pixels, valid = reader.read(strip.first, strip.stop, half)
            chosen &= valid[half : len(valid) - half, half : valid.shape[1] - half]
            if self._image is not None:
                self._image.put(strip, pixels, valid, chosen)
        else:
            pixels, valid = reader.nothing()
        rows = rows_around(pixels, valid, chosen, self.patch)
        values = None if labels is None else labels.at(rows.lines, rows.pixels)
        return ScenePiece(first_row, reader.layers.where, rows, self._columns, values)

    @property
    def _first_of_strips(self) -> int:
        """The number of the first row of its strips."""
        return 0 if self._range is None else self.first_row

    @property
    def _where(self) -> str:
        more = f" and {len(self.scenes) - 1} more" if len(self.scenes) > 1 else ""
        return f"{self.scenes[0].where}{more}"

    def _cut(self, n: int) -> list[Partition]:
        """Partitions are cut between strips; their rows are counted by reading them."""
        strips = self.strips
        sizes = [(strip.stop - strip.first) * self.scenes[strip.scene].grid.width for strip in strips]
        places = list(accumulate(sizes, initial=0))
        edges = [places.index(edge) for edge in nearest_edges(places, n)]
        begin = 0 if self._range is None else self._range[0]
        return [
            Partition(self._of_strips(begin + first, begin + last), None, None)
            for first, last in pairwise(edges)
        ]

    def _of_strips(self, first: int, last: int) -> Scene:
        part = copy.copy(self)
        part._range, part._is_part, part.n_rows = (first, last), True, None
        return part

    def _column_names(self) -> Sequence[str]:
        return patch_names(self.layer_names, self.patch)

    def _check_names(self, names: Sequence[str]) -> None:
        """Missing features are told by their bands."""
        known = set(self._column_names())
        bands = dict.fromkeys(layer_of(name) for name in names if name not in known)
        missing = [name for name in bands if name not in self.layer_names]
        if missing:
            raise BandError(self._where, missing, self.layer_names)
        super()._check_names(names)

    def _use_features(self, features: tuple[str, ...]) -> None:
        every = {name: i for i, name in enumerate(self._column_names())}
        self._columns = np.array([every[name] for name in features], dtype=np.intp)

    def fingerprint(self) -> dict[str, Any]:
        labels = None if self._labels is None else self._labels.fingerprint()
        return {
            "kind": self.kind,
            "files": [file.described() for layers in self.scenes for file in layers.files],
            "recipe": self.recipe,
            "features": list(self.feature_names or ()),
            "labels": labels,
            "filters": [pixels.fingerprint() for pixels in self._filters],
            "strips": self._range,
        }

    @property
    def recipe(self) -> dict[str, Any]:
        colors = {} if self._labels is None else dict(self._labels.colors)
        return recipe_of(self.scenes[0], self.patch) | {"colors": colors}

    def made_by(self, recipe: dict[str, Any] | None) -> Scene:
        for layers in self.scenes:
            check_recipe(layers, self.patch, recipe)
        if self.opened_for != left_out_by(recipe):  # scene_like was told what is wanted
            warn_of_scenes(recipe, self.scenes)
        return self

    def _described(self) -> list[tuple[str, str]]:
        grids = "; ".join(f"{layers.where}: {layers.grid}" for layers in self.scenes[:4])
        more = f" and {len(self.scenes) - 4} more" if len(self.scenes) > 4 else ""
        return [("scenes", grids + more), ("layers", ", ".join(self.layer_names)), ("patch", f"{self.patch}")]
