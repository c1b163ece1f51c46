"""Random forests with fully-grown trees, also on data far larger than memory, used like scikit-learn."""

from importlib.metadata import version

from .errors import OldgrowthError
from .estimators import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    SubsetForestClassifier,
    SubsetForestRegressor,
)

__version__ = version("oldgrowth")

__all__ = [
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "OldgrowthError",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "SubsetForestClassifier",
    "SubsetForestRegressor",
]
