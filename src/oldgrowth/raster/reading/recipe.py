"""How features are made of the bands of a scene: a model remembers it, and other scenes must agree."""

from __future__ import annotations

from typing import Any

from ...errors import PatchError, RecipeError
from .layers import Layers


def recipe_of(layers: Layers, patch: int) -> dict[str, Any]:
    """The recipe of a scene, as values that JSON can represent."""
    mask = layers.mask
    return {
        "bands": [band.name for band in layers.bands],
        "extra": {expression.name: expression.text for expression in layers.extra},
        "patch": patch,
        "south_up": layers.grid.transform.e > 0,
        "nodata": layers.nodata,
        "mask": None if mask is None else [mask.pattern, str(mask.rule)],
        "scale": {band.name: [band.scale, band.offset] for band in (*layers.bands, *layers.used)},
    }


def check_recipe(layers: Layers, patch: int, recipe: dict[str, Any] | None) -> None:
    """Refuse a scene whose features are made in another way than those of a forest.

    Masks and nodata values only tell which pixels are rows: they may differ.
    """
    if recipe is None or "patch" not in recipe:
        return
    where = layers.where
    if patch != recipe["patch"]:
        raise PatchError(where, patch, recipe["patch"])
    texts = {expression.name: expression.text for expression in layers.extra}
    for name, text in recipe["extra"].items():
        if texts.get(name, text) != text:
            raise RecipeError(where, f"the expression of {name!r}", repr(texts[name]), repr(text))
    for band in (*layers.bands, *layers.used):
        wanted = recipe.get("scale", {}).get(band.name)
        if wanted is not None and [band.scale, band.offset] == [1.0, 0.0] != wanted:
            scale, offset = wanted
            what = f"scale and offset of band {band.name!r}"
            raise RecipeError(where, what, "not in the file", f"{scale:g} and {offset:g}")
