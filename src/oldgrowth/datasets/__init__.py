"""Datasets: rows read in batches from files, data frames, streams and callables."""

from .base import Dataset, Partition
from .batches import Batch
from .labels import CodedLabels
from .opening import open_dataset

__all__ = ["Batch", "CodedLabels", "Dataset", "Partition", "open_dataset"]
