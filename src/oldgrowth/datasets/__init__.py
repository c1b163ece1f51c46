"""Where rows come from."""

from .arrays import ArrayDataset, Chunk

__all__ = ["ArrayDataset", "Chunk"]
