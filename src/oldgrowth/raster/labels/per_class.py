"""At most so many pixels of each class, drawn at random.

Each pixel has a random number that depends on the seed and its place alone, and those with the lowest numbers
of their class are drawn: strips and threads do not show in the result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...datasets.labels import CodedLabels, Labels
from ...errors import ParameterError
from ..reading.grid import Grid
from ..reading.strips import Strip, StripLabels, StripRows

Numbers = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class PerClass:
    """Pixels whose random number is at most the highest one that was drawn of their class."""

    n: int
    seed: int
    highest: dict[Any, int]
    grids: tuple[Grid, ...]

    @staticmethod
    def drawn(n: int, seed: int, rows: Iterable[StripRows], grids: Sequence[Grid]) -> PerClass:
        """Draw among the rows of a scene. It takes up to 16 bytes for each row that is drawn."""
        lowest: dict[Any, Numbers] = {}
        places = tuple(grids)
        for some in rows:
            if some.labels is None or not len(some.lines):
                continue
            numbers = random_numbers(seed, some.strip, some.lines, some.pixels, places)
            labels = some.labels.at(some.lines, some.pixels)
            _check_classes(n, labels)
            for label, of_label in _by_label(labels, numbers):
                kept = np.concatenate([lowest.get(label, of_label[:0]), of_label])
                lowest[label] = np.partition(kept, n - 1)[:n].copy() if len(kept) >= 2 * n else kept
        highest = {
            label: int(np.partition(kept, n - 1)[n - 1]) if len(kept) >= n else 2**64 - 1
            for label, kept in lowest.items()
        }
        return PerClass(n, seed, highest, places)

    def keeps(self, strip: Strip, labels: StripLabels | None) -> npt.NDArray[np.bool_]:
        assert labels is not None
        kept = labels.present.copy()
        lines, pixels = np.nonzero(kept)
        values, of_value = _distinct(labels.at(lines, pixels))
        limits = np.array([self.highest.get(value, 0) for value in values], dtype=np.uint64)
        if len(lines):
            kept[lines, pixels] = (
                random_numbers(self.seed, strip, lines, pixels, self.grids) <= limits[of_value]
            )
        return kept

    def fingerprint(self) -> dict[str, Any]:
        drawn = repr(sorted(self.highest.items(), key=repr))
        return {"per_class": self.n, "seed": self.seed, "drawn": hashlib.sha256(drawn.encode()).hexdigest()}

    def __str__(self) -> str:
        return f"drawn by per_class={self.n}"


def random_numbers(
    seed: int,
    strip: Strip,
    lines: npt.NDArray[np.intp],
    pixels: npt.NDArray[np.intp],
    grids: Sequence[Grid],
) -> Numbers:
    """A random number of each pixel, different from all others: the finalizer of splitmix64."""
    before = sum(grid.width * grid.height for grid in grids[: strip.scene])
    place = (before + (strip.first + lines) * grids[strip.scene].width + pixels).astype(np.uint64)
    start = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    z = place * np.uint64(0x9E3779B97F4A7C15) + start
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _distinct(labels: Labels) -> tuple[list[Any], npt.NDArray[Any]]:
    """The different labels, and which of them each one is."""
    if isinstance(labels, CodedLabels):
        used, of_value = np.unique(labels.codes, return_inverse=True)
        return labels.labels[used].tolist(), of_value
    values, of_value = np.unique(labels, return_inverse=True)
    return values.tolist(), of_value


def _check_classes(n: int, labels: Labels) -> None:
    if isinstance(labels, CodedLabels) or labels.dtype.kind != "f":
        return
    broken = labels[labels != np.floor(labels)]
    if len(broken):
        raise ParameterError("per_class", n, f"None: labels such as {broken[0]:g} are not classes")


def _by_label(labels: Labels, numbers: Numbers) -> Iterable[tuple[Any, Numbers]]:
    values, of_value = _distinct(labels)
    order = np.argsort(of_value, kind="stable")
    edges = np.searchsorted(of_value[order], np.arange(len(values) + 1))
    for i in np.flatnonzero(np.diff(edges)).tolist():
        yield values[i], numbers[order[edges[i] : edges[i + 1]]]
