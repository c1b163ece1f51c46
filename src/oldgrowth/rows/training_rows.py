"""Rows as the stages read them, from arrays in memory or streamed from a dataset."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..datasets.batches import FloatsOrBytes
from ..datasets.images import RowImage
from ..datasets.levels import FeatureLevels, counts_of
from ..errors import ChangedSourceError
from .class_codes import LabelCoder, LabelLimit


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
    """The progress of a pass: the next row's number, its number in the source, and checksums of all rows
    read: of the features, and of targets and weights. None of them depends on the chunks."""

    row: int = 0
    source_row: int = 0
    crc: int = 0
    side_crc: int = 0

    @property
    def unread(self) -> Place:
        """The same place for a pass that begins there."""
        return Place(self.row, self.source_row)

    def behind(self, before: Place, start: Place, row_bytes: tuple[int, int]) -> Place:
        """This place of a pass that began at `start`, for one that read the rows up to there, too, and had
        the checksums of `before` then; `row_bytes` are those of a row that each of the two checksums sees."""
        n = self.row - start.row
        crc = _core.crc32c_joined(before.crc, self.crc, n * row_bytes[0])
        side_crc = _core.crc32c_joined(before.side_crc, self.side_crc, n * row_bytes[1])
        return replace(self, crc=crc, side_crc=side_crc)


class TrainingRows(ABC):
    """Rows that can be read from the beginning any number of times."""

    n_features: int
    classification: bool
    n_classes: int  # 0 for values; known after the first pass
    names: npt.NDArray[np.object_] | None
    classes: npt.NDArray[Any] | None
    random_access: bool  # whether `take` works
    checked: bool  # whether each pass is compared with the first
    labels: LabelCoder | None = None  # learned in the first pass, if classes are not known before
    categorical: tuple[int, ...] = ()  # the features that are categories
    feature_levels: FeatureLevels | None = None  # known before the first pass, if there are categories

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of levels of each feature, 0 for numbers; empty without categories."""
        return counts_of(self.feature_levels)

    @property
    @abstractmethod
    def n_rows(self) -> int | None:
        """The number of rows if known before they were all read."""

    @property
    def expected_rows(self) -> int | None:
        """The likely maximum number of rows; None if unknown."""
        return self.n_rows

    @property
    def nbytes(self) -> int | None:
        return None

    @property
    def reading_bytes(self) -> int:
        """Additional memory for reading, besides the chunks."""
        return 0

    def read_within(self, room: int) -> None:  # noqa: B027 - arrays are read as they are
        """Choose how much is read at a time by the memory that is left for the fit."""

    @property
    def image_bytes(self) -> int | None:
        """Memory of the image whose pixels are the rows; None if they are not pixels."""
        return None

    def image(self) -> RowImage:
        """The image, filled as rows are read from now on."""
        raise NotImplementedError

    @property
    @abstractmethod
    def weighted(self) -> bool:
        """Whether rows have weights."""

    @property
    def most_values(self) -> int | None:
        """The most different values that a feature can have, if its type tells."""
        return None

    @abstractmethod
    def chunks(self, rows: int, start: Place) -> Iterator[Chunk]: ...

    def take(self, rows: npt.NDArray[np.uint64]) -> Taken:
        """The rows of these numbers."""
        raise NotImplementedError

    def whole_targets(self) -> tuple[npt.NDArray[np.float64] | None, npt.NDArray[np.float64] | None]:
        """The targets and weights of all rows, if they are in memory anyway."""
        return None, None

    def use_labels(self, labels: LabelCoder) -> None:
        """Set the labels, with final class numbers, after all rows were read once, here or elsewhere."""
        assert labels.classes is not None
        self.labels, self.classes, self.n_classes = labels, labels.classes, len(labels.classes)

    def target_bits(self, targets: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
        """The targets for checksums, which do not depend on how classes are numbered."""
        if self.labels is not None:
            return self.labels.keys_of(targets)
        return np.ascontiguousarray(targets).view(np.uint64)

    @property
    def label_bytes(self) -> int:
        """The memory of the labels seen so far."""
        return 0 if self.labels is None else self.labels.bytes

    def limit_labels(self, limit: LabelLimit) -> None:
        """Refuse labels that together take more memory than this."""
        if self.labels is not None:
            self.labels.limit = limit

    @abstractmethod
    def fingerprint(self) -> dict[str, Any]:
        """Identify these rows, without reading them all."""


@dataclass(frozen=True)
class Taken:
    """Some rows."""

    x: npt.NDArray[np.float32]
    targets: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64] | None


class Trail:
    """Places along a pass, at about equal distances, by which another pass finds where it differs.

    Of each window of `_step` rows, a power of two, the first place is kept. So the result does not depend on
    the parts in which places were added, as long as they ascend.
    """

    MOST = 4096

    def __init__(self, places: Iterable[Place] = ()) -> None:
        self._step = 1
        self._places: dict[int, Place] = {}  # by window
        for place in places:
            self.add(place)

    def add(self, place: Place) -> None:
        self._places.setdefault(place.source_row // self._step, place)
        while len(self._places) > self.MOST:
            self._widen(2 * self._step)

    def _widen(self, step: int) -> None:
        self._step, places = step, sorted(self._places.values(), key=lambda place: place.source_row)
        self._places = {}
        for place in places:
            self._places.setdefault(place.source_row // step, place)

    def merge(self, following: Trail) -> None:
        """Add the places of a trail that begins where this one ends."""
        if following._step > self._step:
            self._widen(following._step)
        for place in following._places.values():
            self.add(place)

    def behind(self, before: Place, start: Place, row_bytes: tuple[int, int]) -> Trail:
        """The trail of a pass that read other rows before; see `Place.behind`."""
        trail = Trail()
        trail._step = self._step
        trail._places = {
            window: place.behind(before, start, row_bytes) for window, place in self._places.items()
        }
        return trail

    def at(self, source_row: int) -> Place | None:
        place = self._places.get(source_row // self._step)
        return place if place is not None and place.source_row == source_row else None

    def state(self) -> list[list[int]]:
        return [list(vars(place).values()) for place in list(self._places.values())]

    @staticmethod
    def restored(state: list[list[int]]) -> Trail:
        return Trail(Place(*values) for values in state)


class Pass:
    """One reading of all rows, which compares what it reads with the first one.

    `first` is the trail of the first pass, or, in the first pass itself, that of the part already read.
    """

    def __init__(self, rows: TrainingRows, place: Place, first: Trail) -> None:
        self._rows = rows
        self.place = place
        self._trail = first
        self._agreed = place  # with the first pass, up to here
        self._where: str | None = None  # the source behind that

    def chunks(self, size: int) -> Iterator[tuple[Chunk, Place]]:
        """Yield each chunk, and the place after it."""
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
        bits = self._rows.target_bits(chunk.targets)
        if chunk.weights is not None:
            bits = np.stack([bits, chunk.weights.view(np.uint64)], axis=1).reshape(-1)
        return bits.view(np.uint8)

    def compare(self, first: Place) -> None:
        """Refuse an end other than that of the first pass."""
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
        raise ChangedSourceError(where, f"the {what} in {rows} differ from those of the first pass")
