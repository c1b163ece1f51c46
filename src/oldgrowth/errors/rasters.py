"""Errors about scenes, labels on maps, and maps."""

from __future__ import annotations

from collections.abc import Sequence

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
            "same corner."
        )


class MissingCRSError(DataError):
    """A raster or a vector file does not tell where it lies."""

    def __init__(self, file: str, why: str) -> None:
        super().__init__(
            f"{file} has no coordinate reference system, {why}. Set one, for example with gdal_edit -a_srs."
        )


class BandError(DataError):
    """A scene lacks bands, or has them twice."""

    def __init__(self, where: str, what: str, bands: Sequence[str]) -> None:
        super().__init__(f"{where} {what}. Its bands are {', '.join(bands) or 'none'}.")


class NoLabelsError(DataError):
    """No pixel of a scene has a label."""

    def __init__(self, source: str, what: str) -> None:
        super().__init__(f"{source} labels no pixel: {what}.")
