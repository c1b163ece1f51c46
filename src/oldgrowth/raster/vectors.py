"""Labels of pixels from polygons and points, in any coordinate reference system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyogrio
import shapely
from affine import Affine
from rasterio import features, warp

from ..datasets.files import SourceFile, find_files
from ..datasets.labels import CodedLabels, Labels, objects
from ..errors import DamagedFileError, MissingColumnError, MissingCRSError, NoDataError, NoLabelsError
from .grid import Grid
from .layers import Layers
from .strips import Strip

EXTENSIONS = (".gpkg", ".shp", ".geojson", ".json", ".fgb", ".gml", ".kml")
KIND = "a vector file"


@dataclass(frozen=True)
class Shapes:
    """Geometries on the grid of a scene, with a tree to find them, and the code of each one's label."""

    geometries: npt.NDArray[Any]
    codes: npt.NDArray[np.int32]
    tree: shapely.STRtree


@dataclass(frozen=True)
class CodedPixels:
    """Codes of labels by line and pixel; negative where there is none."""

    codes: npt.NDArray[np.int32]
    values: npt.NDArray[Any]

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        return self.codes >= 0

    def at(self, lines: npt.NDArray[np.intp], pixels: npt.NDArray[np.intp]) -> Labels:
        codes = self.codes[lines, pixels]
        return CodedLabels(codes, self.values) if self.values.dtype.kind == "O" else self.values[codes]


class VectorLabels:
    """Labels of polygons and points.

    A pixel has the label of the polygon that its centre is in, or of a point in it. Where several overlap,
    the last one in the file counts.
    """

    def __init__(self, path: Any, field: str | None, scenes: Sequence[Layers]) -> None:
        (self._file,) = find_files(path, EXTENSIONS)
        geometries, values, crs, self.name = _read(self._file, field)
        self._values, codes = _coded(values)
        self._grids = [layers.grid for layers in scenes]
        self._shapes = [_placed(geometries, codes, crs, grid) for grid in self._grids]
        if not any(len(shapes.geometries) for shapes in self._shapes):
            where = "; ".join(f"{layers.where}, {layers.grid}" for layers in scenes[:3])
            raise NoLabelsError(
                self._file.path, f"none of its {len(geometries):,} geometries is within {where}"
            )

    def read(self, strip: Strip) -> CodedPixels:
        grid, shapes = self._grids[strip.scene], self._shapes[strip.scene]
        codes = np.full((strip.stop - strip.first, grid.width), -1, dtype=np.int32)
        left, right = grid.transform @ (0, strip.first), grid.transform @ (grid.width, strip.stop)
        found = np.sort(shapes.tree.query(shapely.box(*np.minimum(left, right), *np.maximum(left, right))))
        if len(found):
            features.rasterize(
                zip(shapes.geometries[found], shapes.codes[found].tolist(), strict=True),
                out=codes,
                transform=grid.transform @ Affine.translation(0, strip.first),
            )
        return CodedPixels(codes, self._values)

    def fingerprint(self) -> dict[str, Any]:
        return {"file": self._file.described(), "field": self.name}


def _read(file: SourceFile, field: str | None) -> tuple[npt.NDArray[Any], npt.NDArray[Any], Any, str]:
    """The geometries of a file, the values of a field, their CRS, and the name of the field."""
    try:
        with file.watched(KIND):
            known = pyogrio.read_info(file.path)["fields"].tolist()
            if field is None and len(known) == 1:
                field = known[0]
            if field not in known:
                raise MissingColumnError([str(field)], file.path, known)
            meta, _, wkb, columns = pyogrio.raw.read(file.path, columns=[field])
    except pyogrio.errors.DataSourceError as error:
        raise DamagedFileError(file.path, KIND, error) from error
    if meta["crs"] is None:
        raise MissingCRSError(file.path, "so that its geometries cannot be placed")
    if wkb is None or not len(wkb):
        raise NoDataError(file.path, "it has no geometries")
    return shapely.from_wkb(wkb), columns[0], meta["crs"], str(field)


def _coded(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    """The different labels, and the code of each value; negative where it is missing."""
    present = np.array([value is not None and value == value for value in values.tolist()], dtype=bool)
    codes = np.full(len(values), -1, dtype=np.int32)
    kept = values[present]
    if values.dtype.kind == "O":
        labels, places = np.unique(kept.astype(str), return_inverse=True)
        codes[present] = places
        return objects(labels.tolist()), codes
    labels, codes[present] = np.unique(kept, return_inverse=True)
    return labels, codes


def _placed(geometries: npt.NDArray[Any], codes: npt.NDArray[np.int32], crs: Any, grid: Grid) -> Shapes:
    """Geometries with labels, transformed to a grid, that touch it."""
    usable = (codes >= 0) & ~shapely.is_missing(geometries) & ~shapely.is_empty(geometries)

    def moved(points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        xs, ys = warp.transform(crs, grid.crs, points[:, 0], points[:, 1])
        return np.column_stack([xs, ys])

    found = shapely.transform(shapely.force_2d(geometries[usable]), moved)
    (x0, y0), (x1, y1) = grid.transform @ (0, 0), grid.transform @ (grid.width, grid.height)
    touching = shapely.intersects(found, shapely.box(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)))
    found = found[touching]
    return Shapes(found, codes[usable][touching], shapely.STRtree(found))
