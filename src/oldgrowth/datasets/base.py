"""The base class of datasets: rows in a fixed order, read in batches, any number of times.

A format yields its rows in pieces of any size; this module turns them into batches of the requested size.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import (
    ChangedSourceError,
    DataError,
    DuplicateColumnError,
    MissingColumnError,
    NamelessColumnsError,
    NoDataError,
    ParameterError,
)
from ..messages.notebook_html import html_table, in_html
from ..messages.text import printable
from .batches import Batch, BatchBuilder, Piece, Span
from .coded import Coded
from .columns import first_twice
from .images import RowImage

COUNTED_ROWS = 1 << 16  # read at a time to count them


class Dataset(Coded, ABC):
    """Rows in a fixed order, read in batches."""

    kind: str
    feature_names: tuple[str, ...] | None
    target: str | None
    weight: str | None
    n_features: int
    n_rows: int | None
    nbytes: int | None
    first_row: int = 0  # number of its first row; not 0 in partitions
    way_to_target: str = "name its column, as in open_dataset(source, target='label')"  # if it has none
    _is_part: bool = False

    @abstractmethod
    def _pieces(self, rows: int, span: Span, carry: tuple[str, ...]) -> Iterator[Piece]:
        """Yield pieces in order; the first may begin before the span, and the last may end after it."""

    @abstractmethod
    def _column_names(self) -> Sequence[str]:
        """The columns that can be selected or carried."""

    @abstractmethod
    def _use_features(self, features: tuple[str, ...]) -> None:
        """Use these columns as features."""

    @abstractmethod
    def fingerprint(self) -> dict[str, Any]:
        """Identify this data, as values that JSON can represent."""

    @abstractmethod
    def _described(self) -> list[tuple[str, str]]:
        """Properties of the source shown in the representation, as pairs of name and text."""

    @property
    def recipe(self) -> dict[str, Any] | None:
        """How features are made of what the source has, if they are made: a model remembers it."""
        return None

    def made_by(self, recipe: dict[str, Any] | None) -> Dataset:
        """The same dataset, if its features are made as the recipe of a forest says; otherwise an error."""
        return self

    @property
    def image_bytes(self) -> int | None:
        """Memory of the image whose pixels are the rows; None if they are not pixels."""
        return None

    def with_image(self) -> tuple[Dataset, RowImage]:
        """The same rows, and an image that is filled as they are read."""
        raise NotImplementedError

    @property
    def expected_rows(self) -> int | None:
        """The number of rows, or a likely upper bound; None if unknown."""
        return self.n_rows

    @property
    def most_values(self) -> int | None:
        """The most different values that a feature can have, if its type tells."""
        return None

    @property
    def reading_bytes(self) -> int:
        """Additional memory needed for reading, as far as it is known without reading: large record batches,
        metadata, compressed chunks."""
        return 0

    def within_memory(self, room: int) -> Dataset:
        """Return the same rows, read in pieces whose size suits a process with this much memory left."""
        return self

    def unpacked_in(self, directory: Path) -> Dataset:
        """Return the same rows, with temporary files of unpacked data in this directory."""
        return self

    @property
    def _where(self) -> str:
        return f"the {self.kind}"

    def batches(
        self, rows: int, start: int | None = None, carry: Sequence[str] = (), keep_bytes: bool = False
    ) -> Iterator[Batch]:
        """Yield the rows from number `start` on, in batches of `rows` rows; only the last may be shorter.

        Parameters
        ----------
        rows : int
            Number of rows per batch.
        start : int, optional
            Number of the first row to read; by default the first row of the dataset.
        carry : sequence of str, default ()
            Columns to pass through unchanged, in `Batch.carried`.
        keep_bytes : bool, default False
            Yield batches whose values are all uint8 as uint8, not as float32.

        Returns
        -------
        Iterator[Batch]
            The batches. Read errors are raised, never taken for the end of the data.
        """
        if rows < 1:
            raise ParameterError("rows", rows, "at least 1")
        start = self.first_row if start is None else start
        if start < self.first_row or (self._stop is not None and start > self._stop):
            raise ParameterError("start", start, "a row number of the dataset")
        if isinstance(carry, str):
            raise ParameterError("carry", carry, "a list of column names")
        self._check_names(carry)
        self._check_coded()
        return self._batches(rows, start, tuple(carry), keep_bytes)

    def _batches(self, rows: int, start: int, carry: tuple[str, ...], keep_bytes: bool) -> Iterator[Batch]:
        stop = self._stop
        end = start if start == stop else self.first_row  # a source may yield no piece when no rows are left
        builder: BatchBuilder | None = None
        for piece in self._pieces(rows, Span(start, stop), carry):
            end = piece.first_row + piece.rows
            last = piece.rows if stop is None else min(piece.rows, stop - piece.first_row)
            if last < piece.rows and not self._is_part:
                raise ChangedSourceError(piece.where, f"it had {self.n_rows:,} rows and now has more")
            at = max(0, start - piece.first_row)
            while at < last:
                if builder is None:
                    as_bytes = keep_bytes and piece.all_bytes
                    builder = self._builder(piece.first_row + at, rows, piece.where, as_bytes)
                at = builder.take(piece, at)
                if builder.full:
                    yield builder.finish(self.feature_names)
                    builder = None
            del piece  # it may be large: free it before the next one is read
        self._check_end(end, start)
        if builder is not None:
            yield builder.finish(self.feature_names)

    def _builder(self, first_row: int, rows: int, where: str, as_bytes: bool) -> BatchBuilder:
        known = self.n_rows is not None
        left = rows if self._stop is None else min(rows, self._stop - first_row)
        return BatchBuilder(first_row, left, known, self.n_features, where, as_bytes)

    def _check_end(self, end: int, start: int) -> None:
        if self.n_rows is None:
            if end == 0 and not self._is_part:
                raise NoDataError(self._where, "it has no rows")
            if start > end:
                raise ParameterError("start", start, f"at most the number of rows, {end}")
            self.n_rows = end - self.first_row
        elif end < self.first_row + self.n_rows:
            raise ChangedSourceError(
                self._where, f"it had {self.n_rows:,} rows and now has {end - self.first_row:,}"
            )

    @property
    def _stop(self) -> int | None:
        """The number of the last row plus one, if known."""
        return None if self.n_rows is None else self.first_row + self.n_rows

    def partitions(self, n: int) -> list[Partition]:
        """Split the dataset into at most `n` partitions of about equal size.

        Arrays, memory maps, data frames, tables, ``.npy``, ``.npz`` and HDF5 files are split at any row (a
        compressed member of a ``.npz`` file is decompressed from its beginning for each partition), Parquet
        files between row groups, Arrow IPC files between record batches. CSV files, where a line break may be
        part of a value, and Arrow IPC streams are split between files; their rows are counted first, which
        reads one column of each file. LazyFrames, Arrow streams and callables are a single partition.

        Parameters
        ----------
        n : int
            Maximum number of partitions.

        Returns
        -------
        list of Partition
            Partitions in the order of the rows, each with the number of its first row and its number of rows.
            A partition can be pickled, and is read in any process by ``partition.open().batches(rows)``. It
            contains the names of its files, or its rows if the dataset is in memory. It may be empty.

        Examples
        --------
        >>> import numpy as np
        >>> from oldgrowth import open_dataset
        >>> parts = open_dataset(np.arange(10).reshape(5, 2)).partitions(2)
        >>> [(part.first_row, part.n_rows) for part in parts]
        [(0, 2), (2, 3)]
        """
        return numbered(self.uncounted_partitions(n))

    def uncounted_partitions(self, n: int) -> list[Partition]:
        """As `partitions`, but rows that are not known are not counted: `numbered` takes their counts."""
        if n < 1:
            raise ParameterError("n", n, "at least 1")
        return self._cut(n)

    def _cut(self, n: int) -> list[Partition]:
        """The partitions; the numbers of their rows may still be unknown."""
        parts = [self._part(start, stop) for start, stop in pairwise(self._edges(n))]
        return [Partition(part, part.first_row, part.n_rows) for part in parts or [self]]

    def _edges(self, n: int) -> list[int]:
        """Row numbers at which partitions begin and end; empty if the dataset cannot be split."""
        return []

    def _part(self, start: int, stop: int) -> Dataset:
        """The dataset restricted to these rows."""
        part = copy.copy(self)
        part.first_row, part.n_rows, part._is_part = start, stop - start, True
        if self.nbytes is not None and self.n_rows:
            part.nbytes = self.nbytes * part.n_rows // self.n_rows
        return part

    def count_rows(self) -> int:
        """The number of rows, found by reading as little as possible if it is not known."""
        return self._read_rows() if self.n_rows is None else self.n_rows

    def count_used_rows(self) -> int:
        """The number of rows whose weight is not zero."""
        if self.weight is None:
            return self.count_rows()
        span = Span(self.first_row, self._stop)
        return sum(int(np.count_nonzero(weights)) for weights in self._read_weights(span))

    def _read_rows(self) -> int:
        return sum(piece.rows for piece in self._pieces(COUNTED_ROWS, Span(self.first_row), ()))

    def _read_weights(self, span: Span) -> Iterator[npt.NDArray[np.float64]]:
        for piece in self._pieces(COUNTED_ROWS, span, ()):
            weights = piece.weights(*span.within(piece.first_row).of(piece.rows))
            assert weights is not None
            yield weights

    def _check_names(self, names: Sequence[str]) -> None:
        if not names:
            return
        columns = self._column_names()
        known = set(columns)
        missing = [name for name in names if name not in known]
        if missing and not known:
            raise NamelessColumnsError(self._where, f"select column {missing[0]!r}")
        if missing:
            raise MissingColumnError(missing, self._where, columns)

    def select(self, features: Sequence[str]) -> Dataset:
        """Return the same rows with these columns as features, in this order."""
        if isinstance(features, str) or not len(features):
            raise ParameterError("features", features, "a list of at least one column name")
        self._check_names(features)
        if (twice := first_twice(features)) is not None:
            raise DuplicateColumnError(twice, self._where, selected=True)
        chosen = copy.copy(self)
        chosen._coders = None
        chosen._use_features(tuple(features))
        chosen.feature_names = tuple(features)
        chosen.n_features = len(features)
        return chosen

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        raise DataError(
            "A dataset is read in batches and cannot be converted to an array, as scikit-learn's tools "
            "require (GridSearchCV, cross_val_score, train_test_split, pipelines): use arrays or data "
            "frames, or fit the forest on the dataset and compare its oob_score."
        )

    def __repr__(self) -> str:
        lines = self._facts()
        return "\n".join([f"{self.kind} dataset", *(f"  {word:<9}{printable(text)}" for word, text in lines)])

    def _repr_html_(self) -> str:
        """The representation as a table, for notebooks."""
        rows = [[in_html(word), in_html(text)] for word, text in self._facts()]
        return html_table([in_html(f"{self.kind} dataset"), ""], rows)

    def _facts(self) -> list[tuple[str, str]]:
        """Properties shown in the representation, as pairs of name and text."""
        names = "" if self.feature_names is None else f": {shortened(self.feature_names)}"
        lines = [
            *self._described(),
            ("rows", "unknown until read once" if self.n_rows is None else f"{self.n_rows:,}"),
            ("features", f"{self.n_features}{names}"),
            ("target", self.target or "none"),
        ]
        if self.weight is not None:
            lines.append(("weight", self.weight))
        if self.nbytes is not None:
            lines.append(("bytes", f"{self.nbytes:,}"))
        return lines


@dataclass(frozen=True)
class Partition:
    """A range of rows of a dataset. It can be pickled."""

    dataset: Dataset  # restricted to these rows
    first_row: int | None  # number of its first row; None until the rows before it are counted
    n_rows: int | None  # None until they are counted

    def open(self) -> Dataset:
        """Open the rows as a dataset, with the row numbers of the whole dataset."""
        dataset = copy.copy(self.dataset)
        dataset.n_rows = self.n_rows
        if self.first_row is not None:
            dataset.first_row = self.first_row
        return dataset


def numbered(partitions: Sequence[Partition], counts: Sequence[int] | None = None) -> list[Partition]:
    """The partitions of a whole dataset with the numbers of their first rows set.

    `counts` are the results of `partition.open().count_rows()`, possibly from other processes; by default,
    rows that are not counted yet are counted here.
    """
    if counts is None:
        counts = [partition.open().count_rows() for partition in partitions]
    first = partitions[0].dataset.first_row
    firsts = first + np.cumsum([0, *counts[:-1]], dtype=np.int64)
    return [
        replace(partition, first_row=row, n_rows=count)
        for partition, row, count in zip(partitions, firsts.tolist(), counts, strict=True)
    ]


def shortened(names: Sequence[str], most: int = 6) -> str:
    """The names, shortened to the first ones and the last one if there are many."""
    if len(names) <= most:
        return ", ".join(names)
    return ", ".join([*names[: most - 1], "...", names[-1]])
