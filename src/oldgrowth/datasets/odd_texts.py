"""Labels that are numbers and were more than that: 007, or more digits than float64 holds.

Two of them may become one number. Only where labels are classes does it matter, so the texts go along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

ODD_TEXTS = "\0odd texts"  # a column with the texts of labels that are odd as numbers, null for others
PLAIN_BOOLS = pa.array(["true", "false"])


@dataclass(frozen=True)
class OddTexts:
    """What some labels were that are numbers now: texts like 007, or numbers with more digits than float64
    holds. Another text may be the same number."""

    rows: npt.NDArray[np.intp]
    texts: list[str]

    def moved(self, by: int) -> OddTexts:
        return OddTexts(self.rows + by, self.texts)


def join_odd(parts: Sequence[OddTexts]) -> OddTexts | None:
    if not parts:
        return None
    return OddTexts(np.concatenate([part.rows for part in parts]), [t for part in parts for t in part.texts])


def odd_decimals(column: pa.Array) -> OddTexts | None:
    """The decimals of a column that are not the same as floats."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not pa.types.is_decimal(column.type) or column.type.precision <= 15:
        return None
    try:
        odd = pc.not_equal(column.cast(pa.float64()).cast(column.type), column)
        rows = np.flatnonzero(odd.to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:  # a float just above the largest decimal
        rows = np.arange(len(column))
    if not len(rows):
        return None
    return OddTexts(rows, [str(value) for value in column.take(pa.array(rows)).to_pylist()])


def with_odd_texts(
    batch: pa.RecordBatch, target: str, kind: pa.DataType, decimal: str | None = None
) -> pa.RecordBatch:
    """The batch with its labels as numbers, and with the texts of those that share a number with others."""
    place = batch.schema.get_field_index(target)
    texts = pc.ascii_trim_whitespace(batch.column(place))
    if decimal is not None:
        texts = pc.replace_substring(texts, decimal, ".")
    odd = pc.invert(pc.is_in(texts, PLAIN_BOOLS)) if pa.types.is_boolean(kind) else odd_numbers(texts, kind)
    batch = batch.set_column(place, target, texts.cast(kind))
    if pc.any(odd).as_py():
        batch = batch.append_column(ODD_TEXTS, pc.if_else(odd, texts, None))
    return batch


def odd_numbers(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    odd = pc.match_substring_regex(texts, r"^([-+]?0[0-9]|-0+$|\+)")
    if pa.types.is_floating(kind):
        odd = pc.or_(odd, pc.match_substring_regex(texts, r"^[-+]?[0-9]{16,}\.?0*$"))
    return odd
