"""What a map file holds: classes, probabilities, confidence or values, and how they are stored as pixels."""

from __future__ import annotations

import colorsys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...checks import one_of
from ...errors import ParameterError, TooManyClassesError
from ...messages.surface import listed
from ...messages.text import printable

Color = tuple[int, int, int]
CONFIDENCES = ("margin", "entropy", "share")
PROBABILITY_TYPES = ("uint8", "float32")
MOST_CLASSES = 65_535


@dataclass(frozen=True)
class MapLayer:
    """The pixels of one file: made of the means of the forest, one array for each band."""

    dtype: np.dtype[Any]
    nodata: float
    bands: tuple[str, ...]  # their descriptions
    scale: float = 1.0
    colors: tuple[tuple[int, Color], ...] = ()  # of pixel values
    names: tuple[tuple[int, str], ...] = ()  # of pixel values
    outputs: int = 1  # of the forest

    @property
    def pixel_bytes(self) -> int:
        """Of all bands."""
        return self.dtype.itemsize * len(self.bands)

    @property
    def made_bytes(self) -> int:
        """Memory of what is computed on the way to a pixel."""
        return 4 * 8 * self.outputs

    def pixels(self, means: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        """Pixel values of rows, by row and band."""
        raise NotImplementedError

    def described(self) -> tuple[Any, ...]:
        """All that makes a difference to the file."""
        about = (self.dtype.name, repr(self.nodata), self.bands, self.scale, self.colors, self.names)
        return type(self).__name__, *about


@dataclass(frozen=True)
class ClassLayer(MapLayer):
    """The class of the highest mean. Whole numbers are their own pixel values; others are counted from 1."""

    values: npt.NDArray[Any] | None = None

    def pixels(self, means: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        assert self.values is not None
        return self.values[np.argmax(means, axis=1)][:, None]


@dataclass(frozen=True)
class ProbabilityLayer(MapLayer):
    """The share of each class, as float32, or as a byte in steps of 1/250."""

    def pixels(self, means: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        if self.dtype.kind == "f":
            return means.astype(self.dtype)
        return np.rint(means / self.scale).astype(self.dtype)


@dataclass(frozen=True)
class ConfidenceLayer(MapLayer):
    """How sure the forest is: the margin of the first class over the second, 1 - entropy, or its share."""

    kind: str = "margin"

    def pixels(self, means: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        return confidence(means, self.kind).astype(self.dtype)[:, None]


@dataclass(frozen=True)
class ValueLayer(MapLayer):
    """The values of a regression."""

    def pixels(self, means: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        return means.astype(self.dtype)


def confidence(means: npt.NDArray[np.float64], kind: str) -> npt.NDArray[np.float64]:
    """From 0 to 1 for each row."""
    if kind == "share":
        return means.max(axis=1)
    if means.shape[1] == 1:
        return np.ones(len(means))
    if kind == "margin":
        two = np.partition(means, -2, axis=1)[:, -2:]
        return two[:, 1] - two[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(means > 0, means * np.log(means), 0.0)
    return 1 + terms.sum(axis=1) / np.log(means.shape[1])


def class_layer(classes: npt.NDArray[Any], colors: Mapping[Any, Any] | None) -> ClassLayer:
    """The layer of a classifier's classes.

    Whole numbers up to 65,535 are their own pixel values. Others, and texts, are counted from 1. Nodata is a
    value that no class has.
    """
    own = _own_values(classes)
    values = np.arange(1, len(classes) + 1) if own is None else own
    if len(values) > MOST_CLASSES:
        raise TooManyClassesError(len(values), MOST_CLASSES)
    nodata = _free_value(values)
    dtype = np.dtype(np.uint8 if max(int(values.max()), nodata) <= 255 else np.uint16)
    labels = classes if own is None else own
    named = tuple((int(value), printable(str(label))) for value, label in zip(values, labels, strict=True))
    chosen = _colors(classes, colors or {})
    painted = tuple((value, color) for (value, _), color in zip(named, chosen, strict=True))
    return ClassLayer(
        dtype,
        nodata,
        ("class",),
        colors=painted,
        names=named,
        outputs=len(classes),
        values=values.astype(dtype),
    )


def _free_value(values: npt.NDArray[np.int64]) -> int:
    """A pixel value that no class has: 0, 255 or the one after the last class, or else the highest."""
    if values.min() > 0:
        return 0
    highest = int(values.max())
    if highest < MOST_CLASSES:
        return 255 if highest < 255 else highest + 1
    return int(np.setdiff1d(np.arange(MOST_CLASSES), values)[-1])


def _own_values(classes: npt.NDArray[Any]) -> npt.NDArray[np.int64] | None:
    """The classes as pixel values; None if they cannot be."""
    if classes.dtype.kind not in "iuf" or not len(classes):
        return None
    if not (classes.min() >= 0 and classes.max() <= MOST_CLASSES):
        return None
    values = classes.astype(np.int64)
    return values if bool((values == classes).all()) else None


def probability_layer(classes: npt.NDArray[Any], kind: str = "uint8") -> ProbabilityLayer:
    """The share of each class, one band for each."""
    one_of("probability_type", kind, PROBABILITY_TYPES)
    names, n = tuple(printable(str(label)) for label in classes), len(classes)
    if kind == "float32":
        return ProbabilityLayer(np.dtype(np.float32), float("nan"), names, outputs=n)
    return ProbabilityLayer(np.dtype(np.uint8), 255, names, scale=1 / 250, outputs=n)


def confidence_layer(kind: str, outputs: int = 1) -> ConfidenceLayer:
    one_of("confidence_kind", kind, CONFIDENCES)
    return ConfidenceLayer(np.dtype(np.float32), float("nan"), (kind,), outputs=outputs, kind=kind)


def value_layer(name: str) -> ValueLayer:
    return ValueLayer(np.dtype(np.float32), float("nan"), (name,))


def some_colors(n: int) -> list[Color]:
    """Colours of distant hues."""
    found = []
    for i in range(n):
        hue, light = (i * 0.61803398875) % 1.0, 0.45 + 0.15 * (i % 3)
        red, green, blue = colorsys.hls_to_rgb(hue, light, 0.65)
        found.append((round(255 * red), round(255 * green), round(255 * blue)))
    return found


def _colors(classes: npt.NDArray[Any], given: Mapping[Any, Any]) -> list[Color]:
    """A color for each class: the given one, or another."""
    others = some_colors(len(classes))
    labels = classes.tolist()
    return [_parsed(label, given[label]) if label in given else others[i] for i, label in enumerate(labels)]


def _parsed(label: Any, color: Any) -> Color:
    text = color.removeprefix("#") if isinstance(color, str) else ""
    try:
        red, green, blue = bytes.fromhex(text) if len(text) == 6 else bytes(color)
    except (ValueError, TypeError) as error:
        wanted = "colours such as '#1f77b4' or (31, 119, 180), by class"
        raise ParameterError("colors", {label: color}, wanted) from error
    return red, green, blue


def check_colors(classes: npt.NDArray[Any], colors: Any) -> None:
    """Refuse colours that a person gave for classes that there are not."""
    if not isinstance(colors, Mapping):
        raise ParameterError("colors", colors, "a dictionary of classes and colours")
    known = set(classes.tolist())
    for label in colors:
        if label not in known:
            wanted = f"colours of classes of the forest, which are {listed(sorted(known, key=str))}"
            raise ParameterError("colors", {label: colors[label]}, wanted)
