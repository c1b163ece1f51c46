"""Rows as the stages read them, from arrays in memory or streamed from a dataset."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..datasets.base import FloatsOrBytes
from ..errors import ChangedSourceError


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows, the first of which has the number `first_row`.

    Rows of weight zero are passed over and have no number; `source_end` counts them too.
    """

    first_row: int
    x: FloatsOrBytes
    targets: npt.NDArray[np.float64]  # class numbers or values
    weights: npt.NDArray[np.float64] | None
    source_end: int
    where: str = "the data"  # the file or kind of source of its rows, for errors

    @property
    def rows(self) -> int:
        return len(self.x)

    @property
    def end(self) -> int:
        return self.first_row + len(self.x)


@dataclass(frozen=True)
class Place:
    """How far a pass is: the next row's number, its number in the source, and checksums of all before: of the
    features, and of targets and weights. None of them depends on the chunks."""

    row: int = 0
    source_row: int = 0
    crc: int = 0
    side_crc: int = 0


@dataclass(frozen=True)
class LabelLimit:
    """How many bytes labels may take, and which limit on memory so many labels would need: the arguments are
    labels and their bytes so far, and the rows they came from."""

    most_bytes: int
    needed: Callable[[int, int, int], int]


class TrainingRows(ABC):
    """Rows that can be read from the beginning any number of times."""

    n_features: int
    classification: bool
    n_classes: int  # 0 for values; known after the first pass
    names: npt.NDArray[np.object_] | None
    classes: npt.NDArray[Any] | None
    random_access: bool  # whether `take` works
    checked: bool  # whether each pass is compared with the first

    @property
    @abstractmethod
    def n_rows(self) -> int | None:
        """The number of rows if known before they were all read."""

    @property
    def expected_rows(self) -> int | None:
        """The most rows that there are likely to be, if anything is known of it."""
        return self.n_rows

    @property
    def nbytes(self) -> int | None:
        return None

    @property
    def reading_bytes(self) -> int:
        """What reading takes beside the chunks."""
        return 0

    @property
    @abstractmethod
    def weighted(self) -> bool:
        """Whether rows have weights."""

    @property
    def are_bytes(self) -> bool:
        """Whether all features are known to be bytes."""
        return False

    @abstractmethod
    def chunks(self, rows: int, start: Place) -> Iterator[Chunk]: ...

    def take(self, rows: npt.NDArray[np.uint64]) -> Taken:
        """The rows of these numbers."""
        raise NotImplementedError

    def whole_targets(self) -> tuple[npt.NDArray[np.float64] | None, npt.NDArray[np.float64] | None]:
        """The targets and weights of all rows, if they are in memory anyway."""
        return None, None

    def finish_first_pass(self) -> npt.NDArray[np.int64] | None:
        """All rows were read once: the final number of each class, if it was given one for the time being."""
        return None

    def as_first_read(self, targets: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Targets of any pass as the first pass gave them, which may have numbered classes otherwise."""
        return targets

    @property
    def label_bytes(self) -> int:
        """What the labels take that were learned so far."""
        return 0

    def limit_labels(self, limit: LabelLimit) -> None:  # noqa: B027 - not all learn labels
        """Refuse labels that take more memory together."""

    def label_state(self) -> dict[str, Any]:
        """What was learned of the labels so far."""
        return {}

    def restore_labels(self, state: dict[str, Any]) -> None:  # noqa: B027 - not all learn labels
        """Go on from what was learned."""

    @abstractmethod
    def fingerprint(self) -> dict[str, Any]:
        """What tells these rows from others, without reading them all."""


@dataclass(frozen=True)
class Taken:
    """Some rows."""

    x: npt.NDArray[np.float32]
    targets: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64] | None


class Trail:
    """Places that a pass came by, at about equal distances: another pass can tell where it differs."""

    MOST = 4096

    def __init__(self, places: Iterable[Place] = ()) -> None:
        self._places = {place.source_row: place for place in places}

    def add(self, place: Place) -> None:
        self._places[place.source_row] = place
        if len(self._places) > self.MOST:
            self._places = dict(list(self._places.items())[1::2])

    def at(self, source_row: int) -> Place | None:
        return self._places.get(source_row)

    def state(self) -> list[list[int]]:
        return [list(vars(place).values()) for place in list(self._places.values())]

    @staticmethod
    def restored(state: list[list[int]]) -> Trail:
        return Trail(Place(*values) for values in state)


class Pass:
    """One reading of all rows: knows how far it is and whether it reads what the first one read.

    `first` is the trail of that one, or of this one as far as it was.
    """

    def __init__(self, rows: TrainingRows, place: Place, first: Trail) -> None:
        self._rows = rows
        self.place = place
        self._trail = first
        self._agreed = place  # with the first pass, up to here
        self._where: str | None = None  # the source behind that

    def chunks(self, size: int) -> Iterator[tuple[Chunk, Place]]:
        """Each chunk, and the place behind it."""
        for chunk in self._rows.chunks(size, self.place):
            crc, side_crc = self.place.crc, self.place.side_crc
            self._where = self._where or chunk.where
            if self._rows.checked:
                crc = _core.crc32c_of_rows(chunk.x, crc)
                side_crc = _core.crc32c(self._side(chunk), side_crc)
            self.place = Place(chunk.end, chunk.source_end, crc, side_crc)
            self._look_at_trail()
            yield chunk, self.place

    def _look_at_trail(self) -> None:
        known = self._trail.at(self.place.source_row)
        if known is None:
            self._trail.add(self.place)
        elif self._rows.checked:
            self.compare(known)
            self._agreed, self._where = self.place, None

    def _side(self, chunk: Chunk) -> npt.NDArray[np.uint8]:
        """Targets and weights, row by row."""
        columns = [self._rows.as_first_read(chunk.targets)]
        columns += [] if chunk.weights is None else [chunk.weights]
        return np.stack(columns, axis=1).reshape(-1).view(np.uint8)

    def compare(self, first: Place) -> None:
        """Refuse to be elsewhere than the first pass was."""
        if self.place == first:
            return
        where = self._where or "the data"
        if self.place.source_row != first.source_row:
            what = f"the second pass read {self.place.source_row:,} rows, the first {first.source_row:,}"
            raise ChangedSourceError(where, what)
        what = "labels or weights" if self.place.crc == first.crc else "values"
        if self.place.row != first.row:  # a row of weight zero has no values that count
            what = "weights"
        rows = f"rows {self._agreed.source_row} to {self.place.source_row - 1}"
        raise ChangedSourceError(
            where, f"the {what} in {rows} are not those of the first pass when read a second time"
        )
