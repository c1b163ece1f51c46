"""The logger `oldgrowth`: everything that a fit says goes through it, whether or not it is shown.

It shows nothing by itself: the caller configures `logging`, or asks for `verbose`.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from contextvars import ContextVar

# How a screen puts a sentence: the command line has options where Python has parameters.
IN_WORDS: ContextVar[Callable[[str], str]] = ContextVar("IN_WORDS", default=str)
LOGGER = logging.getLogger("oldgrowth")
LOGGER.addHandler(logging.NullHandler())


def tell(sentence: str, level: int = logging.INFO, screen: logging.Handler | None = None) -> None:
    """Log a sentence; `screen`, of a fit that is verbose, shows it whatever the level of the logger."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, "%s", sentence, stacklevel=2)
    if screen is not None:
        shown = IN_WORDS.get()(sentence)
        screen.handle(logging.makeLogRecord({"name": LOGGER.name, "levelno": level, "msg": shown}))


def warn(message: str | Warning, category: type[Warning] = UserWarning, stacklevel: int = 2) -> None:
    """Warn as Python does, and log it."""
    LOGGER.warning("%s", message, stacklevel=2)
    warnings.warn(message, category, stacklevel=stacklevel + 1)  # noqa: TID251
