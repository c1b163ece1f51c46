"""assess_map: the accuracy of a map, from points of it whose true classes are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...datasets.files import SourceFile
from ...errors import (
    MissingColumnError,
    NotASampleError,
    OtherMapError,
)
from ...messages.log import warn
from ...messages.surface import listed
from ...messages.warnings import SampleWarning
from ..maps.class_map import ClassMap, open_class_map
from .accuracy import Accuracy, area_adjusted
from .point_files import Points, read_points
from .references import reference_labels, whole
from .sample import PIXELS, REFERENCE, VALUE


def assess_map(
    path: str | Path, points: str | Path, field: str = REFERENCE, *, layer: str | None = None
) -> Accuracy:
    """Estimate the accuracy of a map and the areas of its classes, with 95 % confidence intervals.

    Parameters
    ----------
    path : str or path
        The map of classes that the points were drawn from.
    points : str or path
        The file of `sample_map`, with the true classes entered.
    field : str
        The field with the true class of each point: its name, or its pixel value on the map. Blanks around
        names do not count. Points without a class are left out, with a warning. A class that the map does
        not have is also warned of; the map never finds it, and its area is estimated, too.
    layer : str, optional
        The layer of a file with several, such as a GeoPackage to which others were added.

    Returns
    -------
    Accuracy
        Overall, user's and producer's accuracies and areas, weighted by the areas of the classes on the
        map (Olofsson et al. 2014, see `area_adjusted`).

    Notes
    -----
    Names of classes can be numbers that are pixel values of other classes: classes -5, 1 and 2 have the pixel
    values 1, 2 and 3, and False and True have 1 and 2. Labels that could be either are read as the others
    are: as names if there is a -5, as pixel values if there is a 3. If there are both, the labels are
    refused. If there is neither, they are read as names, with a warning.

    Examples
    --------
    >>> from oldgrowth import raster
    >>> found = raster.assess_map("map.tif", "reference.gpkg")  # doctest: +SKIP
    >>> found.overall.value, found.overall.interval  # doctest: +SKIP
    """
    source = open_class_map(path)
    file, drawn = read_points(points, layer)
    missing = [name for name in (VALUE, PIXELS) if name not in drawn.fields]
    if missing:
        raise NotASampleError(file.path, f"has no field {missing[0]!r}, which points of a sample have")
    if field not in drawn.fields:
        raise MissingColumnError(field, file.path, list(drawn.fields), "field")
    values, sizes = _checked(source, file, drawn)
    names = {value: source.label(value) for value in sizes}
    labels = reference_labels(file, drawn.fields[field], field, names)
    counts, classes = _counted(values, labels, names)
    _warn_of_single_points(counts, list(sizes.values()), classes)
    return area_adjusted(counts, list(sizes.values()), classes, source.pixel_hectares)


def _checked(source: ClassMap, file: SourceFile, drawn: Points) -> tuple[list[int], dict[int, int]]:
    """The pixel value of each point, and the pixels of each class; refuse points of another map."""
    places = _places(source, file, drawn)
    values, sizes = _looked_up(source, places)
    were = [whole(value) for value in drawn.fields[VALUE].tolist()]
    changed = [i for i, (now, then) in enumerate(zip(values, were, strict=True)) if now != then]
    if changed:
        i = changed[0]
        now, then = (_named(source, value) for value in (values[i], were[i]))
        what = (
            f"{len(changed):,} of its {len(drawn):,} points have another class there than in {VALUE!r}: "
            f"point {i + 1:,} has {now}, not {then}"
        )
        raise OtherMapError(file.path, source.file.path, what)
    found = [value for value in values if value is not None]
    for value, size in dict(zip(found, drawn.fields[PIXELS].tolist(), strict=True)).items():
        if whole(size) != sizes[value]:
            what = f"its class {source.label(value)!r} has {sizes[value]:,} pixels, but {PIXELS!r} is {size}"
            raise OtherMapError(file.path, source.file.path, what)
    return found, sizes


def _named(source: ClassMap, value: int | None) -> str:
    return "none" if value is None else repr(source.label(value))


def _places(source: ClassMap, file: SourceFile, drawn: Points) -> npt.NDArray[np.int64]:
    """The pixels of the points, counted along the lines of the map; each once, and within it."""
    grid = source.grid
    x, y = drawn.moved_to(grid.crs)
    columns, lines = (np.floor(v) for v in ~grid.transform @ (x, y))
    inside = (columns >= 0) & (columns < grid.width) & (lines >= 0) & (lines < grid.height)
    outside = np.flatnonzero(~inside)
    if len(outside):
        i = outside[0]
        what = (
            f"{len(outside):,} of its {len(drawn):,} points are outside the map; point {i + 1:,} is at "
            f"({x[i]:g}, {y[i]:g}), the map has {grid}"
        )
        raise OtherMapError(file.path, source.file.path, what)
    places = lines.astype(np.int64) * grid.width + columns.astype(np.int64)
    same = Counter(places.tolist()).most_common(1)[0]
    if same[1] > 1:
        first, second = np.flatnonzero(places == same[0])[:2] + 1
        raise NotASampleError(file.path, f"has several points in one pixel: {first:,} and {second:,}")
    return places


def _looked_up(source: ClassMap, places: npt.NDArray[np.int64]) -> tuple[list[int | None], dict[int, int]]:
    """The value of each of these pixels, None without a class; and the pixels of each class."""
    values: list[int | None] = [None] * len(places)
    counts: Counter[int] = Counter()
    order = np.argsort(places)
    ordered = places[order]
    for strip in source.strips():
        source.add(counts, strip.counts())
        begin = strip.first * source.grid.width
        first, last = np.searchsorted(ordered, [begin, begin + strip.values.size])
        for i in order[first:last].tolist():
            at = int(places[i]) - begin
            if strip.valid.flat[at]:
                values[i] = int(strip.values.flat[at])
    return values, source.checked(counts)


def _counted(
    values: list[int], labels: list[str | None], names: Mapping[int, str]
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Points by class of the map and reference class, and the names of all classes."""
    others = {label for label in labels if label is not None} - set(names.values())
    classes = [*names.values(), *sorted(others)]
    rows = {value: i for i, value in enumerate(names)}
    columns = {name: i for i, name in enumerate(classes)}
    counts = np.zeros((len(rows), len(classes)), dtype=np.int64)
    for value, label in zip(values, labels, strict=True):
        if label is not None:
            counts[rows[value], columns[label]] += 1
    return counts, classes


def _warn_of_single_points(counts: npt.NDArray[np.int64], sizes: list[int], classes: list[str]) -> None:
    points = counts.sum(axis=1).tolist()
    single = [name for name, n, size in zip(classes, points, sizes, strict=False) if n == 1 < size]
    if single:
        what = f"Only one point has a reference label in the class {listed(single)} of the map"
        warn(f"{what}: intervals that depend on it are unknown.", SampleWarning, stacklevel=3)
