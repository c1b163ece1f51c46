"""Datasets: rows read in batches from files, data frames, streams and callables."""

from .base import Batch, Dataset
from .labels import CodedLabels
from .opening import open_dataset
from .partitions import Partition

__all__ = ["Batch", "CodedLabels", "Dataset", "Partition", "open_dataset"]
