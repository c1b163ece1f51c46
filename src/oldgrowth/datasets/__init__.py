"""Where rows come from."""

from .base import Batch, Dataset
from .labels import CodedLabels
from .opening import open_dataset

__all__ = ["Batch", "CodedLabels", "Dataset", "open_dataset"]
