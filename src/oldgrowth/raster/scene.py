"""Scenes: the pixels of rasters as rows of a dataset, in the order in which they are scanned."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..datasets.base import Dataset
from ..datasets.batches import FloatsOrBytes, Span
from ..datasets.files import SourceFile
from ..datasets.labels import CodedLabels, Labels
from ..datasets.odd_texts import OddTexts
from ..errors import ParameterError
from .bands import EXTENSIONS as RASTER_EXTENSIONS
from .blocks import BlockFilter, BlockGrid, drawn_blocks, rows_by_block
from .label_rasters import RasterLabels
from .layers import LayerReader, Layers, Pixels
from .patches import patch_names, patches_of, touches_invalid
from .strips import LabelSource, PixelFilter, Strip, StripLabels
from .vectors import VectorLabels

STRIP_PIXELS = 1 << 17  # of a strip, about: what is read at a time


@dataclass(frozen=True)
class ScenePiece:
    """The rows of a strip."""

    first_row: int
    where: str
    patches: Pixels  # by line and pixel: views that overlap
    lines: npt.NDArray[np.intp]
    pixels: npt.NDArray[np.intp]
    all_bytes: bool
    columns: npt.NDArray[np.intp] | None
    label_values: Labels | None

    @property
    def rows(self) -> int:
        return len(self.lines)

    def fill(self, out: FloatsOrBytes, start: int) -> None:
        part = slice(start, start + len(out))
        values = self.patches[self.lines[part], self.pixels[part]]
        out[...] = values if self.columns is None else values[:, self.columns]

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
        self._counts: dict[Strip, int] = {}  # rows of strips that were read

    @property
    def strips(self) -> list[Strip]:
        """All strips in their order. Nothing of a result depends on them."""
        found = []
        for i, layers in enumerate(self.scenes):
            lines = max(1, STRIP_PIXELS // layers.grid.width)
            edges = [*range(0, layers.grid.height, lines), layers.grid.height]
            found += [Strip(i, first, stop) for first, stop in pairwise(edges)]
        return found

    @property
    def expected_rows(self) -> int | None:
        return self.n_rows or sum(layers.grid.width * layers.grid.height for layers in self.scenes)

    @property
    def reading_bytes(self) -> int:
        """A strip as it is read, with its border, and its interleaved lines."""
        most = 0
        for layers in self.scenes:
            lines = max(1, STRIP_PIXELS // layers.grid.width) + self.patch - 1
            interleaved = 4 * len(layers.names) * (self.patch + 2) * layers.grid.width
            most = max(most, lines * (layers.line_bytes + interleaved))
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
        strips = self.strips
        known = list(accumulate((self._counts.get(strip, -1) for strip in strips), initial=0))
        skipped = 0
        while skipped < len(strips) and strips[skipped] in self._counts and known[skipped + 1] <= span.start:
            skipped += 1
        first = known[skipped]
        for scene, layers in enumerate(self.scenes):
            left = [strip for strip in strips[skipped:] if strip.scene == scene]
            if not left or (span.stop is not None and first >= span.stop and self._is_part):
                continue
            with layers.reader() as reader:
                for strip in left:
                    piece = self._piece(reader, strip, first)
                    self._counts[strip] = piece.rows
                    first += piece.rows
                    yield piece
                    if self._is_part and span.stop is not None and first >= span.stop:
                        return

    def _piece(self, reader: LayerReader, strip: Strip, first_row: int) -> ScenePiece:
        layers, half = reader.layers, self.patch // 2
        top, bottom = max(0, strip.first - half), min(layers.grid.height, strip.stop + half)
        chosen, labels = self._chosen(strip)
        if not chosen.any():
            bottom = top  # nothing to read
        pixels, valid = reader.read(top, bottom)
        if bottom > top:
            chosen &= valid[strip.first - top :][: strip.stop - strip.first]
        lines, places = np.nonzero(chosen)
        border = ((half - strip.first + top, half - bottom + strip.stop), (half, half))
        if not len(lines):
            patches: Pixels = np.empty((0, 0, self.n_features), dtype=pixels.dtype)
            all_bytes = pixels.dtype == np.uint8
        else:
            padded: Any = np.pad(pixels, (*border, (0, 0)))
            patches, all_bytes = self._patches(padded, np.pad(valid, border), lines, places)
        values = None if labels is None else labels.at(lines, places)
        return ScenePiece(first_row, layers.where, patches, lines, places, all_bytes, self._columns, values)

    def _patches(
        self,
        pixels: Pixels,
        valid: npt.NDArray[np.bool_],
        lines: npt.NDArray[np.intp],
        places: npt.NDArray[np.intp],
    ) -> tuple[Pixels, bool]:
        """Patches of a strip; pixels that are not valid are missing, for which bytes have no value."""
        missing = bool(touches_invalid(valid, self.patch)[lines, places].any())
        if missing:
            pixels = pixels.astype(np.float32, copy=False)
            pixels[~valid] = np.nan
        return patches_of(pixels, self.patch), pixels.dtype == np.uint8

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

    def _column_names(self) -> Sequence[str]:
        return patch_names(self.layer_names, self.patch)

    def _use_features(self, features: tuple[str, ...]) -> None:
        every = {name: i for i, name in enumerate(self._column_names())}
        self._columns = np.array([every[name] for name in features], dtype=np.intp)

    def fingerprint(self) -> dict[str, Any]:
        files = [file for layers in self.scenes for file in layers_files(layers)]
        labels = None if self._labels is None else self._labels.fingerprint()
        return {
            "kind": self.kind,
            "files": [file.described() for file in files],
            "recipe": self.recipe,
            "features": list(self.feature_names or ()),
            "labels": labels,
            "filters": [pixels.fingerprint() for pixels in self._filters],
        }

    @property
    def recipe(self) -> dict[str, Any]:
        """How features are made of bands, so that the same can be done with another scene."""
        layers = self.scenes[0]
        return {
            "bands": [band.name for band in layers.bands],
            "extra": {expression.name: expression.text for expression in layers.extra},
            "patch": self.patch,
            "mask": None if layers.mask is None else str(layers.mask.rule),
        }

    def _described(self) -> list[tuple[str, str]]:
        grids = "; ".join(f"{layers.where}: {layers.grid}" for layers in self.scenes[:4])
        more = f" and {len(self.scenes) - 4} more" if len(self.scenes) > 4 else ""
        return [("scenes", grids + more), ("layers", ", ".join(self.layer_names)), ("patch", f"{self.patch}")]


def layers_files(layers: Layers) -> list[SourceFile]:
    bands = (*layers.bands, *layers.used, *([layers.mask.band] if layers.mask else []))
    return list({band.file.path: band.file for band in bands}.values())
