"""Finds features that only number the rows, in the first rows of the first pass, and warns of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from ..datasets.batches import FloatsOrBytes
from ..messages.log import warn
from ..messages.warnings import IdColumnWarning

# What pandas calls an index that was written without a name: in CSV, in Parquet, in CSV read by others.
_INDEX = re.compile(r"(Unnamed: \d+|__index_level_\d+__|)")
_ID = re.compile(r"(.*[ _.-])?(id|ids|uuid|guid)|index|idx|row[ _]?(id|number|num|no)", re.IGNORECASE)
_CAMEL_CASE_ID = re.compile(r".*[a-z](Id|ID)")
# Rows that are looked at: all features in the first few, those that are left in more.
_STEPS = (64, 1024, 65_536)
_MOST_VALUES = 2**22
# n whole numbers drawn from a range of r are all different with a probability of at most exp(-n * n / 2r).
# With an exponent beyond this it is no accident. Features that are named like ids need not prove it.
_NO_ACCIDENT = 15
_LARGEST_EXACT = 2**24  # whole number in float32: ids beyond it may have become equal


class IdFinder:
    """Looks at the first rows until they are conclusive, then warns once, if at all.

    The given rows begin with number `first_row`. What was found in consecutive rows merges.
    """

    def __init__(
        self,
        n_features: int,
        names: Iterable[object] | None,
        first_row: int = 0,
        categorical: Iterable[int] = (),
    ) -> None:
        self._names = None if names is None else [str(name) for name in names]
        self._most_rows = max(0, _STEPS[-1] - first_row)
        # A single feature is what it is meant to be.
        numbers = np.setdiff1d(np.arange(n_features), list(categorical))  # codes of levels are no numbers
        self._left = numbers if n_features > 1 else numbers[:0]
        self._values = np.empty((0, len(self._left)), dtype=np.float32)
        self._ended = False  # there are more rows than it looks at
        self._warned = False

    def add(self, x: FloatsOrBytes) -> None:
        """Check the next rows; almost no work once no feature is left, which is soon."""
        at = 0
        for step in _STEPS:
            most = min(step, self._most_rows, _MOST_VALUES // max(1, len(self._left)))
            rows = most - len(self._values)
            if not self._ended and rows > 0 and at < len(x):
                self._look(np.asarray(x[at : at + rows, self._left], dtype=np.float32))
                at += rows
        self._ended = self._ended or at < len(x)

    def merge(self, following: IdFinder) -> None:
        """Merge what was found in the rows that follow."""
        if self._ended:
            return
        both = np.intersect1d(self._left, following._left)
        self._values = self._values[:, np.isin(self._left, both)]
        self._left, self._ended = both, following._ended
        self._look(following._values[:, np.isin(following._left, both)])

    @property
    def knows(self) -> bool:
        """Whether more rows would change nothing."""
        return self._ended or not len(self._left)

    def _look(self, x: npt.NDArray[np.float32]) -> None:
        seen = np.concatenate([self._values, x])
        named = np.array([self._named_id(f) for f in self._left.tolist()], dtype=np.bool_)
        whole = (seen == np.floor(seen)).all(axis=0)  # not so if one is missing
        spread = np.ptp(seen, axis=0) if len(seen) else np.zeros(len(self._left))
        too_wide = spread > max(_STEPS) ** 2 / (2 * _NO_ACCIDENT)
        left = whole & (named | (_all_different(seen) & ~too_wide))
        self._left, self._values = self._left[left], seen[:, left]

    def _named_id(self, feature: int) -> bool:
        if self._names is None:
            return False
        name = self._names[feature].strip()
        return bool(_ID.fullmatch(name) or _CAMEL_CASE_ID.fullmatch(name))

    def finish(self) -> None:
        """Warn of the features found, if not done before."""
        if self._warned:
            return
        self._warned = True
        names = self._names or []
        where = f"each of the first {len(self._values):,} rows" if self._ended else "every row"
        found: dict[str | int, str] = {
            name: "by its name a data frame's index" for name in names if _INDEX.fullmatch(name.strip())
        }
        for feature, different in self._ids():
            why = f"a different whole number in {where}" if different else "by its name an id"
            found.setdefault(names[feature] if names else feature, why)
        self._left, self._values = self._left[:0], self._values[:, :0]
        if found:
            warn(IdColumnWarning(found))

    def _ids(self) -> Iterator[tuple[int, bool]]:
        """Features that look like ids, and whether their values are all different."""
        n = len(self._values)
        if n < 2 or not len(self._left):
            return
        different, spread = _all_different(self._values), np.ptp(self._values, axis=0) + 1.0
        beyond = np.abs(self._values).min(axis=0) >= _LARGEST_EXACT
        for i, feature in enumerate(self._left.tolist()):
            named = self._named_id(feature)
            if different[i] and (named or n * n / (2 * spread[i]) >= _NO_ACCIDENT):
                yield feature, True
            elif named and beyond[i]:
                yield feature, False


def _all_different(values: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
    """Of each column, whether no value occurs twice."""
    differ: npt.NDArray[np.bool_] = np.diff(np.sort(values, axis=0), axis=0) > 0
    return np.logical_and.reduce(differ, axis=0)
