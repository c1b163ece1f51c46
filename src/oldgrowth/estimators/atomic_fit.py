"""Fits that either succeed or leave the estimator as it was."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from ..reporting.progress import StoppedByCallback
from ..system.resource_limits import clear_limits

_Fit = TypeVar("_Fit", bound=Callable[..., Any])


def whole_or_not_at_all(fit: _Fit) -> _Fit:
    """If the fit fails, the estimator stays as it was; if it succeeds, nothing of an earlier fit is left."""

    @wraps(fit)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        for name in before:
            if name.endswith("_") and not name.startswith("__"):
                delattr(self, name)
        try:
            with clear_limits:
                return fit(self, *args, **kwargs)
        except BaseException as error:
            vars(self).clear()
            vars(self).update(before)
            if not isinstance(error, StoppedByCallback):
                raise
            raised = error.raised
        raise raised

    return cast(_Fit, wrapped)
