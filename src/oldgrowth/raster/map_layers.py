"""What a map file holds: classes, probabilities, confidence or values, and how they are stored as pixels."""

from __future__ import annotations

import colorsys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import numpy.typing as npt

from ..errors import ParameterError
from ..messages.text import printable

Color = tuple[int, int, int]
CONFIDENCES = ("margin", "entropy", "share")
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

    def pixels(self, means: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        """Pixel values of rows, by row and band."""
        raise NotImplementedError


@dataclass(frozen=True)
class ClassLayer(MapLayer):
    """The class of the highest mean. Whole numbers are their own pixel values; others are counted from 1."""

    values: npt.NDArray[Any] | None = None

    def pixels(self, means: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        assert self.values is not None
        return self.values[np.argmax(means, axis=1)][:, None]


@dataclass(frozen=True)
class ProbabilityLayer(MapLayer):
    """The share of each class, in steps of 1/250 of a byte."""

    def pixels(self, means: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
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


def class_layer(classes: npt.NDArray[Any], colors: Mapping[Any, str] | None) -> ClassLayer:
    """The layer of a classifier's classes."""
    whole = classes.dtype.kind in "iu" and classes.min() >= 0 and classes.max() <= MOST_CLASSES
    values = classes.astype(np.int64) if whole else np.arange(1, len(classes) + 1)
    nodata = 0 if values.min() > 0 else int(values.max()) + 1 if values.max() >= 255 else 255
    highest = max(int(values.max()), nodata)
    if highest > MOST_CLASSES:
        raise ParameterError(
            "forest", f"one of {len(classes):,} classes", f"one of at most {MOST_CLASSES:,} classes"
        )
    dtype = np.dtype(np.uint8 if highest <= 255 else np.uint16)
    named = tuple((int(value), printable(str(label))) for value, label in zip(values, classes, strict=True))
    chosen = _colors(classes, colors or {})
    painted = tuple((value, color) for (value, _), color in zip(named, chosen, strict=True))
    return ClassLayer(dtype, nodata, ("class",), colors=painted, names=named, values=values.astype(dtype))


def probability_layer(classes: npt.NDArray[Any]) -> ProbabilityLayer:
    names = tuple(printable(str(label)) for label in classes)
    return ProbabilityLayer(np.dtype(np.uint8), 255, names, scale=1 / 250)


def confidence_layer(kind: str) -> ConfidenceLayer:
    if kind not in CONFIDENCES:
        raise ParameterError("confidence", kind, f"one of {', '.join(CONFIDENCES)}")
    return ConfidenceLayer(np.dtype(np.float32), float("nan"), (kind,), kind=kind)


def value_layer(name: str) -> ValueLayer:
    return ValueLayer(np.dtype(np.float32), float("nan"), (name,))


def _colors(classes: npt.NDArray[Any], given: Mapping[Any, str]) -> list[Color]:
    """A color for each class: the given one, or one of equally distant hues."""
    found = []
    for i, label in enumerate(classes.tolist()):
        if label in given:
            found.append(_parsed(label, given[label]))
        else:
            hue, light = (i * 0.61803398875) % 1.0, 0.45 + 0.15 * (i % 3)
            red, green, blue = colorsys.hls_to_rgb(hue, light, 0.65)
            found.append((round(255 * red), round(255 * green), round(255 * blue)))
    return found


def _parsed(label: Any, color: Any) -> Color:
    text = color.removeprefix("#") if isinstance(color, str) else ""
    try:
        red, green, blue = bytes.fromhex(text)
    except ValueError as error:
        raise ParameterError("colors", {label: color}, "colors such as '#1f77b4', by class") from error
    return red, green, blue


def band_xml(layer: MapLayer, band: int, grid_width: int, raw: str) -> str:
    """A band of a virtual raster (VRT) whose pixels are in a raw file, band by band in each pixel."""
    size, n = layer.dtype.itemsize, len(layer.bands)
    kinds = {"uint8": "Byte", "uint16": "UInt16", "float32": "Float32"}
    parts = [
        f'<VRTRasterBand dataType="{kinds[layer.dtype.name]}" band="{band + 1}" subClass="VRTRawRasterBand">',
        f"<Description>{escape(layer.bands[band])}</Description>",
        f"<NoDataValue>{layer.nodata}</NoDataValue>",
    ]
    if layer.scale != 1.0:
        parts.append(f"<Scale>{layer.scale!r}</Scale><Offset>0</Offset>")
    if layer.names:
        by_value = dict(layer.names)
        names = "".join(
            f"<Category>{escape(by_value.get(v, ''))}</Category>" for v in range(max(by_value) + 1)
        )
        parts.append(f"<CategoryNames>{names}</CategoryNames>")
    if layer.colors:
        by_value_color = dict(layer.colors)
        entries = (by_value_color.get(v, (0, 0, 0)) for v in range(max(by_value_color) + 1))
        table = "".join(f'<Entry c1="{r}" c2="{g}" c3="{b}" c4="255"/>' for r, g, b in entries)
        parts.append(f"<ColorInterp>Palette</ColorInterp><ColorTable>{table}</ColorTable>")
    parts += [
        f'<SourceFilename relativeToVRT="1">{escape(raw)}</SourceFilename>',
        f"<ImageOffset>{band * size}</ImageOffset><PixelOffset>{n * size}</PixelOffset>",
        f"<LineOffset>{n * size * grid_width}</LineOffset><ByteOrder>LSB</ByteOrder></VRTRasterBand>",
    ]
    return "".join(parts)
