"""Converts labels to class codes while they are read."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from ..datasets.batches import Batch
from ..datasets.labels import CodedLabels, text_array, whole_type
from ..errors import DataError, SameNumberError, TooManyLabelsError, UnseenLabelError

# Whole numbers that lie this close are told apart by counting rather than sorting.
_COUNTED_SPAN = 2**16
_CODED_AT_ONCE = 2**18


def class_numbers(y: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
    """The classes of labels in memory, ascending, and the number of each row's class."""
    if y.dtype.kind not in "iufbUS":
        classes, codes = np.unique(y, return_inverse=True)
        return classes, codes.astype(np.float64)
    parts = [slice(first, first + _CODED_AT_ONCE) for first in range(0, len(y), _CODED_AT_ONCE)]
    classes = np.unique(np.concatenate([np.unique(y[part]) for part in parts]))
    numbers = np.empty(len(y))
    for part in parts:
        numbers[part] = np.searchsorted(classes, y[part])
    return classes, numbers


# Bytes of a label beside its text: Python's object, its place among all, the class; and its sum of weights.
_BESIDE_TEXT, _SUM_OF_WEIGHTS = 200, 700


@dataclass(frozen=True)
class LabelLimit:
    """The bytes that labels may take, and a function for the memory limit that they would need: its arguments
    are the number of labels and their bytes so far, and the rows they came from."""

    most_bytes: int
    needed: Callable[[int, int, int], int]


