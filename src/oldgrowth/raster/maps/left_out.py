"""Warns if pixels are predicted that training left out: by a mask, or by a nodata value that was given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...messages.log import warn
from ...messages.warnings import LeftOutWarning
from ..reading.layers import Layers
from ..reading.masks import same_rule
from ..reading.raster_files import Band, possible
from ..scenes.scene import Scene

_OPEN = "Open the scene with raster.scene_like, which leaves them out"


def left_out_by(forest: Any) -> tuple[Any, Any]:
    """The mask (file and rule) and the nodata value that a forest was trained with."""
    recipe = getattr(forest, "recipe_", None) or {}
    mask, nodata = recipe.get("mask"), recipe.get("nodata")
    return None if mask is None else tuple(mask), nodata


def warn_of_scene(forest: Any, scene: Scene, stacklevel: int) -> None:
    """Warn of a scene that was not opened as the forest remembers; `scene_like` was told what is wanted."""
    mask, nodata = left_out_by(forest)
    if scene.opened_for == (mask, nodata):
        return
    layers = scene.scenes[0]
    has = _other_mask(layers, mask)
    if has is not None:
        way = f"{_OPEN}, or with this mask; scene_like(..., mask=False) uses none, without a warning"
        warn(LeftOutWarning(layers.where, has, f"mask={mask!r}", way), stacklevel=stacklevel + 1)
    has = _other_nodata((*layers.bands, *layers.used), nodata)
    if has is not None:
        way = f"{_OPEN}, or with nodata={nodata:.12g}; scene_like(..., nodata=...) uses another value"
        warn(LeftOutWarning(layers.where, has, f"nodata={nodata:.12g}", way), stacklevel=stacklevel + 1)


def warn_of_no_mask(forest: Any, where: str, stacklevel: int) -> None:
    """Warn of arrays that are predicted without a mask."""
    mask, _ = left_out_by(forest)
    if mask is not None:
        way = "Give the band of the mask as mask=..., or mask=False if none is wanted"
        warn(LeftOutWarning(where, "no mask", f"mask={mask!r}", way), stacklevel=stacklevel + 1)


def warn_of_nodata(forest: Any, where: str, bands: Sequence[Band], stacklevel: int) -> None:
    """Warn of arrays that have another nodata value than the one that was given in training."""
    _, nodata = left_out_by(forest)
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
