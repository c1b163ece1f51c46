"""The forests on a Dask cluster: the same forest, bit for bit, as on one machine."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtraError

if find_spec("distributed") is None:
    raise MissingExtraError("distributed>=2024.8", "oldgrowth.dask", ("dask>=2024.8",))

if TYPE_CHECKING:
    from .estimators import (
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
        SubsetForestClassifier,
        SubsetForestRegressor,
    )

__all__ = [
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "SubsetForestClassifier",
    "SubsetForestRegressor",
]


def __getattr__(name: str) -> Any:
    """Workers import this package, and need no estimators: scikit-learn takes 70 MB of memory."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(".estimators", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
