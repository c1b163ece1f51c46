"""Partitions: consecutive rows of a dataset that can be read by themselves, in any process."""

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
    """Consecutive rows of a dataset, which can be pickled."""

    dataset: Dataset  # with these rows only
    first_row: int | None  # the number of its first row; None if rows before it are not counted yet
    n_rows: int | None  # None if they are not counted yet

    def count(self) -> int:
        """The number of rows, found by reading if it is not known."""
        return self.dataset._count() if self.n_rows is None else self.n_rows

    def open(self) -> Dataset:
        """The rows as a dataset, numbered as in the dataset that they are a part of."""
        dataset = copy.copy(self.dataset)
        dataset.n_rows = self.n_rows
        if self.first_row is not None:
            dataset.first_row = self.first_row
        return dataset


def numbered(partitions: Sequence[Partition], counts: Sequence[int] | None = None) -> list[Partition]:
    """The partitions of a whole dataset with the numbers of their first rows.

    `counts` are their rows, as `Partition.count` found them, maybe elsewhere; by default they are counted
    here where they are not known.
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
    """Where `n` partitions of about equal size begin and end, if the dataset can be cut at any row."""
    assert dataset.n_rows is not None
    return sorted({dataset.first_row + dataset.n_rows * i // n for i in range(n + 1)})


def nearest_edges(possible: Sequence[int], n: int) -> list[int]:
    """Where `n` parts of about equal size begin and end, each at one of the possible places, which ascend
    from the beginning to the end of all. Where these are too few there are fewer parts."""
    places = np.asarray(possible, dtype=np.int64)
    first, last = int(places[0]), int(places[-1])
    wanted = [first + (last - first) * i // n for i in range(n + 1)]
    above = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
    below = np.maximum(above - 1, 0)
    nearer_below = np.array(wanted) - places[below] < places[above] - np.array(wanted)
    edges = sorted({int(place) for place in places[np.where(nearer_below, below, above)]})
    return edges if len(edges) > 1 else [first, last]
