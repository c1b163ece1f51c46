"""Checks of single values. Errors say which values are allowed."""

from __future__ import annotations

import math
import os
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from .errors import MaskedValuesError, ParameterError


def is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def is_real(value: Any) -> TypeGuard[float]:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def whole(name: str, value: Any, low: int) -> int:
    """A whole number that is at least `low`."""
    if is_whole(value) and value >= low:
        return min(int(value), 2**62)
    raise ParameterError(name, value, f"a whole number of at least {low}")


def real(name: str, value: Any, low: float, high: float = math.inf) -> float:
    if is_real(value) and low <= value <= high and math.isfinite(value):
        return float(value)
    bounds = f"at least {low:g}" if high == math.inf else f"between {low:g} and {high:g}"
    raise ParameterError(name, value, f"a number {bounds}")


def refuse_masked(name: str, values: Any) -> None:
    """Refuse a masked array with masked values: as an array it has what is under the mask."""
    if isinstance(values, np.ma.MaskedArray) and (
        masked := int(np.count_nonzero(np.ma.getmaskarray(values)))
    ):
        raise MaskedValuesError(name, masked)


def one_of(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    if any(value is c or (isinstance(value, str) and value == c) for c in choices):
        return value
    listed = ", ".join(repr(c) for c in choices)
    raise ParameterError(name, value, f"one of {listed}" if len(choices) > 1 else listed)


def hard_votes(estimator: Any) -> bool:
    """Whether each tree of a forest votes for one class; regressors have no such parameter."""
    voting = getattr(estimator, "voting", "soft")
    if type(voting) is str and voting in ("soft", "hard"):  # single rows are predicted in microseconds
        return voting == "hard"
    return one_of("voting", voting, ("soft", "hard")) == "hard"


def flag(name: str, value: Any) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ParameterError(name, value, "True or False")


def path_of(name: str, value: Any) -> Path:
    """A path, with the home directory for ~."""
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise ParameterError(name, value, "a path: non-empty text without NUL characters")
    return Path(text).expanduser()


def file_path_of(name: str, value: Any) -> Path:
    """The path of a file to write."""
    path = path_of(name, value)
    if not path.name or path.is_dir():
        raise ParameterError(name, value, "the path of a file, not of a directory")
    return path


def verbosity(value: Any) -> int:
    return int(value) if isinstance(value, bool | np.bool_) else whole("verbose", value, 0)
