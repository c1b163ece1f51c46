"""A trial: something a user might do, and the expected result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oldgrowth import RandomForestClassifier, RandomForestRegressor, open_dataset
from oldgrowth.errors import OldgrowthError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int)
NAMES = ["a", "b", "c"]


@dataclass(frozen=True)
class Trial:
    """`make` writes files into an empty folder, the working directory; `call` is what is tried.

    With `error` it must be refused by that class, with every one of the `words` in its message. Without,
    it must work, and `result` must be what it returns, if it is given.
    """

    name: str
    call: Callable[[], Any]
    make: Callable[[], Any] | None = None
    error: type[OldgrowthError] | None = None
    words: Sequence[str] = ()
    result: Any = None


@dataclass(frozen=True)
class Command:
    """A command line: its exit code, and words of what it says (on standard error if it fails)."""

    name: str
    arguments: Sequence[str]
    make: Callable[[], Any] | None = None
    code: int = 0
    words: Sequence[str] = ()
    leaves: Sequence[str] = ()  # files that there must be afterwards, besides those of `make`


def classifier(**parameters: Any) -> RandomForestClassifier:
    return RandomForestClassifier(**{"n_estimators": 2, "random_state": 0, "n_jobs": 1, **parameters})


def regressor(**parameters: Any) -> RandomForestRegressor:
    return RandomForestRegressor(**{"n_estimators": 2, "random_state": 0, "n_jobs": 1, **parameters})


def frame(**columns: Any) -> pd.DataFrame:
    """Three features and whatever else is given; a scalar is the same in every row."""
    return pd.DataFrame(X, columns=NAMES).assign(y=Y).assign(**columns)


def writes(name: str, content: str | bytes) -> Callable[[], Any]:
    data = content.encode() if isinstance(content, str) else content
    return lambda: Path(name).write_bytes(data)


def opens(source: Any, **options: Any) -> Callable[[], Any]:
    """Opens and reads a dataset; what comes back is its first row, its first label and its rows."""

    def call() -> Any:
        data = open_dataset(source, **options)
        batches = list(data.batches(1000))
        y = batches[0].y
        labels = y.decoded() if hasattr(y, "decoded") else y
        first = None if labels is None else labels[:1].tolist()[0]
        return batches[0].x[0].tolist(), first, sum(batch.rows for batch in batches)

    return call
