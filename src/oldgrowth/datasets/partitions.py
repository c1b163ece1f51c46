"""Partitions: ranges of rows of a dataset that can be read independently, in any process."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .base import Dataset


@dataclass(frozen=True)
class Partition:
    """A range of rows of a dataset. It can be pickled."""

    dataset: Dataset  # restricted to these rows
    first_row: int | None  # number of its first row; None until the rows before it are counted
    n_rows: int | None  # None until they are counted

    def count(self) -> int:
        """The number of rows, counted by reading them if unknown."""
        return self.dataset._count() if self.n_rows is None else self.n_rows

    def open(self) -> Dataset:
        """Open the rows as a dataset, with the row numbers of the whole dataset."""
        dataset = copy.copy(self.dataset)
        dataset.n_rows = self.n_rows
        if self.first_row is not None:
            dataset.first_row = self.first_row
        return dataset


def numbered(partitions: Sequence[Partition], counts: Sequence[int] | None = None) -> list[Partition]:
    """The partitions of a whole dataset with the numbers of their first rows set.

    `counts` are the results of `Partition.count`, possibly from other processes; by default, rows that are
    not counted yet are counted here.
    """
    if counts is None:
        counts = [partition.count() for partition in partitions]
    first = partitions[0].dataset.first_row
    firsts = first + np.cumsum([0, *counts[:-1]], dtype=np.int64)
    return [
        replace(partition, first_row=row, n_rows=count)
        for partition, row, count in zip(partitions, firsts.tolist(), counts, strict=True)
    ]


def row_edges(dataset: Dataset, n: int) -> list[int]:
    """Row numbers at which `n` partitions of about equal size begin and end, for splits at any row."""
    assert dataset.n_rows is not None
    return sorted({dataset.first_row + dataset.n_rows * i // n for i in range(n + 1)})


def nearest_edges(possible: Sequence[int], n: int) -> list[int]:
    """Begin and end of `n` parts of about equal size, chosen among the possible places, which are sorted and
    include the first and the last. If there are too few places, there are fewer parts."""
    places = np.asarray(possible, dtype=np.int64)
    first, last = int(places[0]), int(places[-1])
    wanted = [first + (last - first) * i // n for i in range(n + 1)]
    above = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
    below = np.maximum(above - 1, 0)
    nearer_below = np.array(wanted) - places[below] < places[above] - np.array(wanted)
    edges = sorted({int(place) for place in places[np.where(nearer_below, below, above)]})
    return edges if len(edges) > 1 else [first, last]
