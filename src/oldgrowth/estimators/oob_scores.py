"""Out-of-bag scores, from predictions that come in parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..forest.scoring import Accuracy, RegressionErrors
from ..messages.log import warn
from ..messages.text import counted
from ..storage.votes import OobRows

Metric = Callable[[npt.NDArray[Any], npt.NDArray[Any]], float]


class OobScorer:
    """Scores out-of-bag predictions; keeps them only if asked to, or if a metric needs them."""

    def __init__(self, classes: Callable[[], npt.NDArray[Any] | None], metric: Any, keep: bool) -> None:
        self._classes = classes  # known once the rows were read
        self._metric: Metric | None = metric if callable(metric) else None
        self._keep = keep
        self.score = math.nan
        self.without = 0  # rows that every tree has seen
        self.rows: npt.NDArray[np.float64] | None = None

    def __call__(self, parts: Iterator[OobRows]) -> OobScorer:
        classes = self._classes()
        sums: Accuracy | RegressionErrors = RegressionErrors() if classes is None else Accuracy()
        pairs: _Pairs | None = None
        for part in parts:
            seen = ~np.isnan(part.mean[:, 0])
            self.without += int((~seen).sum())
            guess = part.mean[:, 0] if classes is None else part.mean.argmax(axis=1)
            target, guess = part.targets[seen], guess[seen]
            sums.add(target, guess)
            if self._keep:
                if self.rows is None:
                    self.rows = np.empty((part.of, part.mean.shape[1]))
                self.rows[part.first : part.first + len(part.mean)] = part.mean
            if self._metric is not None:
                pairs = pairs or _Pairs(part.of, classes)
                pairs.add(target, guess)
        if self._metric is None:
            self.score = sums.score() if sums.rows else math.nan
        elif pairs is not None and pairs.n:
            self.score = self._metric(*pairs.labels())
        self._warn()
        return self

    def _warn(self) -> None:
        if self.without:
            warn(
                f"{counted(self.without, 'row was', 'rows were')} seen by every tree, without an out-of-bag "
                "prediction (NaN): use more trees, or weights with a mean of 1.",
            )


class _Pairs:
    """Targets and predictions of all rows, for a metric; classes are kept as numbers."""

    def __init__(self, most: int, classes: npt.NDArray[Any] | None) -> None:
        dtype = np.dtype(np.float64) if classes is None else np.min_scalar_type(len(classes))
        self._classes = classes
        self._pairs = np.empty((2, most), dtype=dtype)
        self.n = 0

    def add(self, target: npt.NDArray[np.float64], guess: npt.NDArray[Any]) -> None:
        part = slice(self.n, self.n + len(target))
        self._pairs[0, part], self._pairs[1, part] = target, guess
        self.n += len(target)

    def labels(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        targets, guesses = self._pairs[:, : self.n]
        if self._classes is None:
            return targets, guesses
        return self._classes[targets], self._classes[guesses]
