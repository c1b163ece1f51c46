"""The forests as scikit-learn estimators: parameters, inputs, fit, predict, save."""

from typing import Any


def __getattr__(name: str) -> Any:
    """The classes, imported when they are first used: scikit-learn takes long to import."""
    from . import forests

    return getattr(forests, name)
