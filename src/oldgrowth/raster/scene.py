"""Scenes: the pixels of rasters as rows of a dataset, in the order in which they are scanned."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..datasets.base import Dataset, Partition
from ..datasets.batches import FloatsOrBytes, Span
from ..datasets.labels import CodedLabels, Labels
from ..datasets.odd_texts import OddTexts
from ..datasets.partition_edges import nearest_edges
from ..errors import BandError, NoDataError, ParameterError
from .blocks import BlockFilter, BlockGrid, drawn_blocks, rows_by_block
from .label_rasters import RasterLabels
from .layers import LayerReader, Layers
from .patches import Rows, layer_of, patch_names, rows_around
from .raster_files import EXTENSIONS as RASTER_EXTENSIONS
from .recipe import check_recipe, recipe_of
from .strips import LabelSource, PixelFilter, Strip, StripLabels
from .vectors import VectorLabels

# Of a strip, which is made into rows at a time, about.
STRIP_PIXELS, STRIP_BYTES = 1 << 17, 1 << 24


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


class Scene(Dataset):
    """Pixels of one or several rasters as rows; made by `open_scene`."""

    kind = "Raster"
    weight = None
    n_rows = None

    def __init__(self, scenes: Sequence[Layers], patch: int) -> None:
        self.scenes = tuple(scenes)
        self.patch = patch
        self.target: str | None = None
        self.layer_names = self.scenes[0].names
        self.feature_names = patch_names(self.layer_names, patch)
        self.n_features = len(self.feature_names)
        self.nbytes = None
        self._columns: npt.NDArray[np.intp] | None = None
        self._labels: LabelSource | None = None
        self._filters: tuple[PixelFilter, ...] = ()
        self._range: tuple[int, int] | None = None  # of the strips of all scenes, in a partition
        self._counts: dict[Strip, int] = {}  # rows of strips that were read

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
    def reading_bytes(self) -> int:
        """Lines as they are read, the values of a strip with its border, and its interleaved lines."""
        most = 0
        for layers in self.scenes:
            lines, half = self._strip_lines(layers), self.patch // 2
            width = layers.grid.width + 2 * half
            values = (lines + 2 * half) * (layers.value_bytes + 4 * len(layers.names) * layers.are_bytes)
            patches = lines * self.patch * max(layers.value_bytes, 4 * len(layers.names))
            most = max(most, layers.reading_bytes(lines + 2 * half) + width * (values + patches + 64 * lines))
        return most

    def with_labels(self, source: str | Path, field: str | None = None) -> Scene:
        """The pixels that have a label, as rows with a target.

        Parameters
        ----------
        source : path
            Polygons or points (GeoPackage, shapefile, GeoJSON, ...) in any coordinate reference system, or a
            raster of one band. A pixel has the label of the polygon that its centre is in, or of a point in
            it; where several overlap, the last one in the file counts. A raster is sampled by nearest
            neighbour; its nodata pixels have no label.
        field : str, optional
            The field of the polygons or points with the labels; not needed if there is only one.
        """
        is_raster = Path(source).suffix.lower() in RASTER_EXTENSIONS
        if is_raster and field is not None:
            raise ParameterError("field", field, "omitted: a raster of labels has no fields")
        labels: LabelSource = (
            RasterLabels(source, self.scenes) if is_raster else VectorLabels(source, field, self.scenes)
        )
        chosen = self._changed()
        chosen._labels, chosen.target, chosen._filters = labels, labels.name, ()
        return chosen

    def split_blocks(self, size: str | float, share: float = 0.3, seed: int = 0) -> tuple[Scene, Scene]:
        """Split the rows by square blocks of ground into a part for training and one for tests.

        Pixels near each other are alike: a random split would test a forest on what it has seen.

        Parameters
        ----------
        size : str or number
            Side of a block, such as "2 km" or "500 m", or a number in units of the map.
        share : float
            Share of the rows that is for tests, about: blocks are drawn whole.
        seed : int
            Which blocks are drawn.

        Returns
        -------
        train, test : Scene
            Rows of training are so far from the blocks of the test that no patch has pixels of both.
        """
        if not 0 < share < 1:
            raise ParameterError("share", share, "between 0 and 1")
        blocks, grids = BlockGrid.parse(size), tuple(layers.grid for layers in self.scenes)
        counts = rows_by_block(((strip, self.candidates(strip)) for strip in self.strips), grids, blocks)
        if len(counts) < 2:
            raise ParameterError("size", size, f"smaller: all rows are in {len(counts)} block")
        chosen = drawn_blocks(counts, share, seed)
        gap = 2 * (self.patch // 2)
        train, test = (BlockFilter(blocks, chosen, inside, gap, grids) for inside in (False, True))
        return self.filtered(train), self.filtered(test)

    def filtered(self, pixels: PixelFilter) -> Scene:
        """The rows that a filter keeps."""
        chosen = self._changed()
        chosen._filters = (*self._filters, pixels)
        return chosen

    def candidates(self, strip: Strip) -> npt.NDArray[np.bool_]:
        """Which pixels of a strip are rows, if they are valid."""
        return self._chosen(strip)[0]

    def _changed(self) -> Scene:
        chosen = copy.copy(self)
        chosen.n_rows, chosen._counts = None, {}
        return chosen

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
        else:
            pixels, valid = reader.nothing()
        rows = rows_around(pixels, valid, chosen, self.patch)
        values = None if labels is None else labels.at(rows.lines, rows.pixels)
        return ScenePiece(first_row, reader.layers.where, rows, self._columns, values)

    def _chosen(self, strip: Strip) -> tuple[npt.NDArray[np.bool_], StripLabels | None]:
        """Which pixels may be rows, and their labels."""
        labels = None if self._labels is None else self._labels.read(strip)
        if labels is None:
            shape = (strip.stop - strip.first, self.scenes[strip.scene].grid.width)
            chosen = np.ones(shape, dtype=bool)
        else:
            chosen = labels.present.copy()
        for pixels in self._filters:
            chosen &= pixels.keeps(strip, labels)
        return chosen, labels

    @property
    def _first_of_strips(self) -> int:
        """The number of the first row of its strips."""
        return 0 if self._range is None else self.first_row

    @property
    def _where(self) -> str:
        more = f" and {len(self.scenes) - 1} more" if len(self.scenes) > 1 else ""
        return f"{self.scenes[0].where}{more}"

    def _check_end(self, end: int, start: int) -> None:
        if end == 0 and self.n_rows is None and not self._is_part:
            what = "all its pixels are nodata or masked"
            raise NoDataError(self._where, what if self._labels is None else f"{what}, or have no label")
        super()._check_end(end, start)

    def _read_rows(self) -> int:
        counts = [self._counts.get(strip) for strip in self.strips]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else super()._read_rows()

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
        return recipe_of(self.scenes[0], self.patch)

    def made_by(self, recipe: dict[str, Any] | None) -> Scene:
        for layers in self.scenes:
            check_recipe(layers, self.patch, recipe)
        return self

    def _described(self) -> list[tuple[str, str]]:
        grids = "; ".join(f"{layers.where}: {layers.grid}" for layers in self.scenes[:4])
        more = f" and {len(self.scenes) - 4} more" if len(self.scenes) > 4 else ""
        return [("scenes", grids + more), ("layers", ", ".join(self.layer_names)), ("patch", f"{self.patch}")]
