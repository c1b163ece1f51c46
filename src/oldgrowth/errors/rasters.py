"""Errors about scenes, labels on maps, and maps."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from ..messages.surface import listed
from .base import DataError


class ExpressionError(DataError):
    """A feature computed from bands has an expression that is not allowed."""

    def __init__(self, name: str, text: object, why: str) -> None:
        super().__init__(f"The expression of {name!r}, {text!r}, cannot be used: {why}.")


class GridError(DataError):
    """Two rasters do not have the same grid."""

    def __init__(self, file: str, grid: object, reference: str, reference_grid: object) -> None:
        super().__init__(
            f"{file} does not fit the grid of {reference}. It has {grid}; {reference} has {reference_grid}. "
            "Bands must have the grid of the first band, or pixels a whole number of times as large from the "
            "same corner. Of bands of different sizes, name one of the finest first. If these are files of "
            "several scenes, give the scenes as a list."
        )


class MissingCRSError(DataError):
    """A raster or a vector file does not tell where it lies."""

    def __init__(self, file: str, why: str, tool: str = "gdal_edit -a_srs") -> None:
        super().__init__(
            f"{file} has no coordinate reference system, {why}. Set one, for example with {tool}."
        )


class BandError(DataError):
    """A scene lacks bands, or has them twice."""

    def __init__(self, where: str, missing: Sequence[str], bands: Sequence[str], why: str = "") -> None:
        near = [name for one in missing for name in get_close_matches(one, bands, n=1)]
        hint = f"Its bands are {listed(bands)}." if bands else "It has none."
        if near:
            hint = f"Did you mean {' or '.join(map(repr, dict.fromkeys(near)))}? {hint}"
        noun = "band" if len(missing) == 1 else "bands"
        super().__init__(f"{where} has no {noun} {listed(missing)}{why}. {hint}")


class DuplicateBandError(DataError):
    """Two bands of a scene have the same name."""

    def __init__(self, where: str, name: str, file: str, other: str) -> None:
        super().__init__(
            f"{where} has two bands named {name!r}, in {file} and {other}. Choose other files, or, if these "
            "are several scenes, give them as a list."
        )


class RecipeError(DataError):
    """The features of a scene are made in another way than those that a forest was trained on."""

    def __init__(self, where: str, what: str, found: object, wanted: object) -> None:
        super().__init__(
            f"{where} differs from the scenes that the forest was trained on: {what} is {found}, and was "
            f"{wanted}."
        )


class PatchError(DataError):
    """A scene was opened with another size of patches than the forest was trained on."""

    def __init__(self, where: str, patch: int, wanted: int) -> None:
        super().__init__(
            lambda say: (
                f"{where} was opened with {say('patch', patch)}, but the forest was trained on patches of "
                f"{wanted} x {wanted} pixels: open it with {say('patch', wanted)}."
            )
        )


class ComplexBandError(DataError):
    """A band has complex numbers, which cannot be features."""

    def __init__(self, file: str, band: str) -> None:
        super().__init__(
            f"Band {band!r} of {file} has complex numbers, which cannot be features. Write their "
            "amplitude and phase, or real and imaginary parts, as bands of their own."
        )


class RemoteRasterError(DataError):
    """A scene is not in local files, whose changes can be noticed."""

    def __init__(self, source: str) -> None:
        super().__init__(
            f"{source} is not a local file. Scenes are read several times, from local files: copy it, or "
            "unpack it, first."
        )


class MissingMaskError(DataError):
    """A scene has no file that matches the pattern of its mask."""

    def __init__(self, where: str, pattern: str) -> None:
        super().__init__(f"{where} has no file for its mask: none matches {pattern!r}.")


class NoLabelsError(DataError):
    """No pixel of a scene has a label."""

    def __init__(self, source: str, what: str) -> None:
        super().__init__(f"{source} labels no pixel: {what}.")


class GeometryTypeError(DataError):
    """Geometries with labels are neither polygons nor points."""

    def __init__(self, file: str, types: Sequence[str]) -> None:
        super().__init__(
            f"{file} has geometries of type {', '.join(types)}: labels are those of polygons and points. "
            "Convert them: lines by a buffer around them, curves with ogr2ogr -nlt CONVERT_TO_LINEAR."
        )


class TransformError(DataError):
    """Labels cannot be transformed to the coordinate reference system of a scene."""

    def __init__(self, file: str, crs: object, scene: object, reason: object) -> None:
        text = " ".join(str(reason).split()).rstrip(".")
        super().__init__(
            f"The labels of {file} cannot be transformed from {crs} to {scene}, that of the scene: {text}. "
            "Cut them to the surroundings of the scene."
        )


class LabelledSceneError(DataError):
    """Labels are given for a scene that has some."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The scene has labels already, of {name!r}: give labels to the scene as it was opened, and "
            "split it afterwards."
        )


class NoRowsError(DataError):
    """No pixel of a scene is left as a row."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where} has no rows: {what}.")
