"""Errors about samples of maps, by which their accuracy is assessed."""

from __future__ import annotations

from .base import DataError


class NotAClassMapError(DataError):
    """A raster is not a map of classes."""

    def __init__(self, file: str, what: str) -> None:
        super().__init__(
            f"{file} is not a map of classes: {what}. A map of classes has one band of whole numbers."
        )


class NotASampleError(DataError):
    """A vector file was not drawn from a map as a random sample of its classes."""

    def __init__(self, file: str, what: str) -> None:
        super().__init__(
            f"{file} {what}. Accuracies by area need points drawn at random from the classes of the map: "
            "draw them with `oldgrowth sample` or oldgrowth.raster.sample_map."
        )


class OtherMapError(DataError):
    """A sample does not fit a map."""

    def __init__(self, file: str, map_file: str, what: str) -> None:
        super().__init__(
            f"{file} was not drawn from {map_file}: {what}. Use the map that the points were drawn from, or "
            "draw new ones."
        )


class NoReferenceError(DataError):
    """No point of a sample has a reference label."""

    def __init__(self, file: str, field: str, points: int) -> None:
        super().__init__(
            f"None of the {points:,} points in {file} has a reference label: enter what is on the ground at "
            f"each point into its field {field!r}, for example in QGIS."
        )


class UnknownReferenceError(DataError):
    """No reference label is a class of the map."""

    def __init__(self, file: str, field: str, labels: str, classes: str) -> None:
        super().__init__(
            f"No reference label in {file} is a class of the map: the field {field!r} has {labels}, the "
            f"classes are {classes}."
        )


class AmbiguousReferenceError(DataError):
    """Some reference labels are names of classes, others are pixel values, and some can be both."""

    def __init__(self, file: str, field: str, label: str, name: str, value: str) -> None:
        super().__init__(
            f"The field {field!r} in {file} has names of classes and pixel values, so that {label!r} may be "
            f"the class {name!r}, or the pixel value of {value!r}. Enter the names of the classes everywhere."
        )


class EmptyStratumError(DataError):
    """A class of a map has no labelled point in a sample."""

    def __init__(self, label: str, pixels: int, share: float) -> None:
        super().__init__(
            f"The class {label!r} covers {pixels:,} pixels of the map ({share:.2%}), but no point of the "
            "sample in it has a reference label: accuracies and areas cannot be estimated without. Label "
            "some of its points."
        )
