"""Finds the bands of a scene: of one file, of a file for each band, of a directory, a glob or a VRT."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from ...datasets.files import SourceFile
from ...errors import BandError, ComplexBandError, DuplicateBandError, GridError, MissingCRSError
from .grid import Grid
from .raster_files import Band, identifier, look_at

# What files of single bands are called: "B2", "b02", "B8A", "band4"; or by what the band shows.
_NUMBERED = re.compile(r"b(?:and)?\d{1,2}[a-z]?", re.IGNORECASE)
_COLORS = ("coastal", "blue", "green", "yellow", "red", "rededge", "nir", "swir", "swir1", "swir2", "cirrus",
           "pan", "thermal", "vv", "vh", "hh", "hv")  # fmt: skip


@dataclass(frozen=True)
class Bands:
    """All bands of a scene."""

    where: str
    bands: tuple[Band, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(band.name for band in self.bands)

    def chosen(self, patterns: Sequence[str]) -> tuple[Band, ...]:
        """The bands of these names or patterns, in the order of the patterns."""
        found: dict[str, Band] = {}
        for pattern in patterns:
            matching = [band for band in self.bands if fnmatchcase(band.name, pattern)]
            if not matching:
                raise BandError(self.where, [pattern], self.names)
            found |= {band.name: band for band in matching if band.name not in found}
        return tuple(found.values())

    def named(self, name: str) -> Band | None:
        return next((band for band in self.bands if band.name == name), None)


def find_bands(files: Sequence[SourceFile], where: str, in_order: bool) -> Bands:
    """Find the bands of one scene.

    They are in the order of the files, or sorted by their names: B2 before B10.
    """
    looked = [look_at(file) for file in files]
    names = [_lone_name(files[0].path)] if len(files) == 1 else _names_of_files([file.path for file in files])
    found = [band for bands, name in zip(looked, names, strict=True) for band in _named(bands, name)]
    if len(files) > 1 and not in_order:
        found.sort(key=lambda band: _natural(band.name))
    _check_unique(found, where)
    return Bands(where, tuple(found))


def are_of_one_scene(files: Sequence[SourceFile]) -> bool:
    """Whether rasters of a list are the bands of one scene: no two bands have the same name.

    A date is no name. Where all files end with one, those of one scene have the same grid.
    """
    looked = [look_at(file) for file in files]
    own = [_names_of_files([file.path])[0] for file in files]
    if all(len(bands) == 1 and not bands[0].name for bands in looked) and all(map(_is_date, own)):
        return all(looked[0][0].grid.ratio_of(bands[0].grid) is not None for bands in looked)
    names = [band.name for bands, name in zip(looked, own, strict=True) for band in _named(bands, name)]
    return len(names) == len(set(names))


def placed(bands: Sequence[Band], grid: Grid, reference: str) -> tuple[Band, ...]:
    """Bands on the grid of a scene, which is that of the file `reference`."""
    found = []
    for band in bands:
        if band.dtype.kind == "c":
            raise ComplexBandError(band.file.path, band.name)
        ratio = grid.ratio_of(band.grid)
        if ratio is None:
            raise GridError(band.file.path, band.grid, reference, grid)
        found.append(replace(band, ratio=ratio))
    return tuple(found)


def grid_of(band: Band) -> Grid:
    """The grid of a scene: that of its first band."""
    if band.grid.crs is None:
        raise MissingCRSError(band.file.path, "so that labels and maps cannot be placed")
    return band.grid


def _named(bands: Sequence[Band], name: str) -> Sequence[Band]:
    """The bands of a file, named by their descriptions if they differ, or by file, or by number."""
    own = [band.name for band in bands]
    if len(set(own)) == len(own) and all(own):
        return bands
    if len(bands) == 1:
        return [replace(bands[0], name=name)]
    twice = {text for text in own if own.count(text) > 1}
    return [
        replace(band, name=f"B{band.index}" if band.name in twice or not band.name else band.name)
        for band in bands
    ]


def _names_of_files(paths: list[str]) -> list[str]:
    """Names for bands of single files: what is left of the files' names without what they have in common."""
    stems = [Path(path).stem for path in paths]
    if len(stems) == 1:
        return [identifier(stems[0].rsplit("_", 1)[-1])]
    different = next((i for i, marks in enumerate(zip(*stems, strict=False)) if len(set(marks)) > 1), None)
    common = min(stems, key=len)[:different]
    cut = max(common.rfind(mark) for mark in "_-. ") + 1
    return [identifier(stem[cut:]) for stem in stems]


def _lone_name(path: str) -> str:
    """The name of the only band of the only file: what satellites call it, as in LC08_..._B2.TIF, or B1.

    Dates and places in names of files differ from scene to scene, and do not name a band.
    """
    parts = Path(path).stem.split("_")
    numbered = next((part for part in reversed(parts) if _NUMBERED.fullmatch(part)), None)
    if numbered is not None:
        return identifier(numbered)
    if len(parts) > 1 and parts[-2].lower() == "band" and parts[-1].isdecimal():
        return identifier(parts[-1])
    return identifier(parts[-1]) if parts[-1].lower() in _COLORS else "B1"


def _is_date(name: str) -> bool:
    """Whether a name is made of digits alone, which `identifier` lets begin with a B."""
    return re.fullmatch(r"B?[0-9_]{4,}", name) is not None


def _natural(name: str) -> list[tuple[int, int, str]]:
    """A key that sorts B2 before B10."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(0, int(part), "") if part[0] in "0123456789" else (1, 0, part) for part in parts]


def _check_unique(bands: list[Band], where: str) -> None:
    seen: dict[str, Band] = {}
    for band in bands:
        if band.name in seen:
            raise DuplicateBandError(where, band.name, seen[band.name].file.path, band.file.path)
        seen[band.name] = band
