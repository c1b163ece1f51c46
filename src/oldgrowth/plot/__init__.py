"""Plots of a fitted forest: a top tree, bucket sizes, importances, confusions; and of maps.

Each function draws on given or new matplotlib axes and returns them. Needs matplotlib (the extra `plot`),
which is imported when it is used.
"""

from .classes import confusion
from .features import importances, patch_importances
from .maps import map
from .trees import bucket_sizes, top_tree

__all__ = ["bucket_sizes", "confusion", "importances", "map", "patch_importances", "top_tree"]