class LabelCoder:
    """Numbers classes as they appear; once `finish`ed, in the order of the labels, and refuses new ones."""

    def __init__(self, column: str = "y", weighted: bool = False) -> None:
        self._numbers: dict[Any, int] = {}
        self._beside_text = _BESIDE_TEXT + _SUM_OF_WEIGHTS * weighted
        self._dtype: np.dtype[Any] | None = None
        self._spellings = Spellings(column)
        self._column = column
        self._keys = np.zeros(0, dtype=np.uint64)  # of each class
        self._keys_are_codes = False  # in checkpoints of earlier versions
        self.bytes = 0  # of all labels
        self.limit: LabelLimit | None = None
        self.classes: npt.NDArray[Any] | None = None

    def code(self, batch: Batch) -> npt.NDArray[np.float64]:
        assert batch.y is not None
        labels, places = told_apart(batch.y)
        if self.classes is not None:
            return self._known(batch, labels, places)
        _check_labels(labels, places, batch.first_row, batch.where_of)
        self._spellings.check(batch, self._numbers)
        self._dtype = labels.dtype if self._dtype is None else _common_type(self._dtype, labels.dtype)
        before = len(self._numbers)
        numbers = [self._numbers.setdefault(label, len(self._numbers)) for label in labels.tolist()]
        if len(self._numbers) > before:
            self._count(before, batch.first_row + len(batch.x))
        return np.array(numbers, dtype=np.float64)[places]

    def _known(
        self, batch: Batch, labels: npt.NDArray[Any], places: npt.NDArray[np.intp]
    ) -> npt.NDArray[np.float64]:
        numbers = [self._numbers.get(label, -1) for label in labels.tolist()]
        if -1 in numbers:
            unseen = numbers.index(-1)
            row = batch.first_row + int(np.flatnonzero(places == unseen)[0])
            raise UnseenLabelError(labels.tolist()[unseen], row, batch.where_of(row))
        return np.array(numbers, dtype=np.float64)[places]

    def keys_of(self, codes: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
        """For each class number a key that depends on the label alone, for checksums."""
        return self._keys[codes.astype(np.intp)]

    def codes_of(self, other: LabelCoder) -> npt.NDArray[np.int64]:
        """The class numbers here of all classes that another coder knows."""
        return np.array([self._numbers[label] for label in other._numbers], dtype=np.int64)

    def merge(self, following: LabelCoder, rows: int) -> npt.NDArray[np.int64]:
        """Merge the labels of another coder, of the rows that follow up to row number `rows`. Returns the
        class numbers here of the classes there. Neither may be finished."""
        self._spellings.merge(following._spellings, self._numbers, following._numbers)
        if following._dtype is not None:
            self._dtype = (
                following._dtype if self._dtype is None else _common_type(self._dtype, following._dtype)
            )
        before = len(self._numbers)
        codes = [self._numbers.setdefault(label, len(self._numbers)) for label in following._numbers]
        if len(self._numbers) > before:
            self._count(before, rows)
        return np.array(codes, dtype=np.int64)

    def _count(self, before: int, rows: int) -> None:
        """Refuse labels that would fill the memory: they are ids of single rows, not classes."""
        new = list(islice(reversed(self._numbers), len(self._numbers) - before))[::-1]
        self._add(new, before)
        if self.limit is not None and self.bytes > self.limit.most_bytes:
            needed = self.limit.needed(len(self._numbers), self.bytes, rows)
            raise TooManyLabelsError(self._column, len(self._numbers), rows, self.bytes, needed)

    def _add(self, labels: Iterable[Any], before: int) -> None:
        """Count the bytes and compute the keys of new labels, after this many others."""
        keys = []
        for number, label in enumerate(labels, before):
            self.bytes += self._beside_text + (4 * len(label) if isinstance(label, str) else 0)
            keys.append(_code_bits(number) if self._keys_are_codes else _label_key(label))
        self._keys = np.append(self._keys, np.array(keys, dtype=np.uint64))

    def finish(self) -> npt.NDArray[np.int64]:
        """The final number of each class numbered so far."""
        try:
            ordered = sorted(self._numbers)
        except TypeError as error:
            kinds = sorted({type(label).__name__ for label in self._numbers})
            raise DataError(f"The labels have different types: {', '.join(kinds)}.") from error
        final = np.empty(len(ordered), dtype=np.int64)
        for number, label in enumerate(ordered):
            final[self._numbers[label]] = number
            self._numbers[label] = number
        self._keys = self._keys[np.argsort(final)]
        self.classes = self._as_array(ordered)
        return final

    def _as_array(self, ordered: list[Any]) -> npt.NDArray[Any]:
        if ordered and isinstance(ordered[0], str):
            return text_array(ordered)
        if self._dtype == np.dtype(object):  # signed and unsigned numbers
            return np.array(ordered, dtype=whole_type(ordered[0], ordered[-1]))
        return np.array(ordered, dtype=self._dtype)

    def state(self) -> dict[str, Any]:
        dtype = None if self._dtype is None else self._dtype.str
        odd = [(number, *vars(text).values()) for number, text in self._spellings.odd.items()]
        keys = "codes" if self._keys_are_codes else "labels"
        return {"labels": list(self._numbers), "dtype": dtype, "odd": odd, "keys": keys}

    def restore(self, state: dict[str, Any]) -> None:
        self._numbers = {label: i for i, label in enumerate(state["labels"])}
        self._dtype = None if state["dtype"] is None else np.dtype(state["dtype"])
        self._spellings.odd = {number: OddText(*text) for number, *text in state.get("odd", [])}
        self._keys_are_codes = state.get("keys") != "labels"
        self._keys, self.bytes = self._keys[:0], 0
        self._add(self._numbers, 0)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"limit": None}  # which holds for this process


def _label_key(label: Any) -> int:
    """The same for 2 and 2.0, which are one label; numbers are whole."""
    text = f"t{label}" if isinstance(label, str) else f"n{int(label)}"
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _code_bits(code: int) -> int:
    return int(np.float64(code).view(np.uint64))


@dataclass(frozen=True)
class OddText:
    """How a label that is a number was written, and where first."""

    text: str
    row: int = 0
    where: str = "the data"


