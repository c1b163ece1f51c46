"""The logger `oldgrowth`, which receives every message of a fit, shown or not.

Messages are shown if the caller configures `logging`, or by `verbose`.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar

# Rewrites a message before it is shown: the command line replaces parameters by options.
IN_WORDS: ContextVar[Callable[[str], str]] = ContextVar("IN_WORDS", default=str)
LOGGER = logging.getLogger("oldgrowth")
LOGGER.addHandler(logging.NullHandler())
_PACKAGE = "oldgrowth."


def tell(sentence: str, level: int = logging.INFO, screen: logging.Handler | None = None) -> None:
    """Log a sentence; `screen`, set by verbose fits, shows it regardless of the level of the logger."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, "%s", sentence, stacklevel=2)
    if screen is not None:
        shown = IN_WORDS.get()(sentence)
        screen.handle(logging.makeLogRecord({"name": LOGGER.name, "levelno": level, "msg": shown}))


def warn(message: str | Warning, category: type[Warning] = UserWarning, stacklevel: int = 2) -> None:
    """Issue a Python warning, and log it."""
    LOGGER.warning("%s", message, stacklevel=2)
    warnings.warn(message, category, stacklevel=stacklevel + 1)  # noqa: TID251


def warn_outside(message: Warning) -> None:
    """Issue a warning at the line outside of this package that led to it."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and f"{frame.f_globals.get('__name__')}.".startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warn(message, stacklevel=level)
