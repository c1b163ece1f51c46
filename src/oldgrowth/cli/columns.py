"""The columns of a source that a subcommand reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..datasets.columns import AllBut


@dataclass(frozen=True)
class Columns:
    """The columns to read, by their names; without features all others. The target of rasters is a file."""

    target: str | None = None
    features: Sequence[str] | AllBut | None = None
    weight: str | None = None
