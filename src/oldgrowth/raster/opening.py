"""open_scene: rasters as a dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..datasets.files import find_files
from ..errors import BandError, GridError, NoDataError, ParameterError
from .bands import EXTENSIONS, Band, Bands, find_bands
from .expression import parse_expression
from .layers import Layers, Mask
from .masks import parse_mask
from .scene import Scene

Source = str | Path


def open_scene(
    source: Source | Sequence[Source],
    *,
    patch: int = 1,
    bands: str | Sequence[str] | None = None,
    nodata: float | None = None,
    mask: tuple[Source, str] | None = None,
    extra: Mapping[str, str] | None = None,
) -> Scene:
    """Open one or several scenes as a dataset whose rows are pixels."""
    if not isinstance(patch, int) or patch < 1 or patch % 2 == 0:
        raise ParameterError("patch", patch, "an odd number of pixels: 1, 3, 5, ...")
    patterns = [bands] if isinstance(bands, str) else bands
    parsed = None if mask is None else parse_mask(mask)
    layers: list[Layers] = []
    for one in _scenes(source):
        mask_file = None if parsed is None else _mask_file(parsed[0], one)
        found = find_bands(one, [] if mask_file is None else [mask_file])
        layers.append(_layers(found, str(one), patterns, nodata, extra or {}))
        if parsed is not None and mask_file is not None:
            layers[-1] = replace(layers[-1], mask=Mask(_mask_band(mask_file, found), parsed[1]))
    for other in layers[1:]:
        if other.names != layers[0].names:
            raise BandError(other.where, f"does not have the bands of {layers[0].where}", other.names)
    return Scene(layers, patch)


def _scenes(source: Source | Sequence[Source]) -> list[Any]:
    """The sources of each scene: a list is of several scenes, unless it has the files of the bands of one."""
    if isinstance(source, str | Path):
        return [source]
    if not source:
        raise NoDataError("The list of scenes", "it is empty")
    if all(os.path.isfile(os.path.expanduser(str(one))) for one in source):
        files = [str(one) for one in source]
        try:
            found = find_bands(files)
        except (BandError, GridError):
            return list(source)
        if len({band.file.path for band in found.bands}) == len(found.bands):
            return [files]
    return list(source)


def _layers(
    found: Bands, where: str, patterns: Sequence[str] | None, nodata: float | None, extra: Mapping[str, str]
) -> Layers:
    chosen = found.bands if patterns is None else found.chosen(patterns, where)
    expressions = tuple(parse_expression(name, text, found.names) for name, text in extra.items())
    for expression in expressions:
        if expression.name in found.names:
            raise ParameterError("extra", expression.name, "a name that no band has")
    needed = {name for expression in expressions for name in expression.names}
    names = {band.name for band in chosen}
    used = tuple(band for band in found.bands if band.name in needed - names)
    if nodata is not None:
        chosen = tuple(replace(band, nodata=nodata) for band in chosen)
        used = tuple(replace(band, nodata=nodata) for band in used)
    return Layers(where, found.grid, chosen, used, expressions, None)


def _mask_file(pattern: str, scene: Any) -> str:
    """The file of a mask: a path, or a pattern within the scene's directory."""
    beside = scene if isinstance(scene, str | Path) else scene[0]
    folder = str(beside) if os.path.isdir(beside) else os.path.dirname(str(beside))
    inside = os.path.join(folder, pattern)
    files = find_files(pattern if os.path.isfile(pattern) else inside, EXTENSIONS)
    if len(files) > 1:
        raise ParameterError(
            "mask", pattern, f"the pattern of one file; {files[0].path} and {files[1].path} match"
        )
    return files[0].path


def _mask_band(file: str, scene: Bands) -> Band:
    found = find_bands(file)
    ratio = scene.grid.ratio_of(found.grid)
    if ratio is None:
        raise GridError(file, found.grid, scene.bands[0].file.path, scene.grid)
    return replace(found.bands[0], ratio=ratio)
