"""Polygons and points in pixels of a scene, and the pixels that they cover, found by GDAL.

Their vertices are shifted to the lines that are wanted in a way that loses nothing: the pixels are those that
GDAL finds in the whole scene at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely
from affine import Affine
from rasterio import features

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Move = Callable[[Floats], Floats]  # of coordinates, in two columns

VERTICES = 1 << 16  # handed to GDAL at a time
VERTEX_BYTES = 300  # of a vertex while GDAL has it: lists, floats, GDAL's own
_MULTIPLE = (4, 5, 6, 7)  # shapely's numbers of types: those with parts
_POINT, _POLYGON = 0, 3


@dataclass(frozen=True)
class Shapes:
    """Shapes that have rings that have vertices, in the order in which they count.

    A point is a ring of one vertex. `owners` are the numbers of the geometries that shapes are parts of.
    """

    vertices: Floats  # pixels and lines
    rings: Whole  # where each ring begins, and the end
    shapes: Whole  # which ring is the first of each shape, and the end
    owners: Whole

    def __len__(self) -> int:
        return len(self.owners)

    @property
    def starts(self) -> Whole:
        """The first vertex of each shape, and the end."""
        return self.rings[self.shapes]

    @property
    def most_vertices(self) -> int:
        return int(np.diff(self.starts).max(initial=0))

    def bounds(self) -> tuple[Floats, Floats]:
        """The lowest and the highest coordinates of each shape."""
        if not len(self):
            return np.empty((0, 2)), np.empty((0, 2))
        first = self.starts[:-1]
        return np.minimum.reduceat(self.vertices, first), np.maximum.reduceat(self.vertices, first)

    def taken(self, chosen: npt.NDArray[Any]) -> Shapes:
        """Some of the shapes, in the order of their numbers."""
        rings = ranges(self.shapes[:-1][chosen], np.diff(self.shapes)[chosen])
        vertices = ranges(self.rings[:-1][rings], np.diff(self.rings)[rings])
        return Shapes(
            self.vertices[vertices],
            ends(np.diff(self.rings)[rings]),
            ends(np.diff(self.shapes)[chosen]),
            self.owners[chosen],
        )

    def geometries(self, first_line: int, flip: bool) -> Iterator[dict[str, Any]]:
        """The shapes as GDAL wants them, with lines counted from `first_line`; upwards if flipped."""
        moved = self.vertices - (0.0, float(first_line))
        points = (moved * (1.0, -1.0) if flip else moved).tolist()
        edges, shapes = self.rings.tolist(), self.shapes.tolist()
        for i in range(len(self)):
            rings = [points[edges[ring] : edges[ring + 1]] for ring in range(shapes[i], shapes[i + 1])]
            if len(rings[0]) == 1:
                yield {"type": "Point", "coordinates": rings[0][0]}
            else:
                yield {"type": "Polygon", "coordinates": rings}


def joined(parts: Sequence[Shapes]) -> Shapes:
    """The shapes of several parts, one after the other."""
    return Shapes(
        np.concatenate([part.vertices for part in parts] or [np.empty((0, 2))]),
        ends(np.concatenate([np.diff(part.rings) for part in parts] or [np.empty(0, np.int64)])),
        ends(np.concatenate([np.diff(part.shapes) for part in parts] or [np.empty(0, np.int64)])),
        np.concatenate([part.owners for part in parts] or [np.empty(0, np.int64)]),
    )


def shapes_of(geometries: npt.NDArray[Any], owners: Whole) -> tuple[Shapes, set[str]]:
    """The polygons and points that geometries consist of, and the types of others that were found."""
    while np.isin(shapely.get_type_id(geometries), _MULTIPLE).any():
        geometries, whole = shapely.get_parts(geometries, return_index=True)
        owners = owners[whole]
    present = ~(shapely.is_missing(geometries) | shapely.is_empty(geometries))
    geometries, owners = geometries[present], owners[present]
    types = shapely.get_type_id(geometries)
    other = {geometry.geom_type for geometry in geometries[~np.isin(types, (_POINT, _POLYGON))]}
    if other:
        return joined([]), other
    (points,) = np.nonzero(types == _POINT)
    (polygons,) = np.nonzero(types == _POLYGON)
    rings, of_polygon = shapely.get_rings(geometries[polygons], return_index=True)
    sizes = np.concatenate([shapely.get_num_points(rings), np.ones(len(points), dtype=np.int64)])
    owner = np.concatenate([polygons[of_polygon], points])
    sizes = sizes[np.argsort(owner, kind="stable")]
    counts = np.bincount(owner, minlength=len(geometries))
    vertices = shapely.get_coordinates(geometries)  # exterior rings before interior ones, as in `sizes`
    return Shapes(vertices, ends(sizes), ends(counts), owners.astype(np.int64)), set()


def to_pixels(transform: Affine) -> Move:
    """From coordinates of the map to pixels and lines, to the last bit as GDAL computes them."""
    if transform.b == 0 and transform.d == 0:
        scale = (1 / transform.a, 1 / transform.e)
        shift = (-transform.c / transform.a, -transform.f / transform.e)
        return lambda points: np.asarray(points * scale + shift)
    a, b, c, d, e, f = transform[:6]
    by = 1 / (a * e - b * d)
    pixel = ((b * f - c * e) * by, e * by, -b * by)
    line = ((-a * f + c * d) * by, -d * by, a * by)
    return lambda points: np.column_stack(
        [shift + points[:, 0] * x + points[:, 1] * y for shift, x, y in (pixel, line)]
    )


def burn(
    shapes: Shapes, values: npt.NDArray[Any], out: npt.NDArray[Any], first_line: int, flip: bool
) -> None:
    """Write the value of each shape to its pixels: those whose centre a polygon has, and those with a point.

    `out` are the lines from `first_line` on. Shapes that come later replace those before them.
    """
    low, high = shapes.bounds()
    (chosen,) = np.nonzero((low[:, 1] <= first_line + len(out)) & (high[:, 1] >= first_line))
    if not len(chosen):
        return
    group = np.cumsum(np.diff(shapes.starts)[chosen]) // VERTICES
    for part in np.split(chosen, np.flatnonzero(np.diff(group)) + 1):
        features.rasterize(
            zip(shapes.taken(part).geometries(first_line, flip), values[part].tolist(), strict=True),
            out=out,
            transform=Affine.scale(1.0, -1.0 if flip else 1.0),  # GDAL turns rings by how they lie on the map
        )


def ends(sizes: npt.NDArray[Any]) -> Whole:
    """Where parts of these sizes begin, and the end of the last one."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def ranges(starts: npt.NDArray[Any], sizes: npt.NDArray[Any]) -> Whole:
    """The numbers of several ranges, one after the other."""
    return np.repeat(starts - ends(sizes)[:-1], sizes) + np.arange(int(np.sum(sizes)))
