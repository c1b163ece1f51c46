"""Warns if pixels are predicted that training left out: by a mask, or by a nodata value that was given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...messages.log import warn, warn_outside
from ...messages.warnings import LeftOutWarning
from ..reading.layers import Layers
from ..reading.masks import same_rule
from ..reading.raster_files import Band, possible

_OPEN = "Open the scene with raster.scene_like, which leaves them out"


def left_out_by(recipe: dict[str, Any] | None) -> tuple[Any, Any]:
    """The mask (file and rule) and the nodata value that a forest was trained with."""
    recipe = recipe or {}
    mask, nodata = recipe.get("mask"), recipe.get("nodata")
    return None if mask is None else tuple(mask), nodata


def warn_of_scenes(recipe: dict[str, Any] | None, scenes: Sequence[Layers]) -> None:
    """Warn of the first of these scenes with another mask, and of the first with another nodata value."""
    mask, nodata = left_out_by(recipe)
    found = ((layers, _other_mask(layers, mask)) for layers in scenes)
    layers, has = next((one for one in found if one[1] is not None), (scenes[0], None))
    if has is not None:
        way = f"{_OPEN}, or with this mask; scene_like(..., mask=False) uses none, without a warning"
        warn_outside(LeftOutWarning(layers.where, has, f"mask={mask!r}", way))
    found = ((layers, _other_nodata((*layers.bands, *layers.used), nodata)) for layers in scenes)
    layers, has = next((one for one in found if one[1] is not None), (scenes[0], None))
    if has is not None:
        way = f"{_OPEN}, or with nodata={nodata:.12g}; scene_like(..., nodata=...) uses another value"
        warn_outside(LeftOutWarning(layers.where, has, f"nodata={nodata:.12g}", way))


def warn_of_no_mask(recipe: Any, where: str, stacklevel: int) -> None:
    """Warn of arrays that are predicted without a mask."""
    mask, _ = left_out_by(recipe)
    if mask is not None:
        way = "Give the band of the mask as mask=..., or mask=False if none is wanted"
        warn(LeftOutWarning(where, "no mask", f"mask={mask!r}", way), stacklevel=stacklevel + 1)


def warn_of_nodata(recipe: Any, where: str, bands: Sequence[Band], stacklevel: int) -> None:
    """Warn of arrays that have another nodata value than the one that was given in training."""
    _, nodata = left_out_by(recipe)
    has = _other_nodata(bands, nodata)
    if has is not None:
        way = f"Give nodata={nodata:.12g}, or the value of the data as nodata=... if that is right"
        warn(LeftOutWarning(where, has, f"nodata={nodata:.12g}", way), stacklevel=stacklevel + 1)


def _other_mask(layers: Layers, trained: Any) -> str | None:
    """What a scene has instead of the mask of training; None if it has the same rule."""
    if trained is None:
        return None
    if layers.mask is None:
        return "no mask"
    return (
        None if same_rule(layers.mask.rule, trained[1]) else f"a mask by the rule {str(layers.mask.rule)!r}"
    )


def _other_nodata(bands: Sequence[Band], trained: float | None) -> str | None:
    """What a band has instead of the nodata value of training, if its pixels can have that value."""
    if trained is None or math.isnan(trained):
        return None
    for band in bands:
        wanted = possible(trained, band.dtype)
        if wanted is not None and band.nodata != wanted:
            value = "no nodata value" if band.nodata is None else f"the nodata value {band.nodata:.12g}"
            return f"{value} in band {band.name!r}"
    return None
