"""Summary of all rows from the first pass: their number, classes or range of targets, and weight."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class DataSummary:
    """`class_rows` and `class_weight` have a place for each class; low and high are for a regression."""

    n_rows: int
    n_features: int
    n_classes: int
    record_bytes: int = 0  # of a row as the codec packs it
    class_rows: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    class_weight: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    weighted: bool = False
    weight: float = 0.0
    low: float = 0.0
    high: float = 0.0


class SummaryBuilder:
    """Summarizes rows chunk by chunk; the result does not depend on the chunks."""

    def __init__(self, n_features: int, classification: bool) -> None:
        self._n_features = n_features
        self._classification = classification
        self.n_rows = 0
        self._class_rows = np.zeros(0, dtype=np.int64)
        self._weight: dict[int, ExactSum] = {}  # of each class; of all rows in a regression
        self._low, self._high = np.inf, -np.inf

    def add(self, targets: npt.NDArray[np.float64], weights: npt.NDArray[np.float64] | None) -> None:
        self.n_rows += len(targets)
        if not self._classification:
            self._low, self._high = min(self._low, targets.min()), max(self._high, targets.max())
            if weights is not None:
                self._weight.setdefault(0, ExactSum()).add(weights)
            return
        codes = targets.astype(np.intp)
        counts = np.bincount(codes, minlength=len(self._class_rows))
        counts[: len(self._class_rows)] += self._class_rows
        self._class_rows = counts
        if weights is not None:
            for code in np.flatnonzero(np.bincount(codes)).tolist():
                self._weight.setdefault(code, ExactSum()).add(weights[codes == code])

    def merge(self, following: SummaryBuilder, codes: npt.NDArray[np.int64] | None = None) -> None:
        """Add other rows; `codes` are the class numbers here of the classes there, if they differ."""
        self.n_rows += following.n_rows
        self._low, self._high = min(self._low, following._low), max(self._high, following._high)
        there = following._class_rows
        numbers = np.arange(len(there)) if codes is None else codes[: len(there)]
        rows = np.zeros(max(len(self._class_rows), int(numbers.max(initial=-1)) + 1), dtype=np.int64)
        rows[: len(self._class_rows)] = self._class_rows
        rows[numbers] += there
        self._class_rows = rows
        for code, total in following._weight.items():
            here = code if codes is None else int(codes[code])
            self._weight.setdefault(here, ExactSum()).merge(total)

    @property
    def n_classes(self) -> int:
        """The number of classes so far."""
        return len(self._class_rows)

    @property
    def class_rows(self) -> npt.NDArray[np.int64]:
        """The rows of each class so far."""
        return self._class_rows

    @property
    def weighted(self) -> bool:
        return bool(self._weight)

    def recode(self, final: npt.NDArray[np.int64]) -> None:
        """Renumber the classes: `final` has the new number of each."""
        rows = np.zeros(len(final), dtype=np.int64)
        rows[final[: len(self._class_rows)]] = self._class_rows
        self._class_rows = rows
        self._weight = {int(final[code]): total for code, total in self._weight.items()}

    def state(self) -> dict[str, Any]:
        return {
            "rows": self.n_rows,
            "class_rows": self._class_rows.tolist(),
            "weight": {code: total.state() for code, total in self._weight.items()},
            "range": [float(self._low).hex(), float(self._high).hex()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.n_rows = state["rows"]
        self._class_rows = np.array(state["class_rows"], dtype=np.int64)
        self._weight = {int(code): ExactSum(total) for code, total in state["weight"].items()}
        self._low, self._high = (float.fromhex(text) for text in state["range"])

    def summary(self, n_classes: int, record_bytes: int = 0) -> DataSummary:
        rows, sums = np.zeros(n_classes, dtype=np.int64), np.zeros(n_classes)
        if self._classification:
            rows[: len(self._class_rows)] = self._class_rows
            for code, total in self._weight.items():
                sums[code] = total.value()
        everything = ExactSum.of(self._weight.values()) if self.weighted else float(self.n_rows)
        return DataSummary(
            self.n_rows,
            self._n_features,
            n_classes,
            record_bytes,
            rows,
            sums if self.weighted else rows.astype(np.float64),
            self.weighted,
            everything,
            float(self._low) if self.n_rows else 0.0,
            float(self._high) if self.n_rows else 0.0,
        )


class ExactSum:
    """A sum of doubles without rounding, so that their order does not matter."""

    def __init__(self, by_exponent: dict[str, int] | None = None) -> None:
        self._by_exponent: dict[int, int] = {int(e): total for e, total in (by_exponent or {}).items()}

    def state(self) -> dict[str, int]:
        return {str(e): total for e, total in self._by_exponent.items()}

    def add(self, values: npt.NDArray[np.float64]) -> None:
        mantissa, exponent = np.frexp(values)
        whole = (mantissa * 2.0**53).astype(np.int64)
        for e in np.unique(exponent).tolist():
            here = whole[exponent == e]
            high, low = here >> 26, here & (2**26 - 1)  # halves: their sums fit 64 bits
            total = (int(high.sum()) << 26) + int(low.sum())
            self._by_exponent[e] = self._by_exponent.get(e, 0) + total

    def merge(self, other: ExactSum) -> None:
        for e, total in other._by_exponent.items():
            self._by_exponent[e] = self._by_exponent.get(e, 0) + total

    def _exact(self) -> Fraction:
        return sum(
            (Fraction(total) * Fraction(2) ** (e - 53) for e, total in self._by_exponent.items()), Fraction()
        )

    def value(self) -> float:
        return _rounded(self._exact())

    @staticmethod
    def of(sums: Iterable[ExactSum]) -> float:
        """The sum of sums."""
        return _rounded(sum((part._exact() for part in sums), Fraction()))


def _rounded(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf
