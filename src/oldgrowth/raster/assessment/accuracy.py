"""Accuracies and areas of a map from a stratified random sample of it (Olofsson et al. 2014).

The sample has more points of rare classes than their area. Each point is therefore weighted by the area
that its class has on the map; the counts alone would overstate what is rare. Formulas are those of
https://doi.org/10.1016/j.rse.2014.02.015, section 4; names follow theirs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import EmptyStratumError, ParameterError

Z = 1.96  # standard errors on both sides of a 95 % interval, as in the paper
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """An estimate and its standard error. Either is NaN if the sample does not tell."""

    value: float
    error: float

    @property
    def margin(self) -> float:
        """Half of the 95 % confidence interval."""
        return Z * self.error

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval; it may reach beyond 0 and 1, as in the paper."""
        return self.value - self.margin, self.value + self.margin

    def times(self, factor: float) -> Estimate:
        return Estimate(self.value * factor, self.error * factor)

    def text(self, digits: int) -> str:
        """The estimate with half of its interval, such as "0.95 ± 0.02"; "-" for what is unknown."""
        if math.isnan(self.value):
            return "-"
        margin = "-" if math.isnan(self.error) else f"{self.margin:,.{digits}f}"
        return f"{self.value:,.{digits}f} ± {margin}"


@dataclass(frozen=True)
class ClassAccuracy:
    """What the sample tells of a class.

    `users` is the share of the class on the map that is right, NaN if the map does not have it; `producers`
    is the share of the class on the ground that the map shows, NaN if no point has it. `share` is its
    part of the area on the ground.
    """

    label: str
    mapped: int  # pixels of the map
    points: int  # of the sample, in these pixels
    users: Estimate
    producers: Estimate
    share: Estimate


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of a map, with 95 % confidence intervals; made by `area_adjusted` and `assess_map`.

    `counts` has a row for each class of the map and a column for each class, those of the map first.
    """

    overall: Estimate
    classes: tuple[ClassAccuracy, ...]
    counts: npt.NDArray[np.int64]
    pixels: int  # of all classes of the map
    pixel_hectares: float | None = None  # None if pixels differ in area, or are not measured in metres

    @property
    def area_unit(self) -> str:
        return "pixels" if self.pixel_hectares is None else "ha"

    def area(self, label: ClassAccuracy) -> Estimate:
        """The area of a class on the ground, in hectares or, if these are not known, in pixels."""
        return label.share.times(self.pixels * (self.pixel_hectares or 1))

    @property
    def headings(self) -> tuple[str, ...]:
        """What is in the columns of `cells`."""
        unit = self.area_unit
        return "class", "points", f"mapped, {unit}", "user's accuracy", "producer's accuracy", f"area, {unit}"

    def cells(self) -> list[tuple[str, ...]]:
        """A row of text for each class, with 95 % intervals."""
        rows: list[tuple[str, ...]] = []
        for label in self.classes:
            area, mapped = self.area(label), label.mapped * (self.pixel_hectares or 1)
            digits = 0 if self.pixel_hectares is None else max(0, 2 - len(str(int(area.value))) // 2)
            accuracies = label.users.text(3), label.producers.text(3)
            sizes = f"{label.points:,}", f"{mapped:,.{digits}f}"
            rows.append((label.label, *sizes, *accuracies, area.text(digits)))
        return rows

    def __str__(self) -> str:
        rows = [self.headings, *self.cells()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [f"Overall accuracy {self.overall.text(3)} (95 % interval)"]
        for first, *others in rows:
            cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
            lines.append("  ".join([first.ljust(widths[0]), *cells]))
        return "\n".join(lines)


def area_adjusted(
    counts: Any, mapped: Sequence[int], classes: Sequence[str], pixel_hectares: float | None = None
) -> Accuracy:
    """Estimate the accuracy of a map and the areas of its classes from a stratified random sample.

    The formulas are those of Olofsson et al. (2014): each class of the map is a stratum. They have no
    correction for the share of a class that is sampled; only if all of its pixels are, they add nothing to
    an error.

    Parameters
    ----------
    counts : array of shape (n_map, n_classes)
        How many points of each class of the map (rows) have each class on the ground (columns). Columns
        after the first `n_map` are classes that the map does not have: their producer's accuracy is 0, and
        their user's accuracy is not defined (NaN).
    mapped : sequence of int
        Pixels of each class of the map. Classes without pixels need no points.
    classes : sequence of str
        Names of the columns; those of the rows come first.
    pixel_hectares : float, optional
        Area of a pixel, if all are the same.

    Returns
    -------
    Accuracy
        If a class of several pixels has a single point, its share is known, but not its error: errors that
        depend on it are NaN.

    Examples
    --------
    >>> from oldgrowth import raster
    >>> found = raster.area_adjusted([[66, 9], [3, 497]], [200_000, 9_800_000], ["loss", "other"])
    >>> f"{found.overall.value:.3f} +- {found.overall.margin:.3f}"
    '0.992 +- 0.007'
    """
    n, sizes = _checked(counts, mapped, classes)
    for label, size, points in zip(classes, sizes, n.sum(axis=1), strict=False):
        if size > 0 and points == 0:
            raise EmptyStratumError(label, size, size / sizes.sum())
    sample = _Sample(n.astype(float), sizes.astype(float))
    found = tuple(
        ClassAccuracy(
            str(label),
            int(sizes[i]) if i < len(sizes) else 0,
            int(n[i].sum()) if i < len(sizes) else 0,
            sample.users(i),
            sample.producers(i),
            sample.share(i),
        )
        for i, label in enumerate(classes)
    )
    return Accuracy(sample.overall(), found, n, int(sizes.sum()), pixel_hectares)


def _checked(
    counts: Any, mapped: Sequence[int], classes: Sequence[str]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Counts and numbers of pixels as arrays."""
    n, sizes = _array(counts), _array(mapped)
    if n.ndim != 2 or n.dtype.kind not in "iu" or n.shape[0] > n.shape[1] or n.size == 0 or n.min() < 0:
        wanted = "whole numbers, a row for each class of the map and a column for at least each of these"
        raise ParameterError("counts", counts, wanted)
    if sizes.shape != n.shape[:1] or sizes.dtype.kind not in "iu" or sizes.min() < 0 or sizes.sum() == 0:
        raise ParameterError("mapped", mapped, f"numbers of pixels of {n.shape[0]} classes")
    if not hasattr(classes, "__len__") or len(classes) != n.shape[1]:
        raise ParameterError("classes", classes, f"the names of {n.shape[1]} classes")
    few = np.flatnonzero(n.sum(axis=1) > sizes)
    if len(few):
        wanted = f"at most the pixels of each class; {classes[few[0]]!r} has {sizes[few[0]]:,}"
        raise ParameterError("counts", counts, wanted)
    return n.astype(np.int64), sizes.astype(np.int64)


def _array(numbers: Any) -> npt.NDArray[Any]:
    """An array, of no numbers if the rows differ in length."""
    try:
        return np.asarray(numbers)
    except ValueError:
        return np.empty(0)


class _Sample:
    """The shares of classes within each stratum, with their variances."""

    def __init__(self, counts: Floats, sizes: Floats) -> None:
        points = counts.sum(axis=1)
        used = sizes > 0
        self.strata = np.flatnonzero(used).tolist()
        self.sizes, self.weights = sizes, sizes / sizes.sum()
        with np.errstate(invalid="ignore", divide="ignore"):
            self.shares = np.where(used[:, None], counts / points[:, None], 0.0)
            variances = self.shares * (1 - self.shares) / (points[:, None] - 1)
        # Nothing is uncertain where all pixels were looked at, or where there are none.
        self.variances = np.where((points < sizes)[:, None], variances, 0.0)

    def users(self, i: int) -> Estimate:
        if i not in self.strata:
            return Estimate(math.nan, math.nan)
        return Estimate(float(self.shares[i, i]), math.sqrt(self.variances[i, i]))

    def overall(self) -> Estimate:
        own = [(i, i) for i in self.strata]
        right = sum(self.sizes[i] * self.shares[i, i] for i in self.strata)
        return Estimate(float(right / self.sizes.sum()), self._error(own))

    def share(self, j: int) -> Estimate:
        value = float(self.sizes @ self.shares[:, j] / self.sizes.sum())
        return Estimate(value, self._error([(i, j) for i in self.strata]))

    def producers(self, j: int) -> Estimate:
        total = float(self.sizes @ self.shares[:, j])
        if total == 0:
            return Estimate(math.nan, math.nan)
        right = float(self.sizes[j] * self.shares[j, j]) if j in self.strata else 0.0
        value = right / total
        variance = 0.0
        for i in self.strata:
            factor = 1 - value if i == j else value
            variance += self.sizes[i] ** 2 * factor**2 * self.variances[i, j]
        return Estimate(value, math.sqrt(variance) / total)

    def _error(self, places: Sequence[tuple[int, int]]) -> float:
        """The standard error of a sum of shares of strata, weighted by their sizes."""
        return math.sqrt(sum(self.weights[i] ** 2 * self.variances[i, j] for i, j in places))
