"""How a row is stored in a block on disk: as its record, or as a reference to a pixel in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .. import _core
from ..datasets.images import RowImage
from ..plan import Plan
from ..rows.records import encode
from ..rows.training_rows import Chunk
from .sampled import Sampled


@dataclass
class RowFields:
    """The fields of rows as separate arrays."""

    records: npt.NDArray[np.uint8]
    keys: npt.NDArray[np.uint64]
    targets: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64] | None
    numbers: npt.NDArray[np.uint64] | None

    def part(self, rows: slice | npt.NDArray[np.intp]) -> RowFields:
        return RowFields(
            self.records[rows],
            self.keys[rows],
            self.targets[rows],
            None if self.weights is None else self.weights[rows],
            None if self.numbers is None else self.numbers[rows],
        )

    def copy_to(self, to: RowFields) -> None:
        """Copy all that a bucket is made of."""
        to.records[:] = self.records
        to.keys[:] = self.keys
        to.targets[:] = self.targets
        if to.weights is not None and self.weights is not None:
            to.weights[:] = self.weights


class RowForm(ABC):
    """Packs rows into blocks, and unpacks them."""

    layout: _core.RowLayout

    def __init__(self, sampled: Sampled, plan: Plan, layout: _core.RowLayout) -> None:
        self.layout = layout
        self.codec = sampled.codec
        self._n_rows, self._n_classes = sampled.summary.n_rows, plan.n_classes

    def room(self, n: int) -> RowFields:
        return RowFields(
            np.empty((n, self.codec.record_bytes), dtype=np.uint8),
            np.empty(n, dtype=np.uint64),
            np.empty(n),
            np.empty(n) if self.layout.weighted else None,
            np.empty(n, dtype=np.uint64) if self.layout.numbered else None,
        )

    @abstractmethod
    def pack(self, chunk: Chunk, rows: npt.NDArray[np.uint8]) -> None:
        """Write a chunk as rows of blocks."""

    @abstractmethod
    def unpack(self, block: npt.NDArray[np.uint8], owner: int, out: RowFields) -> str:
        """Unpack a block of this owner into `out`; returns what is wrong with it, or ""."""

    @abstractmethod
    def check(self, block: npt.NDArray[np.uint8], owner: int, n: int) -> str:
        """What is wrong with a block of n rows that another process wrote, or "".

        Its checksum may be right and its contents wrong: no value in its rows may be out of range.
        """

    def complete(self) -> None:  # noqa: B027 - records are complete
        """Called when all rows were packed, by this process or another."""

    def _possible(self, rows: RowFields) -> bool:
        targets, weights, numbers = rows.targets, rows.weights, rows.numbers
        sound = bool((targets < self._n_classes).all() if self._n_classes else np.isfinite(targets).all())
        if weights is not None:
            sound &= bool((np.isfinite(weights) & (weights > 0)).all())
        if numbers is not None:
            sound &= int(numbers[-1]) < self._n_rows and bool((numbers[1:] > numbers[:-1]).all())
        return sound


_IMPOSSIBLE = "its rows are not rows of the data"


class RecordForm(RowForm):
    """Rows as records of the codec."""

    def __init__(self, sampled: Sampled, plan: Plan) -> None:
        codec, summary = sampled.codec, sampled.summary
        super().__init__(sampled, plan, plan.row_layout(summary.n_rows, codec.record_bytes, summary.weighted))

    def pack(self, chunk: Chunk, rows: npt.NDArray[np.uint8]) -> None:
        _, keys = encode(self.codec, chunk.x, chunk.targets, chunk.first_row, rows, where=chunk.where)
        self.layout.pack(keys, chunk.targets, chunk.weights, chunk.first_row, rows)

    def unpack(self, block: npt.NDArray[np.uint8], owner: int, out: RowFields) -> str:
        wrong: str = self.layout.read_block(
            block, owner, len(out.keys), out.records, out.keys, out.targets, out.weights, out.numbers
        )
        return wrong

    def check(self, block: npt.NDArray[np.uint8], owner: int, n: int) -> str:
        rows = self.room(n)
        if wrong := self.unpack(block, owner, rows):
            return wrong
        written = self.codec.wrote(rows.records, (rows.targets + 0.0).view(np.uint64), rows.keys)
        return "" if written and self._possible(rows) else _IMPOSSIBLE


class ReferenceForm(RowForm):
    """Rows as their numbers: their features are gathered from an image, again each time."""

    def __init__(self, sampled: Sampled, plan: Plan) -> None:
        super().__init__(sampled, plan, plan.reference_layout(sampled.summary.n_rows))
        self._image: RowImage = sampled.rows.image()

    def pack(self, chunk: Chunk, rows: npt.NDArray[np.uint8]) -> None:
        self.layout.pack(None, chunk.targets, None, chunk.first_row, rows)

    def unpack(self, block: npt.NDArray[np.uint8], owner: int, out: RowFields) -> str:
        if wrong := self._read(block, owner, out):
            return wrong
        assert out.numbers is not None
        self._image.encode(self.codec, out.numbers, out.targets, out.records, out.keys)
        return ""

    def check(self, block: npt.NDArray[np.uint8], owner: int, n: int) -> str:
        rows = self.room(n)
        if wrong := self._read(block, owner, rows):
            return wrong
        return "" if self._possible(rows) else _IMPOSSIBLE

    def _read(self, block: npt.NDArray[np.uint8], owner: int, out: RowFields) -> str:
        n = len(out.keys)
        none = np.empty((n, 0), dtype=np.uint8)
        wrong: str = self.layout.read_block(block, owner, n, none, out.keys, out.targets, None, out.numbers)
        return wrong

    def complete(self) -> None:
        self._image.complete()
