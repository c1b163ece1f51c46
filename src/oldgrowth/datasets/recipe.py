"""How features are made of the bands of a scene, as a forest remembers it: what its entries can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..checks import is_real, is_whole


def damaged_entry(recipe: Mapping[str, Any]) -> str | None:
    """The name of an entry that no recipe has in this form, if there is one. Entries that older recipes lack
    may be missing."""
    return next((name for name, is_right in _ENTRIES.items() if not is_right(recipe.get(name))), None)


def _is_names(value: Any) -> bool:
    is_list = isinstance(value, list | tuple) and all(isinstance(name, str) and name for name in value)
    return is_list and len(value) == len(set(value)) > 0


def _is_texts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(t, str) for pair in value.items() for t in pair)


def _is_patch(value: Any) -> bool:
    return is_whole(value) and 0 < value < 1000 and value % 2 == 1


def _is_mask(value: Any) -> bool:
    is_pair = isinstance(value, list | tuple) and len(value) == 2
    return value is None or (is_pair and all(isinstance(text, str) for text in value))


def _is_number(value: Any) -> bool:
    return is_real(value) or is_whole(value)


def _is_scales(value: Any) -> bool:
    def is_scale(pair: Any) -> bool:
        is_pair = isinstance(pair, list | tuple) and len(pair) == 2
        return is_pair and all(_is_number(v) and bool(np.isfinite(v)) for v in pair)

    return value is None or (
        isinstance(value, Mapping) and all(isinstance(n, str) and is_scale(p) for n, p in value.items())
    )


def _is_colors(value: Any) -> bool:
    return value is None or (isinstance(value, Mapping) and all(isinstance(c, str) for c in value.values()))


_ENTRIES: dict[str, Callable[[Any], bool]] = {
    "bands": _is_names,
    "extra": _is_texts,
    "patch": _is_patch,
    "south_up": lambda value: value is None or isinstance(value, bool),
    "nodata": lambda value: value is None or _is_number(value),
    "mask": _is_mask,
    "scale": _is_scales,
    "colors": _is_colors,
}
