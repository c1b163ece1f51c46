"""Data frames whose column names are whole numbers, which scikit-learn does not compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DataError
from ..messages.log import warn
from ..messages.surface import listed
from ..messages.warnings import FeatureNamesWarning


def whole_names(X: Any) -> tuple[int, ...] | None:
    """The names of the columns of a data frame if all are whole numbers."""
    columns = getattr(X, "columns", None)
    if columns is None or not len(columns):
        return None
    names = list(columns)
    if not all(isinstance(name, int | np.integer) and not isinstance(name, bool) for name in names):
        return None
    return tuple(map(int, names))


def check_whole_names(X: Any, known: Sequence[int] | None) -> None:
    """Refuse a frame whose columns are in another order than in fit; warn if that is not known.

    `known` are the names in fit; None if the forest was fitted on an array, or loaded.
    """
    found = whole_names(X)
    if found is None or found == known:
        return
    if known is None:
        if list(found) != sorted(found):
            _warn(found, "the forest has no column names")
    elif sorted(found) == sorted(known):
        raise DataError(
            f"The columns of X are {listed(found)}, in another order than in fit, where they were "
            f"{listed(known)}: choose them in that order, or give the values without names (X.to_numpy())."
        )
    else:
        _warn(found, f"in fit they were {listed(known)}")


def _warn(found: Sequence[int], why: str) -> None:
    warn(
        f"The columns of X are {listed(found)}, but {why}: columns are used in order.",
        FeatureNamesWarning,
        stacklevel=5,
    )
