"""The forests on a Dask cluster: the same forest, bit for bit, as on one machine."""

from importlib.util import find_spec

from ..errors import MissingExtraError

if find_spec("distributed") is None:
    raise MissingExtraError("distributed>=2024.8", "oldgrowth.dask", ("dask>=2024.8",))

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
