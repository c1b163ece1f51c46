"""open_scene: rasters as a dataset."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from ...datasets.files import SourceFile
from ...datasets.walking import MAGIC
from ...errors import BandError, MissingMaskError, NoDataError, ParameterError
from ...messages.surface import in_words_of
from ..reading.bands import Bands, are_of_one_scene, find_bands, grid_of, placed
from ..reading.expression import Expression, parse_expression
from ..reading.fill_values import warn_of_fill
from ..reading.layers import Layers, Mask
from ..reading.masks import MaskRule, parse_mask
from ..reading.raster_files import find_rasters, identifier, look_at
from .scene import Scene

Source = str | Path
Sources = Source | Sequence[Source | Sequence[Source]]


def open_scene(
    source: Sources,
    *,
    patch: int = 1,
    bands: str | Sequence[str] | None = None,
    nodata: float | None = None,
    mask: tuple[Source, str] | None = None,
    extra: Mapping[str, str] | None = None,
) -> Scene:
    """Open one or several scenes as a dataset whose rows are pixels.

    A pixel is a row if it is valid: if no band has its nodata value or NaN there, and no mask excludes it.
    Rows are in the order of the scan, line by line. They are read in strips, so that scenes may be larger
    than memory.

    Parameters
    ----------
    source : path, glob or list
        Raster files (GeoTIFF, VRT, JPEG 2000, ERDAS Imagine) on this machine: a file with one or several
        bands, a directory or a glob of the files of one scene, or a list. A list of files whose bands all
        have different names is one scene; in any other list, each element is a scene of its own, possibly
        with another coordinate reference system. Scenes are matched by the names of their bands: each must
        have those of the first scene, in any order; others are not used.
    patch : int, default 1
        Side of the square of pixels around each pixel that are the features of a row: 1, 3, 5, ... Pixels
        that are not valid, or outside the scene, are missing values.
    bands : str or list of str, optional
        Names of bands, or patterns such as "B[2-7]", in the order of the features; by default all. A band is
        named by its description, or else by what distinguishes the name of its file from the others ("B2" of
        LC08_..._B2.TIF), or by its number ("B1", "B2", ...). The band of a single file of one band is "B1",
        unless the file is named like a band ("B2", "band4", "red", "nir", "VV"). Alpha bands are masks.
    nodata : float, optional
        The value of pixels without data, instead of the nodata tags of the files.
    mask : (file, rule), optional
        A raster, or a band of the scene, that tells which pixels do not count, and how: "bits 1,3,4" (where
        one of these bits is set), "values 0,255" or "not values 1". The file is a path, or a pattern within
        the directory of each scene.
    extra : dict, optional
        Features computed from bands: names and expressions such as ``"(B5 - B4) / (B5 + B4)"``, with
        ``+ - * / **``, numbers, parentheses and abs, sqrt, log, exp, minimum and maximum. A result that is
        not a finite number is a missing value, and so is any result of a division by zero, of the logarithm
        of 0 or of the root of a negative number within the expression.

    Returns
    -------
    Scene
        A dataset without a target; `Scene.with_labels` adds one.

    Notes
    -----
    The first band gives the grid. Others have the same one, or pixels a whole number of times as large, which
    are repeated; nothing is warped. Scale and offset of the files are applied. Values are float32: larger
    whole numbers than 16,777,216, and float64, are rounded. Bytes stay bytes where no value is missing.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np, rasterio
    >>> from oldgrowth import raster
    >>> path = os.path.join(tempfile.mkdtemp(), "scene.tif")
    >>> pixels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    >>> place = rasterio.Affine(30, 0, 820_000, 0, -30, 830_000)
    >>> with rasterio.open(
    ...     path, "w", "GTiff", 4, 3, 2, "EPSG:32637", place, "uint8", nodata=0
    ... ) as file:
    ...     file.write(pixels)
    >>> scene = raster.open_scene(path, extra={"ratio": "B1 / B2"})
    >>> scene.feature_names
    ('B1', 'B2', 'ratio')
    >>> next(scene.batches(2)).x
    array([[ 1.        , 13.        ,  0.07692308],
           [ 2.        , 14.        ,  0.14285715]], dtype=float32)
    >>> raster.open_scene(path, patch=3, bands="B1").n_features
    9
    """
    options = SceneOptions.checked(bands, nodata, mask, extra)
    size = _checked_patch(patch)
    layers = layers_of(source, options)
    _check_size(size, layers)
    for one in layers:
        warn_of_fill(one)
    return Scene(layers, size)


def layers_of(source: Any, options: SceneOptions) -> list[Layers]:
    """The layers of each scene, in the order of the first one."""
    first, *others = (_opened(one, options) for one in _scenes(source))
    return [first, *(_matched(other, first) for other in others)]


@dataclass(frozen=True)
class SceneOptions:
    """What all scenes have in common."""

    patterns: Sequence[str] | None
    nodata: float | None
    mask: tuple[str, MaskRule] | None
    extra: Mapping[str, str]

    @staticmethod
    def checked(bands: Any, nodata: Any, mask: Any, extra: Any) -> SceneOptions:
        patterns = [bands] if isinstance(bands, str) else bands
        is_list = isinstance(patterns, Sequence) and all(isinstance(name, str) for name in patterns)
        if patterns is not None and not (is_list and len(patterns)):
            raise ParameterError("bands", bands, "names of bands, or patterns such as 'B[2-7]'")
        if patterns is not None and len(set(patterns)) < len(patterns):
            raise ParameterError("bands", bands, "different names of bands, or patterns: one is given twice")
        is_number = isinstance(nodata, Real) and not isinstance(nodata, bool)
        if nodata is not None and not is_number:
            raise ParameterError("nodata", nodata, "a number")
        if extra is not None and not isinstance(extra, Mapping):
            raise ParameterError(
                "extra", extra, "names and expressions, as in {'ndvi': '(B5 - B4) / (B5 + B4)'}"
            )
        for name in extra or ():
            if not isinstance(name, str) or identifier(name) != name:
                raise ParameterError("extra", name, "names of letters, digits and underscores")
        number = None if nodata is None else float(nodata)
        return SceneOptions(patterns, number, None if mask is None else parse_mask(mask), dict(extra or {}))


def _checked_patch(patch: Any) -> int:
    if not isinstance(patch, Integral) or isinstance(patch, bool) or patch < 1 or patch % 2 == 0:
        raise ParameterError("patch", patch, "an odd number of pixels: 1, 3, 5, ...")
    return int(patch)


def _check_size(patch: int, layers: Sequence[Layers]) -> None:
    """Refuse patches of which some places are outside of all scenes, whatever the pixel."""
    width, height = (max(getattr(one.grid, side) for one in layers) for side in ("width", "height"))
    if patch // 2 >= min(width, height):
        most = 2 * min(width, height) - 1
        wanted = f"at most {most}: {layers[0].where} has {width} x {height} pixels"
        hint = " (scene_like opens it for a forest that was trained on such patches)"
        raise ParameterError("patch", patch, lambda say: in_words_of(say, wanted + hint, wanted))


def _scenes(source: Sources) -> list[Any]:
    """The sources of each scene: a list is of several scenes, unless it has the files of the bands of one."""
    if isinstance(source, str | Path):
        return [source]
    if not _is_list(source) or not all(_is_path(one) or _is_paths(one) for one in source):
        raise ParameterError("source", source, "a path, a glob, or a list of them")
    if not source:
        raise NoDataError("The list of scenes", "it is empty")
    paths = [str(one) for one in source if isinstance(one, str | Path)]
    if len(paths) == len(source) > 1 and all(os.path.isfile(os.path.expanduser(path)) for path in paths):
        return [paths] if are_of_one_scene(find_rasters(paths)) else paths
    return list(source)


def _is_path(source: Any) -> bool:
    return isinstance(source, str | Path)


def _is_list(source: Any) -> bool:
    return isinstance(source, Sequence) and not isinstance(source, str | bytes | bytearray)


def _is_paths(source: Any) -> bool:
    return _is_list(source) and all(map(_is_path, source))


def _opened(source: Any, options: SceneOptions) -> Layers:
    """The layers of one scene."""
    files = find_rasters(source)
    in_order = not isinstance(source, str | Path)
    where = f"the scene of {files[0].path} and other files" if in_order else str(source)
    mask_file = None if options.mask is None else _mask_file(options.mask[0], source)
    if mask_file is not None:
        files = [file for file in files if not os.path.samefile(file.path, mask_file.path)]
        if not files:
            raise NoDataError(where, "it has no raster beside the mask")
    found = find_bands(files, where, in_order)
    mask = None
    if options.mask is not None:
        found, mask = _with_mask(found, mask_file, *options.mask)
    return _layers(found, mask, options)


def _layers(found: Bands, mask: Mask | None, options: SceneOptions) -> Layers:
    chosen = found.bands if options.patterns is None else found.chosen(options.patterns)
    grid, reference = grid_of(chosen[0]), chosen[0].file.path
    expressions = tuple(_expression(name, text, found) for name, text in options.extra.items())
    names = {band.name for band in chosen}
    needed = {name for expression in expressions for name in expression.names}
    used = tuple(band for band in found.bands if band.name in needed - names)
    if options.nodata is not None:
        chosen, used = (tuple(band.with_nodata(options.nodata) for band in some) for some in (chosen, used))
        if not math.isnan(options.nodata) and all(band.nodata is None for band in (*chosen, *used)):
            wanted = f"a value that {chosen[0].dtype.name} pixels can have"
            raise ParameterError("nodata", options.nodata, wanted)
    chosen, used = placed(chosen, grid, reference), placed(used, grid, reference)
    if mask is not None:
        (on_grid,) = placed([mask.band], grid, reference)
        mask = replace(mask, band=on_grid)
    return Layers(found.where, grid, chosen, used, expressions, mask, options.nodata)


def _expression(name: str, text: Any, found: Bands) -> Expression:
    if found.named(name) is not None:
        raise ParameterError("extra", name, "a name that no band has")
    return parse_expression(name, text, found.names)


def _with_mask(found: Bands, file: SourceFile | None, pattern: str, rule: MaskRule) -> tuple[Bands, Mask]:
    """The mask of a scene: of a file, or one of the bands, which is no feature then."""
    if file is not None:
        (band, *others) = look_at(file)
        if others:
            raise ParameterError("mask", pattern, f"a raster of one band; {file.path} has {1 + len(others)}")
    else:
        named = found.named(pattern)
        if named is None or len(found.bands) == 1:
            raise ParameterError("mask", pattern, f"a file, or one of several bands of {found.where}")
        band = named
        found = replace(found, bands=tuple(other for other in found.bands if other is not band))
    rule.check_type(band.dtype, band.file.path)
    return found, Mask(band, rule, pattern)


def _mask_file(pattern: str, scene: Any) -> SourceFile | None:
    """The file of a mask: a path, or a pattern within the scene's directory; None if there is none."""
    beside = str(scene if isinstance(scene, str | Path) else scene[0])
    folder = beside if os.path.isdir(beside) else os.path.dirname(beside)
    path = os.path.expanduser(pattern)
    if not os.path.isfile(path):
        path = os.path.join(folder, pattern)
    if not MAGIC.search(path) and not os.path.isfile(path):
        return None
    try:
        files = find_rasters(path)
    except NoDataError as error:
        raise MissingMaskError(folder or ".", pattern) from error
    if len(files) > 1:
        wanted = f"the pattern of one file; {files[0].path} and {files[1].path} match"
        raise ParameterError("mask", pattern, wanted)
    return files[0]


def _matched(other: Layers, first: Layers) -> Layers:
    """The layers of another scene in the order of the first one."""
    by_name = {band.name: band for band in other.bands}
    wanted = [band.name for band in first.bands]
    missing = [name for name in wanted if name not in by_name]
    if missing:
        raise BandError(other.where, missing, list(by_name), f", which {first.where} has")
    return replace(other, bands=tuple(by_name[name] for name in wanted))
