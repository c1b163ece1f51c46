"""Checks of the values of parameters: the plain value, or an error that says what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np

from ..checks import is_real, is_whole, one_of, path_of, real, verbosity, whole
from ..errors import ParameterError
from ..messages.surface import in_words_of
from ..planning.planner import HIGHEST_BOOTSTRAP_MEAN, check_jobs, weights_that_are
from ..system.memory import size_of

FROM_DTYPE = "from_dtype"  # of `categorical_features`

# Takes a name and a value, returns the value in a plain type, or raises a ParameterError.
Check = Callable[[str, Any], Any]


def whole_number(low: int) -> Check:
    return lambda name, value: whole(name, value, low)


def real_number(low: float, high: float = math.inf) -> Check:
    return lambda name, value: real(name, value, low, high)


def word(*choices: str) -> Check:
    return lambda name, value: one_of(name, value, choices)


# Criteria of scikit-learn's forests that ours do not have, and what to do instead.
_OTHER_CRITERIA = {
    "absolute_error": "scikit-learn's own forests have it; for outliers, the logarithm of y may be enough",
    "friedman_mse": "squared_error finds the same splits",
}


def only_default(accepted: Any, way: str) -> Check:
    """Accepts only the default of a parameter that scikit-learn's forests have."""

    def check(name: str, value: Any) -> Any:
        if value is accepted or (accepted is not None and is_real(value) and value == accepted):
            return accepted
        raise ParameterError(name, value, f"{accepted}: {way}")

    return check


def criterion(*choices: str) -> Check:
    def check(name: str, value: Any) -> Any:
        if isinstance(value, str) and value in _OTHER_CRITERIA:
            raise ParameterError(name, value, f"{in_quotes([*choices])}: {_OTHER_CRITERIA[value]}")
        return one_of(name, value, choices)

    return check


def or_none(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


def or_auto(check: Check) -> Check:
    return lambda name, value: value if isinstance(value, str) and value == "auto" else check(name, value)


def whole_or_auto(low: int) -> Check:
    def check(name: str, value: Any) -> Any:
        if isinstance(value, str) and value != "auto":
            raise ParameterError(name, value, f"a whole number of at least {low}, or 'auto'")
        return value if isinstance(value, str) else whole(name, value, low)

    return check


def rows_or_share(low: int) -> Check:
    """A number of rows: whole, or a share of all of them as a float."""

    def check(name: str, value: Any) -> Any:
        if is_real(value) and not isinstance(value, Integral) and 0 < value <= 1:
            return float(value)
        if is_whole(value) and value >= low:
            return min(int(value), 2**62)
        raise ParameterError(name, value, f"a whole number of at least {low} or a share in (0, 1]")

    return check


def leaf_rows(name: str, value: Any) -> Any:
    if isinstance(value, float) and value == 1:  # likely meant as one row
        raise ParameterError(name, value, "a whole number or a share below 1")
    return rows_or_share(1)(name, value)


def features(name: str, value: Any) -> Any:
    if value is None or (isinstance(value, str) and value in ("sqrt", "log2")):
        return value
    if is_whole(value) and value >= 1:
        return int(value)
    if is_real(value) and 0 < value <= 1:
        return float(value)
    wanted = "'sqrt', 'log2', None, a whole number of at least 1 or a share in (0, 1]"
    raise ParameterError(name, value, wanted)


def max_samples(name: str, value: Any) -> Any:
    most = HIGHEST_BOOTSTRAP_MEAN
    if is_real(value) and not isinstance(value, Integral) and 0 < value <= most:
        return float(value)
    if is_whole(value) and value >= 1:
        return int(value)
    wanted = f"None, or a number or share of rows, at most {most} times all rows"
    raise ParameterError(name, value, wanted)


def score(name: str, value: Any) -> Any:
    if callable(value):
        return value
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ParameterError(name, value, "True, False or a metric (a function)")


def class_weight(name: str, value: Any) -> Any:
    if value is None or (isinstance(value, str) and value in ("balanced", "balanced_subsample")):
        return value
    if not isinstance(value, dict):
        raise ParameterError(
            name,
            value,
            lambda say: (
                f"{in_words_of(say, 'a dict', 'label=weight,...')}, 'balanced', 'balanced_subsample' or "
                f"{in_words_of(say, 'None')}"
            ),
        )
    if not all(is_real(w) and np.isfinite(w) and w >= 0 for w in value.values()):
        raise ParameterError(name, value, weights_that_are("finite and at least 0"))
    return value


def categorical(name: str, value: Any) -> Any:
    """`categorical_features` in plain types."""
    if value is None or (isinstance(value, str) and value == FROM_DTYPE):
        return value
    given = [value] if isinstance(value, str) else value
    if hasattr(given, "__array__"):  # a mask or names, as columns of pandas and polars are
        given = np.asarray(given).tolist()
    plain = isinstance(given, list | tuple)
    bools = plain and all(isinstance(one, bool | np.bool_) for one in given)
    if not plain or not (bools or all(isinstance(one, str) or is_whole(one) for one in given)):
        raise ParameterError(name, value, "'from_dtype', None, or a list of names, of numbers or of bools")
    return [one if isinstance(one, str) else bool(one) if bools else int(one) for one in given]


def jobs(name: str, value: Any) -> Any:
    check_jobs(value)
    return value


def size(name: str, value: Any) -> Any:
    size_of(name, value, 1)
    return value


def path(name: str, value: Any) -> Any:
    return path_of(name, value)


def anything(name: str, value: Any) -> Any:
    return value


def level(name: str, value: Any) -> int:
    return verbosity(value)


def in_quotes(words: list[str]) -> str:
    """Words that can be given, such as "a", "b" or "c"."""
    quoted = [f'"{word}"' for word in words]
    return " or ".join([*filter(None, [", ".join(quoted[:-1])]), quoted[-1]])
