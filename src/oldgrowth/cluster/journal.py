"""What the driver of a fit remembers in the checkpoint directory, in the files of a fit on one machine.

Beside them is one that says how the rows are cut into partitions, and the name by which workers know the fit:
what they still have of it is used again.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..fitting.learned import Learned
from ..fitting.sample import remember, resumed
from ..fitting.top_trees import TopTree, checked_top_tree
from ..rows.streamed_rows import StreamedRows
from ..rows.training_rows import Place, Trail
from ..storage.checkpoint import Checkpoint
from .values import PartEnd

# The numbers that the classes of a partition have in the whole data.
Codes = npt.NDArray[np.int64] | None

_NAME, _SAMPLE = "cluster", "sample"


@dataclass(frozen=True)
class Cut:
    """How rows are cut: into at most so many partitions, the rows of each, and those that have a weight."""

    wanted: int
    rows: list[int]
    used: list[int]


@dataclass(frozen=True)
class SplitRound:
    """The top trees of a round with large buckets split, the rows of their buckets, how many were split."""

    tops: dict[int, TopTree]
    sizes: dict[int, npt.NDArray[np.int64]]
    n_split: int


class Journal:
    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self._cut: Cut | None = None

    @cached_property
    def fit(self) -> str:
        """The name of the fit, which is that of the interrupted one."""
        found = self.checkpoint.saved(_NAME)
        if found is not None:
            with self.checkpoint.validating(_NAME):
                return uuid.UUID(found[1]["fit"]).hex
        name = uuid.uuid4().hex
        self.checkpoint.save(_NAME, {}, {"fit": name})
        return name

    def cut(self) -> Cut | None:
        """How the interrupted fit had cut the rows."""
        found = self.checkpoint.saved(_NAME)
        if found is None or "wanted" not in found[1]:
            return None
        with self.checkpoint.validating(_NAME):
            self._cut = Cut(*(found[1][name] for name in ("wanted", "rows", "used")))
            numbers = [self._cut.wanted, *self._cut.rows, *self._cut.used]
            if len(self._cut.rows) != len(self._cut.used) or not _whole(*numbers):
                raise ValueError("no numbers of rows")
        return self._cut

    def save_cut(self, cut: Cut) -> None:
        self._cut = cut
        self.checkpoint.save(_NAME, {}, self._begun())

    def _begun(self) -> dict[str, Any]:
        return {"fit": self.fit} | ({} if self._cut is None else vars(self._cut))

    def save_learned(self, whole: Learned) -> None:
        """All rows were learned from, and classes are not numbered yet."""
        remember(whole, self.checkpoint, _SAMPLE)

    def resume_learned(self, whole: Learned, rows: StreamedRows, of: int) -> bool:
        """Take up what the interrupted fit has learned, if that was all."""
        return resumed(whole, rows, self.checkpoint, _SAMPLE, of)

    def save_parts(self, ends: list[PartEnd], codes: list[Codes]) -> None:
        """What the first pass found of each partition."""
        places = np.array([[*vars(end.end).values()] for end in ends], dtype=np.int64)
        arrays = {"ends": places, "class_rows": np.stack([end.class_rows for end in ends])}
        arrays |= {f"codes_{i}": numbers for i, numbers in enumerate(codes) if numbers is not None}
        self.checkpoint.save(_NAME, arrays, self._begun())

    def parts(self, n: int, n_classes: int) -> tuple[list[PartEnd], list[Codes]] | None:
        """The same, for `n` partitions, if that is remembered."""
        found = self.checkpoint.saved(_NAME)
        if found is None or "ends" not in found[0]:
            return None
        arrays = found[0]
        with self.checkpoint.validating(_NAME):
            codes = [arrays.get(f"codes_{i}") for i in range(n)]
            if arrays["ends"].shape != (n, 4) or arrays["class_rows"].shape != (n, n_classes):
                raise ValueError("other partitions")
            if any(known is not None and not np.isin(known, np.arange(n_classes)).all() for known in codes):
                raise ValueError("other classes")
            ends = [
                PartEnd(Place(*place), Trail(), class_rows)
                for place, class_rows in zip(arrays["ends"].tolist(), arrays["class_rows"], strict=True)
            ]
        return ends, codes

    def save_split(self, done: SplitRound) -> None:
        """The buckets of a round are as they are grown."""
        arrays: dict[str, npt.NDArray[Any]] = {}
        for i, top in done.tops.items():
            arrays |= {f"{i}_{key}": array for key, array in vars(top).items()}
            arrays[f"{i}_sizes"] = done.sizes[i]
        self.checkpoint.save(_round(done.tops), arrays, {"split": done.n_split})

    def split(self, before: dict[int, TopTree], n_rows: int, levels: tuple[int, ...]) -> SplitRound | None:
        """The same, for these top trees as they were before buckets were split."""
        found = self.checkpoint.saved(_round(before))
        if found is None:
            return None
        arrays, values = found
        with self.checkpoint.validating(_round(before)):
            tops = {}
            for i, top in before.items():
                own = {key: arrays[f"{i}_{key}"] for key in vars(top)}
                tops[i] = checked_top_tree(own, len(top.importances), levels)
            sizes = {i: arrays[f"{i}_sizes"] for i in before}
            for i, rows in sizes.items():
                if rows.dtype != np.int64 or len(rows) != tops[i].n_buckets or rows.sum() != n_rows:
                    raise ValueError("another number of rows")
            if not _whole(values["split"]):
                raise ValueError("no number of buckets")
        return SplitRound(tops, sizes, values["split"])


def _round(tops: dict[int, TopTree]) -> str:
    return f"round-{min(tops):05d}-split"


def _whole(*numbers: Any) -> bool:
    return all(type(number) is int and number >= 0 for number in numbers)
