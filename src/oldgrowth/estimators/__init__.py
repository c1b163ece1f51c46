"""The forests as scikit-learn estimators: parameters, inputs, fit, predict, save."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """The classes, imported when they are first used: scikit-learn takes long to import."""
    return getattr(import_module(".forests", __name__), name)
