"""Where rows come from."""

from .arrays import ArrayRows, Chunk

__all__ = ["ArrayRows", "Chunk"]
