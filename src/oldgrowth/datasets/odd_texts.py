"""Keeps the text of labels and levels that lose information as numbers: 007, or more digits than float64
holds.

Two of them may become the same number. This matters only for classes and categories, so their text is kept
with the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

ODD_TEXTS = "\0odd texts"  # name of a column with the text of such labels, null for others
# The canonical form of whole numbers that float64 holds exactly.
PLAIN_NUMBER = r"^(0|-?[1-9][0-9]{0,14})$"
PLAIN_BOOLS = pa.array(["true", "false"])
ODD_LEVEL = r"^[-+]?0[0-9]|[0-9]{16}"  # 7.0 and 7 are one level, 007 and 7 are not


@dataclass(frozen=True)
class OddTexts:
    """The original text of labels that were converted to numbers, such as 007, 7.0 or numbers with more
    digits than float64 holds. Different texts may be the same number."""

    rows: npt.NDArray[np.intp]
    texts: list[str]  # distinct
    codes: npt.NDArray[np.intp]  # index into `texts` for each of `rows`

    def moved(self, by: int) -> OddTexts:
        return OddTexts(self.rows + by, self.texts, self.codes)

    def first_rows(self) -> npt.NDArray[np.intp]:
        """The first row of each text."""
        return self.rows[np.unique(self.codes, return_index=True)[1]]


def join_odd(parts: Sequence[OddTexts]) -> OddTexts | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    places: dict[str, int] = {}
    codes = []
    for part in parts:
        here = np.array([places.setdefault(text, len(places)) for text in part.texts], dtype=np.intp)
        codes.append(here[part.codes])
    return OddTexts(np.concatenate([part.rows for part in parts]), list(places), np.concatenate(codes))


def odd_rows(texts: pa.Array) -> OddTexts | None:
    """The texts of a column that is null for all other labels."""
    rows = np.flatnonzero(texts.is_valid().to_numpy(zero_copy_only=False))
    if not len(rows):
        return None
    coded = texts.drop_null().dictionary_encode()
    codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.intp)
    return OddTexts(rows, coded.dictionary.to_pylist(), codes)


def odd_decimals(column: pa.Array) -> OddTexts | None:
    """The decimals of a column that float64 does not hold exactly."""
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
    texts = [str(value) for value in column.take(pa.array(rows)).to_pylist()]
    return join_odd([OddTexts(rows, texts, np.arange(len(rows))), OddTexts(rows[:0], [], rows[:0])])


def with_odd_texts(
    batch: pa.RecordBatch, target: str, kind: pa.DataType, decimal: str | None = None
) -> pa.RecordBatch:
    """Convert the labels of a batch to numbers, and add a column with the text of non-canonical ones."""
    place = batch.schema.get_field_index(target)
    written = batch.column(place)
    texts = pc.ascii_trim_whitespace(written)
    if decimal is not None:
        texts = pc.replace_substring(texts, decimal, ".")
    numbers = texts.cast(kind)
    if pa.types.is_boolean(kind):
        odd = pc.invert(pc.is_in(written, PLAIN_BOOLS))
    else:
        odd = pc.invert(pc.match_substring_regex(written, PLAIN_NUMBER))
    if pa.types.is_floating(kind):  # fractions are not class labels
        odd = pc.and_(odd, pc.equal(numbers, pc.floor(numbers)))
    batch = batch.set_column(place, target, numbers)
    if pc.any(odd).as_py():
        batch = batch.append_column(ODD_TEXTS, pc.if_else(odd, written, None))
    return batch


def odd_levels(name: str) -> str:
    """The name of the column with the text of levels of a feature, null for others."""
    return f"{ODD_TEXTS} of {name}"


def with_odd_levels(
    batch: pa.RecordBatch, name: str, kind: pa.DataType, decimal: str | None = None
) -> pa.RecordBatch:
    """Convert a feature of a batch to numbers, and add a column with the text of odd ones."""
    place = batch.schema.get_field_index(name)
    texts = pc.ascii_trim_whitespace(batch.column(place))
    odd = pc.if_else(pc.match_substring_regex(texts, ODD_LEVEL), texts, None)
    if decimal is not None:
        texts = pc.replace_substring(texts, decimal, ".")
    return batch.set_column(place, name, texts.cast(kind)).append_column(odd_levels(name), odd)
