"""Where rows come from."""

from .arrays import ArrayDataset, Chunk
from .base import Batch, Dataset
from .labels import CodedLabels
from .opening import open_dataset

__all__ = ["ArrayDataset", "Batch", "Chunk", "CodedLabels", "Dataset", "open_dataset"]
