"""Random forests with fully-grown trees on all rows of large data, used like scikit-learn."""

from ._version import __version__
from .datasets import open_dataset
from .errors import OldgrowthError
from .estimators import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    SubsetForestClassifier,
    SubsetForestRegressor,
)
from .model_file import load

__all__ = [
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "OldgrowthError",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "SubsetForestClassifier",
    "SubsetForestRegressor",
    "__version__",
    "load",
    "open_dataset",
]
