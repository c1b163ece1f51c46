"""sample_map: random points of each class of a map, whose true classes people then look up."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...checks import path_of
from ...errors import ParameterError
from ...system.atomic_file import check_replaceable
from ..maps.class_map import ClassMap, open_class_map
from .allocation import allocate
from .point_files import Points, driver_of, write_points

MIN_PER_CLASS = 50
# Fields of the points; shapefiles have names of at most ten characters.
CLASS, VALUE, PIXELS, REFERENCE = "map_class", "map_value", "map_pixels", "reference"


@dataclass(frozen=True)
class Stratum:
    """A class of a map: its pixel value, its name, and how many of its pixels were drawn."""

    value: int
    label: str
    pixels: int
    points: int


def sample_map(
    path: str | Path,
    n: int,
    output: str | Path,
    *,
    min_per_class: int = MIN_PER_CLASS,
    seed: int = 0,
    overwrite: bool = False,
) -> list[Stratum]:
    """Draw a stratified random sample of the pixels of a map of classes, and write it as points.

    The points are for an accuracy assessment: someone enters the true class of each one, from better images
    or on the ground, into its field ``reference``. `assess_map` or ``oldgrowth evaluate map.tif
    reference.gpkg`` then estimate accuracies and areas.

    Parameters
    ----------
    path : str or path
        A raster of one band of whole numbers, such as `write_map` writes. Nodata pixels are not drawn.
    n : int
        Number of points.
    output : str or path
        A GeoPackage (``.gpkg``), shapefile (``.shp``) or GeoJSON (``.geojson``). GeoJSON has
        longitudes and latitudes, the others the coordinates of the map.
    min_per_class : int
        Each class has at least this many points (or an equal share, if `n` is too small for that; or all of
        its pixels), so that the accuracies of rare classes can be estimated. The others are proportional to
        the pixels of the classes.
    seed : int
        Which pixels are drawn. The same seed draws the same pixels of the same map.
    overwrite : bool
        Whether an existing file may be replaced, with the reference labels that are in it.

    Returns
    -------
    list of Stratum
        Pixels and points of each class. In the file, each point is at the centre of its pixel and has the
        name and the pixel value of its class (``map_class``, ``map_value``), the number of pixels of that
        class (``map_pixels``) and an empty ``reference``. The order of the points is random.

    Examples
    --------
    >>> from oldgrowth import raster
    >>> strata = raster.sample_map("map.tif", 500, "reference.gpkg")  # doctest: +SKIP
    """
    n, least = _whole("n", n, 1), _whole("min_per_class", min_per_class, 0)
    seed, output = _whole("seed", seed, 0), path_of("output", output)
    driver_of(output)
    check_replaceable(output)
    if output.exists() and not overwrite:
        wanted = "a new file: this one may have reference labels (overwrite=True replaces it)"
        raise ParameterError("output", str(output), wanted)
    source = open_class_map(path)
    pixels = source.counts()
    points = allocate(n, list(pixels.values()), least)
    strata = [
        Stratum(value, source.label(value), size, drawn)
        for (value, size), drawn in zip(pixels.items(), points, strict=True)
    ]
    write_points(_drawn(source, strata, seed), output)
    return strata


def _whole(name: str, value: Any, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise ParameterError(name, value, f"a whole number of at least {least}")
    return number


def _drawn(source: ClassMap, strata: list[Stratum], seed: int) -> Points:
    """The points, in random order."""
    ranks = [
        np.sort(np.random.default_rng([seed, i]).choice(s.pixels, s.points, replace=False, shuffle=False))
        for i, s in enumerate(strata)
    ]
    found = _pixels_of_ranks(source, strata, ranks)
    of_stratum = np.repeat(np.arange(len(strata)), [len(places) for places in found])
    order = np.random.default_rng([seed, len(strata)]).permutation(len(of_stratum))
    of_stratum = of_stratum[order]
    lines, columns = np.divmod(np.concatenate(found)[order], source.grid.width)
    t = source.grid.transform
    x = t.c + (columns + 0.5) * t.a + (lines + 0.5) * t.b
    y = t.f + (columns + 0.5) * t.d + (lines + 0.5) * t.e
    chosen = [strata[i] for i in of_stratum.tolist()]
    fields: dict[str, npt.NDArray[Any]] = {
        CLASS: np.array([s.label for s in chosen], dtype=object),
        VALUE: np.array([s.value for s in chosen], dtype=np.int64),
        PIXELS: np.array([s.pixels for s in chosen], dtype=np.int64),
        REFERENCE: np.full(len(chosen), None, dtype=object),
    }
    return Points(x, y, source.grid.crs, fields)


def _pixels_of_ranks(
    source: ClassMap, strata: list[Stratum], ranks: list[npt.NDArray[np.int64]]
) -> list[npt.NDArray[np.int64]]:
    """The pixels of each class that have these numbers, if pixels of a class are counted along the lines."""
    found: list[list[npt.NDArray[np.int64]]] = [[] for _ in strata]
    seen = [0] * len(strata)
    numbers = {stratum.value: i for i, stratum in enumerate(strata)}
    for strip in source.strips():
        for value, count in strip.counts().items():
            i = numbers[value]
            first, last = np.searchsorted(ranks[i], [seen[i], seen[i] + count])
            if last > first:
                chosen = strip.places(value)[ranks[i][first:last] - seen[i]]
                found[i].append(chosen.astype(np.int64) + strip.first * source.grid.width)
            seen[i] += count
    return [np.concatenate(parts) for parts in found]
