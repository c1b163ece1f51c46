"""The numbers that memory and disk space depend on: rows, trees, classes, and the bytes of a row in each
form."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .. import _core
from ..plan import Plan
from ..rows.training_rows import TrainingRows

# Values of a feature that codes of two bytes hold.
MOST_CODES = 65_535


@dataclass(frozen=True)
class Sizes:
    """How many rows, trees and classes there are, and how many bytes of which kind a row has."""

    n_rows: int
    n_features: int
    n_tops: int
    n_trees: int
    outputs: int
    record: int  # of a row as the codec packs it
    ranked: int  # features that are ranked in each bucket
    row: int  # in a block on disk
    weighted: bool
    oob: bool
    in_arrays: bool  # the caller has the rows in memory
    kept_votes: bool  # the caller gets the means of all rows
    metric: bool  # a metric sees targets and guesses of all rows at once
    tree_rows: int  # that each tree is grown on
    reading: int  # bytes that reading the source takes beside the chunks
    profile: int  # bytes that knowing the values of features takes in the first pass
    codec: int  # and after it
    labels: int  # bytes of labels that are learned as they stream by
    image: int  # bytes of the image whose pixels the rows are; 0 if they are not
    gathered: bool = False  # rows are gathered from the image, and have only numbers on disk
    mixed: float | None = None  # how likely two rows are of different classes; None if it is not known

    @staticmethod
    def of(plan: Plan, rows: TrainingRows, n_rows: int, widths: Widths, weighted: bool = False) -> Sizes:
        """`weighted` tells of weights that the source did not tell of."""
        weighted = weighted or rows.weighted
        return Sizes(
            n_rows=n_rows,
            n_features=rows.n_features,
            n_tops=len(plan.trees_of_tops(n_rows)),
            n_trees=plan.new_trees,
            outputs=plan.n_classes or 1,
            record=widths.record,
            ranked=widths.ranked,
            row=plan.row_layout(n_rows, widths.record, weighted).row_bytes,
            weighted=weighted,
            oob=plan.oob,
            in_arrays=rows.random_access,
            kept_votes=plan.oob and rows.random_access,
            metric=plan.oob_metric,
            tree_rows=plan.tree_rows(n_rows),
            reading=rows.reading_bytes,
            profile=widths.profile,
            codec=widths.codec,
            labels=rows.label_bytes,
            image=rows.image_bytes or 0,
        )

    def with_classes(self, class_rows: npt.NDArray[np.int64]) -> Sizes:
        """With the rows of each class known, if there are classes."""
        if not len(class_rows):
            return self
        shares = class_rows / class_rows.sum()
        return replace(self, mixed=float(1 - shares @ shares))

    @property
    def vote_row(self) -> int:
        """Votes out of bag for a row: sums, how many trees, its target and number."""
        return 8 * self.outputs + 12 + _core.row_number_bytes(self.n_rows)


@dataclass(frozen=True)
class Widths:
    """Bytes of a row as the codec packs it, how many of its features have more values than codes hold, and
    what it takes to know the values of the others: in the first pass, and after it."""

    record: int
    ranked: int
    profile: int = 0
    codec: int = 0

    @staticmethod
    def narrowest(n_features: int) -> Widths:
        return Widths(n_features, 0)

    @staticmethod
    def widest_record(n_features: int) -> Widths:
        return Widths(4 * n_features, n_features)

    @staticmethod
    def widest(n_features: int, n_rows: int, most_values: int | None) -> Widths:
        """All values differ, as far as their type lets them."""
        distinct = n_rows if most_values is None else min(n_rows, most_values)
        if distinct > MOST_CODES:
            return Widths.widest_record(n_features)
        return Widths.most_codes(n_features, distinct)

    @staticmethod
    def most_codes(n_features: int, distinct: int) -> Widths:
        """So many values, at most as codes hold, which have to be known."""
        distinct = min(distinct, MOST_CODES)
        profile, codec = (kind.bytes_of_feature(distinct) for kind in (_core.Profile, _core.RowCodec))
        return Widths(2 * n_features, 0, n_features * profile, n_features * codec)

    @staticmethod
    def of(widths: list[int], profile: int = 0, codec: int = 0) -> Widths:
        return Widths(sum(widths), sum(width == 4 for width in widths), profile, codec)
