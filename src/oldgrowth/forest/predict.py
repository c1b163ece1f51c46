"""Predictions of an array, in parallel over its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..rows.array_rows import as_float32
from ..system.threads import workers
from .forest import Forest

# Rows converted at a time: an upper bound for copies of X, and a multiple of the core's batch.
_ROWS_AT_A_TIME = 65_536
# The same with categories: their trees take longer to prepare. These rows are codes, which are not converted.
_CODED_ROWS_AT_A_TIME = 131_072
# Fewer rows than this are predicted without starting threads.
ROWS_WORTH_A_THREAD = 1024
# Walks that look out for missing values take several times as long: up to this share of rows with missing
# values, all rows are walked without, and these rows again.
_MOST_AGAIN = 0.25


@dataclass(frozen=True)
class _Walk:
    """A forest, and what is done with rows: work(rows, whether numbers may be missing, their results).

    With `evict` the pages of a mapped forest are freed after use.
    """

    forest: Forest
    evict: bool
    work: Callable[[npt.NDArray[np.float32], bool, npt.NDArray[Any]], None]


def _over_rows(
    walk: _Walk,
    x: npt.NDArray[np.generic],
    n_jobs: int,
    out: npt.NDArray[Any],
    names: npt.NDArray[np.object_] | None,
) -> None:
    """Fill `out` with the results of all rows."""
    levels = np.array(walk.forest.levels)
    jobs = max(1, min(n_jobs, len(x) // ROWS_WORTH_A_THREAD))
    step = max(1, -(-len(x) // jobs))
    if not walk.evict:  # else each part reads all of the forest
        step = -(-step // -(-step // _CODED_ROWS_AT_A_TIME)) if len(levels) else min(_ROWS_AT_A_TIME, step)
    parts = [slice(first, min(first + step, len(x))) for first in range(0, len(x), step)]

    def one(part: slice) -> None:
        rows, missing = as_float32(x[part], range(part.start, part.stop), names)
        again = _missing_rows(rows, levels) if missing and not walk.evict else None
        if again is None or len(again) > _MOST_AGAIN * len(rows):
            walk.work(rows, missing, out[part])
            return
        walk.work(rows, False, out[part])
        if len(again) == 0:
            return
        found = np.empty((len(again), *out.shape[1:]), dtype=out.dtype)
        walk.work(rows[again], True, found)
        out[part][again] = found

    if jobs == 1:
        for part in parts:
            one(part)
        return
    with workers(jobs) as pool:
        for _ in pool.map(one, parts):
            pass


def _missing_rows(rows: npt.NDArray[np.float32], levels: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """The rows in which a number is missing; walks know what a missing level is."""
    if len(levels) == 0:
        return np.flatnonzero(np.isnan(rows.min(axis=1)))
    columns = np.flatnonzero(np.isnan(rows.min(axis=0)) & (levels == 0))
    return np.flatnonzero(np.isnan(rows[:, columns]).any(axis=1))


def predict_means(
    forest: Forest,
    hard: bool,
    x: npt.NDArray[np.generic],
    n_jobs: int,
    names: npt.NDArray[np.object_] | None = None,
    evict: bool = False,
) -> npt.NDArray[np.float64]:
    """The mean over the trees for each row: shares of the classes, votes if `hard`, or values.

    With `evict` the pages of a mapped forest are freed after use, because it does not fit in memory.
    """
    means = np.empty((len(x), forest.n_outputs))

    def work(rows: npt.NDArray[np.float32], missing: bool, sums: npt.NDArray[np.float64]) -> None:
        forest.predict_sums(rows, missing, hard, evict, sums)

    _over_rows(_Walk(forest, evict, work), x, n_jobs, means, names)
    means /= forest.n_trees
    return means


def apply(
    forest: Forest,
    x: npt.NDArray[np.generic],
    n_jobs: int,
    names: npt.NDArray[np.object_] | None = None,
    evict: bool = False,
) -> npt.NDArray[np.int64]:
    """The number of the leaf that each row reaches in each tree."""
    leaves = np.empty((len(x), forest.n_trees), dtype=np.int64)

    def work(rows: npt.NDArray[np.float32], missing: bool, numbers: npt.NDArray[np.int64]) -> None:
        forest.apply(rows, missing, evict, numbers)

    _over_rows(_Walk(forest, evict, work), x, n_jobs, leaves, names)
    return leaves
