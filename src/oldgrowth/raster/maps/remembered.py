"""scene_like: a scene opened as a forest remembers the one that it was trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...datasets.recipe import damaged_entry
from ...errors import BandError, ParameterError, RememberedSceneError
from ..reading.fill_values import warn_of_fill
from ..reading.layers import Layers
from ..scenes.left_out import left_out_by
from ..scenes.opening import SceneOptions, layers_of
from ..scenes.scene import Scene

Source = str | Path
_UNSCALED = (1.0, 0.0)
_USED = ", which the forest was trained on"


@dataclass(frozen=True)
class Recipe:
    """Bands with their scales and offsets, expressions, patch, the mask, and the given nodata value."""

    bands: tuple[str, ...]
    extra: dict[str, str]
    patch: int
    scales: dict[str, tuple[float, float]]
    mask: tuple[str, str] | None
    nodata: float | None

    @staticmethod
    def of(forest: Any) -> Recipe:
        """What a forest remembers."""
        recipe = getattr(forest, "recipe_", None)
        if recipe is None:
            what = "it was not trained on a scene, but on a table. Open the scene with open_scene"
            raise RememberedSceneError(what)
        if (entry := damaged_entry(recipe)) is not None:
            raise RememberedSceneError(f"its entry {entry!r} is damaged")
        scales, mask, nodata = (recipe.get(name) for name in ("scale", "mask", "nodata"))
        return Recipe(
            tuple(recipe["bands"]),
            dict(recipe["extra"]),
            int(recipe["patch"]),
            {name: (float(scale), float(offset)) for name, (scale, offset) in (scales or {}).items()},
            None if mask is None else (mask[0], mask[1]),
            None if nodata is None else float(nodata),
        )


def colors_of(forest: Any) -> dict[Any, str]:
    """The colours of classes that a forest remembers."""
    recipe = getattr(forest, "recipe_", None) or {}
    return dict(recipe.get("colors") or {})


def scene_like(
    forest: Any,
    source: Source | Sequence[Source],
    *,
    mask: Source | tuple[Source, str] | bool | None = None,
    nodata: float | None = None,
) -> Scene:
    """Open a scene as the forest remembers the one that it was trained on.

    The same bands, found by their names, expressions and patch become the features; masked pixels and those
    without data are left out by the same rules.

    Parameters
    ----------
    forest : estimator
        A forest that was fitted on a scene, or loaded from a file.
    source : path, glob or list
        The scene, as for `open_scene`. It may have more bands, and in another order.
    mask : path, (path, rule) or False, optional
        The file of the mask, or a pattern in the directory of the scene; by default the pattern that was used
        in training. With False, no mask is used.
    nodata : float, optional
        The value of pixels without data; by default the one that was given in training, if any.

    Returns
    -------
    Scene
        A scene with the features of the forest.

    Raises
    ------
    BandError
        If the scene lacks bands; the message names them.
    RememberedSceneError
        If the forest was not trained on a scene.

    Notes
    -----
    Bands whose files had a scale or an offset in training are scaled by those of the new files, or by those
    of training if the new files have none. Bands that had none are not scaled. A scene may be smaller than
    the patches: pixels outside are missing values.

    Examples
    --------
    >>> forest = oldgrowth.load("forest.og")  # doctest: +SKIP
    >>> scene = raster.scene_like(forest, "scenes/new/")  # doctest: +SKIP
    >>> raster.write_map(forest, scene, "map.tif")  # doctest: +SKIP
    """
    recipe = Recipe.of(forest)
    value, masked = recipe.nodata if nodata is None else nodata, _mask(recipe, mask)
    options = SceneOptions.checked(list(recipe.bands), value, masked, recipe.extra)
    try:
        scenes = layers_of(source, options)
    except BandError as error:
        missing, found = _lacking(recipe, source, masked)
        if not missing:
            raise
        raise BandError(str(source), missing, found, _USED) from error
    for layers in scenes:
        warn_of_fill(layers)
    like = Scene([_scaled(layers, recipe.scales) for layers in scenes], recipe.patch)
    like.opened_for = left_out_by(forest.recipe_)
    return like


def check_scene(forest: Any, scene: Scene) -> None:
    """Refuse a scene whose features are not made as those that the forest was trained on.

    Warn if it was not opened as the forest remembers.
    """
    if getattr(forest, "recipe_", None) is None:
        return  # the names or the number of features are checked
    recipe = Recipe.of(forest)
    missing = [name for name in (*recipe.bands, *recipe.extra) if name not in scene.layer_names]
    if missing:
        raise BandError(scene.scenes[0].where, missing, scene.layer_names, _USED)
    scene.made_by(forest.recipe_)


def _mask(recipe: Recipe, given: Any) -> Any:
    """The file and the rule of the mask."""
    if given is False or (given is None and recipe.mask is None):
        return None
    if isinstance(given, Sequence) and not isinstance(given, str):
        return given
    if recipe.mask is None:
        wanted = "a file and a rule, such as ('*QA_PIXEL.TIF', 'bits 1,3,4'): there was no mask in training"
        raise ParameterError("mask", given, wanted)
    if given is None:
        return recipe.mask
    if given is True or not isinstance(given, str | Path):
        raise ParameterError("mask", given, "the file of the mask, or False")
    return str(given), recipe.mask[1]


def _lacking(recipe: Recipe, source: Any, mask: Any) -> tuple[list[str], tuple[str, ...]]:
    """The bands of the recipe that a scene lacks, and those that it has."""
    found = layers_of(source, SceneOptions.checked(None, None, mask, None))[0].names
    return [name for name in recipe.bands if name not in found], found


def _scaled(layers: Layers, scales: Mapping[str, tuple[float, float]]) -> Layers:
    """The layers with the scales and offsets of the new files, of training, or none."""

    def scaled(band: Any) -> Any:
        trained = scales.get(band.name)
        own = (band.scale, band.offset)
        if trained is None or trained == own or (trained != _UNSCALED and own != _UNSCALED):
            return band
        return replace(band, scale=trained[0], offset=trained[1])

    bands, used = (tuple(scaled(band) for band in some) for some in (layers.bands, layers.used))
    return replace(layers, bands=bands, used=used)
