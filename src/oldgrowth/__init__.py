"""Random forests with fully-grown trees on all rows of large data, used like scikit-learn."""

from importlib.metadata import version

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

__version__ = version("oldgrowth")

__all__ = [
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "OldgrowthError",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "SubsetForestClassifier",
    "SubsetForestRegressor",
    "load",
    "open_dataset",
]
