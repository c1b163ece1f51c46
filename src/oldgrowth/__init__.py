"""Random forests with fully-grown trees on all rows of large data, used like scikit-learn."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._version import __version__
    from .datasets import open_dataset
    from .errors import OldgrowthError
    from .estimators.forests import (
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
        SubsetForestClassifier,
        SubsetForestRegressor,
    )
    from .estimators.merging import merge
    from .estimators.saved import load
    from .planning.disk_plan import DiskEstimate
    from .reporting.progress import FitProgress

__all__ = [
    "DiskEstimate",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "FitProgress",
    "OldgrowthError",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "SubsetForestClassifier",
    "SubsetForestRegressor",
    "__version__",
    "load",
    "merge",
    "open_dataset",
]

# Importing scikit-learn takes longer than most commands do: a name is imported when it is first used.
_ESTIMATORS = [name for name in __all__ if name.endswith(("Classifier", "Regressor"))]
_MODULE_OF = dict.fromkeys(_ESTIMATORS, "estimators.forests") | {
    "DiskEstimate": "planning.disk_plan",
    "FitProgress": "reporting.progress",
    "OldgrowthError": "errors",
    "__version__": "_version",
    "load": "estimators.saved",
    "merge": "estimators.merging",
    "open_dataset": "datasets",
}
_SUBMODULES = ("datasets", "errors", "estimators", "plot", "raster")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f".{name}", __name__)
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
