"""Rows of a scene by their labels and places: which pixels have a label, and which blocks they are in."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ...checks import is_real, whole
from ...datasets.base import Dataset
from ...errors import DataError, LabelledSceneError, ParameterError
from ..reading.layers import Layers
from ..reading.strips import LabelSource, PixelFilter, Strip, StripLabels, StripRows
from .arrays import in_arrays
from .block_filter import BlockFilter
from .blocks import BlockGrid, check_several, drawn_blocks, rows_by_block
from .label_sources import LabelChoice, labels_of, no_rows
from .per_class import PerClass


class LabelledPixels(Dataset):
    """Pixels of rasters that have a label and that filters keep."""

    _can_be_coded = False

    def __init__(self, scenes: Sequence[Layers], patch: int) -> None:
        self.scenes = tuple(scenes)
        self.patch = patch
        self.target: str | None = None
        self._labels: LabelSource | None = None
        self._filters: tuple[PixelFilter, ...] = ()
        self._counts: dict[Strip, int] = {}  # rows of strips that were read

    @property
    def strips(self) -> list[Strip]:
        """All strips in their order. Nothing of a result depends on them."""
        raise NotImplementedError

    def with_labels(
        self,
        labels: str | Path,
        field: str | None = None,
        *,
        layer: str | None = None,
        nodata: float | None = None,
        per_class: int | None = None,
        seed: int = 0,
    ) -> Self:
        """The pixels that have a label, as rows with a target.

        A pixel has the label of the polygon that its centre is in, or of a point in it; where several
        overlap, the last one in the file counts. Of a raster, it has the label of the pixel that its centre
        is in. Coordinates are transformed to those of the scene.

        Parameters
        ----------
        labels : path
            Polygons and points (GeoPackage, shapefile, GeoJSON, ...) in any coordinate reference system, or a
            raster of one band in any grid. Lines are refused: give polygons around them.
        field : str, optional
            The field of the polygons or points with the labels: text, whole numbers, bools, or numbers for a
            regression. Those whose field is empty have no label. Not needed if there is only one field.
        layer : str, optional
            The layer of a file with several, such as a GeoPackage.
        nodata : number, optional
            The value of a raster that stands for no label, beside its own nodata value and mask.
        per_class : int, optional
            At most this number of pixels of each class, drawn at random among those that are valid; by
            default all. The drawn ones depend on nothing but `seed` and the data.
        seed : int, default 0
            Which pixels are drawn.

        Returns
        -------
        Scene
            The same scene with these pixels as rows.

        Raises
        ------
        NoLabelsError
            If no pixel of the scene has a label: the message names both extents.

        Examples
        --------
        >>> data = scene.with_labels("landuse.gpkg", field="landuse")  # doctest: +SKIP
        >>> data = scene.with_labels("classes.tif", nodata=0, per_class=10_000)  # doctest: +SKIP
        """
        if self._labels is not None:
            raise LabelledSceneError(self._labels.name)
        chosen = self._changed()
        chosen._labels = labels_of(labels, LabelChoice(field, layer, nodata), self.scenes)
        chosen.target = chosen._labels.name
        if per_class is None:
            return chosen
        n, seed = whole("per_class", per_class, 1), whole("seed", seed, 0)
        return chosen.filtered(PerClass.drawn(n, seed, chosen.rows(), [one.grid for one in self.scenes]))

    def split_blocks(self, size: str | float, share: float = 0.3, seed: int = 0) -> tuple[Self, Self]:
        """Split the rows by square blocks of ground into a part for training and one for tests.

        Pixels near each other are alike: a random split would test a forest on what it has seen. `BlockKFold`
        makes such splits for scikit-learn's cross-validation.

        Parameters
        ----------
        size : str or number
            Side of a block, such as "2 km" or "500 m", or a number in units of the map. Blocks have fixed
            places on the map: a pixel is in number floor(x / size) along one axis, and floor(y / size) along
            the other. Distances are those of the map; if it is in degrees, those in the middle of the scene.
        share : float, default 0.3
            Share of the rows that is for tests, about: blocks are drawn whole.
        seed : int, default 0
            Which blocks are drawn.

        Returns
        -------
        train, test : Scene
            Rows of training are so far from the blocks of the test that no patch has pixels of both: 2 pixels
            with patches of 3 x 3. The rows between them are in neither part.

        Examples
        --------
        >>> train, test = data.split_blocks("2 km", share=0.3)  # doctest: +SKIP
        """
        if not is_real(share) or not 0 < share < 1:
            raise ParameterError("share", share, "between 0 and 1")
        blocks = BlockGrid.of(size, [layers.grid for layers in self.scenes], self.patch)
        counts = rows_by_block(self.rows(), blocks)
        check_several(counts, size)
        chosen = drawn_blocks(counts, float(share), whole("seed", seed, 0))
        train, test = (self.filtered(BlockFilter(blocks, chosen, inside)) for inside in (False, True))
        return train, test

    def arrays(self, memory_limit: int | float | str = "auto") -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The rows and their labels as arrays, such as scikit-learn's tools need.

        Parameters
        ----------
        memory_limit : int, float or str, default "auto"
            Memory of the process, such as "2GB"; arrays that do not fit are refused. By default 80 % of the
            free memory.

        Returns
        -------
        X : ndarray of shape (rows, features)
            In the order of the dataset; uint8 if all values are bytes and none is missing, otherwise float32.
        y : ndarray of shape (rows,)
            The labels.

        Examples
        --------
        >>> X, y = data.arrays()  # doctest: +SKIP
        >>> folds = raster.BlockKFold(data, "2 km")  # doctest: +SKIP
        >>> cross_val_score(RandomForestClassifier(24), X, y, cv=folds)  # doctest: +SKIP
        """
        return in_arrays(self, memory_limit)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        raise DataError(
            "A scene is read in batches and cannot be converted to an array, as scikit-learn's tools require "
            "(GridSearchCV, cross_val_score, pipelines): use X, y = data.arrays() if they fit memory, with "
            "cv=raster.BlockKFold(data, size); or split_blocks, fit and score."
        )

    def rows(self) -> Iterator[StripRows]:
        """Which pixels are rows, strip by strip."""
        for scene, strips in groupby(self.strips, key=lambda strip: strip.scene):
            with self.scenes[scene].reader() as reader:
                for strip in strips:
                    chosen, labels = self._chosen(strip)
                    if chosen.any():
                        chosen &= reader.read(strip.first, strip.stop, 0)[1]
                    self._counts[strip] = int(np.count_nonzero(chosen))
                    yield StripRows(strip, *_places(chosen), labels)

    def filtered(self, pixels: PixelFilter) -> Self:
        """The rows that a filter keeps."""
        chosen = self._changed()
        chosen._filters = (*self._filters, pixels)
        return chosen

    def _changed(self) -> Self:
        chosen = copy.copy(self)
        chosen.n_rows, chosen._counts = None, {}
        return chosen

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

    def _read_rows(self) -> int:
        counts = [self._counts.get(strip) for strip in self.strips]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else sum(len(some.lines) for some in self.rows())

    def _check_end(self, end: int, start: int) -> None:
        if end == 0 and self.n_rows is None and not self._is_part:
            raise no_rows(self.scenes, self.strips, self._labels, self._filters)
        super()._check_end(end, start)


def _places(chosen: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    lines, pixels = np.nonzero(chosen)
    return lines, pixels