class Spellings:
    """How labels that are numbers were written: two texts must not become one number."""

    def __init__(self, column: str) -> None:
        self._column = column
        self.odd: dict[Any, OddText] = {}

    def check(self, batch: Batch, known: Container[Any]) -> None:
        """`known` are the labels of the batches before."""
        odd, y = batch.odd_texts, batch.y
        if odd is None and not self.odd:
            return
        assert isinstance(y, np.ndarray)
        rows = np.empty(0, dtype=np.intp) if odd is None else odd.rows
        plain = set(told_apart(np.delete(y, rows))[0].tolist())
        texts, firsts = ([], rows) if odd is None else (odd.texts, odd.first_rows())
        for text, number, row in zip(texts, y[firsts].tolist(), firsts.tolist(), strict=True):
            row += batch.first_row
            found = self.odd.get(number)
            other = None if found is None else found.text
            if other is None and (number in plain or number in known):
                other = _plain(number)
            if other is not None and (other != text or number in plain):
                raise SameNumberError(self._column, text, other, row, batch.where_of(row))
            if found is None:
                self.odd[number] = OddText(text, row, batch.where_of(row))
        for number in plain.intersection(self.odd):
            row = batch.first_row + int(np.flatnonzero(y == number)[0])
            raise SameNumberError(
                self._column, self.odd[number].text, _plain(number), row, batch.where_of(row)
            )

    def merge(self, following: Spellings, known: Container[Any], known_there: Container[Any]) -> None:
        """Learn the spellings of rows that follow; `known` are all labels here, and all labels there."""
        for number, odd in following.odd.items():
            found = self.odd.get(number)
            if found is None and number not in known:
                self.odd[number] = odd
            elif found is None or found.text != odd.text:
                other = _plain(number) if found is None else found.text
                raise SameNumberError(self._column, odd.text, other, odd.row, odd.where)
        for number, odd in self.odd.items():
            if number in known_there and number not in following.odd:
                raise SameNumberError(self._column, odd.text, _plain(number), odd.row, odd.where)


class ScoredSpellings:
    """Refuses labels that are scored as a fit would: two texts that are one number."""

    def __init__(self, column: str | None, classes: npt.NDArray[Any]) -> None:
        self._spellings = Spellings(column or "y")
        self._classes = set(classes.tolist())
        self._seen: set[Any] = set()  # those of the classes that occurred

    def check(self, batch: Batch) -> None:
        if batch.y is None or isinstance(batch.y, CodedLabels):
            return
        self._spellings.check(batch, self._seen)
        if len(self._seen) < len(self._classes):
            self._seen.update(self._classes.intersection(told_apart(batch.y)[0].tolist()))


def _plain(number: float) -> str:
    if isinstance(number, bool):
        return str(number).lower()
    return f"{number:.0f}" if isinstance(number, float) else str(number)


def _common_type(one: np.dtype[Any], other: np.dtype[Any]) -> np.dtype[Any]:
    common = np.result_type(one, other)
    if common.kind == "f" and one.kind in "iu" and other.kind in "iu":
        return np.dtype(object)  # NumPy's floats would round them
    return common


def numbers_of(y: npt.NDArray[Any] | CodedLabels, classes: dict[Any, int]) -> npt.NDArray[np.intp]:
    """The class of each label by its value, -1 for one that is none: 2 and 2.0 are the same label whatever
    files call them, and whole numbers are not rounded."""
    labels, places = told_apart(y)
    return np.array([classes.get(label, -1) for label in labels.tolist()], dtype=np.intp)[places]


def told_apart(y: npt.NDArray[Any] | CodedLabels) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """The labels that occur, and for each row the place of its label among them."""
    if isinstance(y, CodedLabels):
        used, places = told_apart(y.codes)
        return y.labels[used], places
    if y.dtype.kind in "ui" and len(y):
        low = int(y.min())
        if int(y.max()) - low < _COUNTED_SPAN:
            shifted = (
                (y.astype(np.int64) - low) if y.dtype != np.uint64 else (y - np.uint64(low)).astype(np.int64)
            )
            present = np.bincount(shifted) > 0
            found = np.flatnonzero(present)
            return found.astype(y.dtype) + y.dtype.type(low), (np.cumsum(present) - 1)[shifted]
    labels, places = np.unique(y, return_inverse=True)
    return labels, places.reshape(-1)


def _check_labels(
    labels: npt.NDArray[Any],
    places: npt.NDArray[np.intp],
    first_row: int,
    where_of: Callable[[int], str],
) -> None:
    """Refuse what scikit-learn refuses as a label: numbers that are not whole."""
    if labels.dtype.kind == "f" and not np.all(labels == np.floor(labels)):
        odd = int(np.flatnonzero(labels != np.floor(labels))[0])
        row = first_row + int(np.flatnonzero(places == odd)[0])
        raise DataError(
            f"The target holds the value {labels[odd]} in row {row} of {where_of(row)}, which is not a "
            "label: use a regressor for values that are not whole numbers."
        )
