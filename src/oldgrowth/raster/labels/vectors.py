"""Labels of pixels from polygons and points, in any coordinate reference system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rasterio.crs import CRS

from ...datasets.labels import CodedLabels, Labels, objects, type_class
from ...errors import ColumnTypeError, DamagedFileError, GeometryTypeError, NoLabelsError, TransformError
from ...messages.text import counted
from ...system.memory import release_memory
from ..reading.boxes import Box
from ..reading.coordinates import transformed
from ..reading.grid import Grid
from ..reading.layers import Layers
from ..reading.strips import Strip, StripLabels
from .label_windows import WindowedLabels
from .shapes import VERTEX_BYTES, VERTICES, Shapes, burn, joined, shapes_of, to_pixels
from .vector_files import KIND, VectorFile, open_vectors

_MARGIN = 0.1  # of a scene, by which the area that is searched for geometries is larger


@dataclass(frozen=True)
class CodedPixels:
    """Codes of labels by line and pixel, counted from 1; 0 where there is none."""

    codes: npt.NDArray[np.unsignedinteger[Any]]
    values: npt.NDArray[Any]

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        return self.codes > 0

    def at(self, lines: npt.NDArray[np.intp], pixels: npt.NDArray[np.intp]) -> Labels:
        codes = self.codes[lines, pixels].astype(np.int32) - 1
        return CodedLabels(codes, self.values) if self.values.dtype.kind == "O" else self.values[codes]


class VectorLabels(WindowedLabels):
    """Labels of polygons and points.

    A pixel has the label of the polygon that its centre is in, or of a point in it. Where several overlap,
    the last one in the file counts.
    """

    def __init__(self, path: Any, layer: str | None, field: str | None, scenes: Sequence[Layers]) -> None:
        super().__init__(scenes)
        self._source = open_vectors(path, layer, field)
        self.name, self.files = self._source.field, self._source.files
        placed = [_placed(self._source, scene.grid) for scene in scenes]
        self._shapes = [shapes for shapes, _ in placed]
        if not any(len(shapes) for shapes in self._shapes):
            raise NoLabelsError(self._source.path, self._elsewhere())
        labels = pa.chunked_array([part for _, parts in placed for part in parts]).combine_chunks()
        self._values, codes = _coded(labels, self._source)
        self._dtype = np.min_scalar_type(len(self._values))
        edges = np.cumsum([sum(map(len, parts)) for _, parts in placed])[:-1]
        of_scenes = np.split((codes + 1).astype(self._dtype), edges)
        self._codes = [
            of_scene[shapes.owners] for of_scene, shapes in zip(of_scenes, self._shapes, strict=True)
        ]
        release_memory()  # what was read took several times as much

    def _found(self, lines: Strip) -> tuple[npt.NDArray[Any], ...]:
        grid = self.scenes[lines.scene].grid
        codes = np.zeros((lines.stop - lines.first, grid.width), dtype=self._dtype)
        flip = grid.transform.determinant < 0
        burn(self._shapes[lines.scene], self._codes[lines.scene], codes, lines.first, flip)
        return (codes,)

    def _labels(self, *arrays: npt.NDArray[Any]) -> StripLabels:
        return CodedPixels(arrays[0], self._values)

    @property
    def reading_bytes(self) -> int:
        """A window, of which GDAL has two copies, and what GDAL is given at a time. Geometries are in memory
        from the start."""
        vertices = max(min(len(one.vertices), max(VERTICES, one.most_vertices)) for one in self._shapes)
        return 3 * self._window_pixels * self._dtype.itemsize + vertices * VERTEX_BYTES

    def fingerprint(self) -> dict[str, Any]:
        return self._source.described()

    def _none(self) -> str:
        count = sum(map(len, self._shapes))
        size = self.scenes[0].grid.transform
        return (
            f"{count:,} of its polygons and points are within {self.scenes[0].where}, but none has the "
            f"centre of a pixel; pixels are of {abs(size.a):g} x {abs(size.e):g}{self._far_edges()}"
        )

    def _elsewhere(self) -> str:
        source = self._source
        scenes = "; ".join(_extent(scene, source.crs) for scene in self.scenes[:3])
        more = f" and {len(self.scenes) - 3} more scenes" if len(self.scenes) > 3 else ""
        where = "no coordinates" if source.box is None else f"{source.box}, {source.crs}"
        have = counted(source.n_features, "feature")
        return f"of its {have} ({where}), none with a label is in {scenes}{more}{self._far_edges()}"

    def _far_edges(self) -> str:
        """What may be wrong with geometries larger than a scene, in another coordinate reference system."""
        source, grid = self._source, self.scenes[0].grid
        box = None if source.crs == grid.crs else Box.of(grid).moved(grid.crs, source.crs)
        if box is None or source.box is None or not source.box.has(box):
            return ""
        around = " ".join(f"{place:.8g}" for place in box.grown(1).corners)
        return (
            f". If one of them covers the scene, it is too large to be transformed to {grid.crs}: cut it to "
            f"the surroundings of the scene, for example with ogr2ogr -clipsrc {around}"
        )


def _extent(scene: Layers, crs: CRS) -> str:
    box = Box.of(scene.grid)
    other = None if scene.grid.crs == crs else box.moved(scene.grid.crs, crs)
    also = "" if other is None else f", which is {other} in {crs}"
    return f"{scene.where} ({box}, {scene.grid.crs}{also})"


def _placed(source: VectorFile, grid: Grid) -> tuple[Shapes, list[pa.Array]]:
    """The shapes that touch a grid, and the labels of their owners."""
    same = source.crs == grid.crs
    box = Box.of(grid) if same else Box.of(grid).moved(grid.crs, source.crs)
    numbers, labels, parts, count = [], [], [], 0
    for some in source.features(None if box is None else box.grown(_MARGIN)):
        shapes, other = shapes_of(some.geometries, np.arange(count, count + len(some.geometries)))
        if other:
            raise GeometryTypeError(source.path, sorted(other))
        vertices = shapes.vertices if same else transformed(shapes.vertices, source.crs, grid.crs)
        shapes = replace(shapes, vertices=to_pixels(grid.transform)(vertices))
        parts.append(_touching(shapes, grid, source, some.numbers, count))
        numbers.append(some.numbers)
        labels.append(some.labels)
        count += len(some.geometries)
    found = joined(parts)
    if not source.in_order and len(found):
        found = found.taken(np.argsort(np.concatenate(numbers)[found.owners], kind="stable"))
    return found, labels


def _touching(
    shapes: Shapes, grid: Grid, source: VectorFile, numbers: npt.NDArray[np.int64], first: int
) -> Shapes:
    """The shapes that may have pixels of a grid."""
    if not len(shapes):
        return shapes
    finite = np.isfinite(shapes.vertices).all(axis=1)
    known = np.logical_and.reduceat(finite, shapes.starts[:-1])
    somewhere = np.logical_or.reduceat(finite, shapes.starts[:-1])
    if (broken := np.flatnonzero(~known & somewhere)).size:
        number = int(numbers[shapes.owners[broken[0]] - first])
        if source.crs == grid.crs:
            raise DamagedFileError(
                source.path, KIND, f"feature {number} has coordinates that are not numbers"
            )
        raise TransformError(
            source.path,
            source.crs,
            grid.crs,
            f"feature {number} has vertices that cannot be transformed to it",
        )
    low, high = shapes.bounds()
    inside = (low <= (grid.width, grid.height)).all(axis=1) & (high >= 0).all(axis=1)
    return shapes.taken(np.flatnonzero(known & inside))


def _coded(labels: pa.Array, source: VectorFile) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """The different labels in their order, and the code of each."""
    encoded = labels.dictionary_encode()
    if type_class(labels.type) == "text":
        values = objects([_text(one, source) for one in encoded.dictionary.cast(pa.binary()).to_pylist()])
    else:
        values = encoded.dictionary.to_numpy(zero_copy_only=False)
    order = np.argsort(values, kind="stable")
    codes = np.empty(len(order), dtype=np.int64)
    codes[order] = np.arange(len(order))
    return values[order], codes[encoded.indices.to_numpy(zero_copy_only=False)]


def _text(label: bytes, source: VectorFile) -> str:
    """A label as text; in the encoding of the file, if GDAL did not convert it."""
    for encoding in ("utf-8", source.encoding):
        try:
            return label.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    raise ColumnTypeError(source.field, source.path, "string with text that is not UTF-8", "target")
