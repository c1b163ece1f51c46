"""The rows of a dataset, for training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..datasets.base import Batch, Dataset
from ..datasets.labels import CodedLabels
from ..errors import DataError
from ..system.memory import READING_BYTES
from .class_codes import LabelCoder
from .training_rows import Chunk, LabelLimit, Place, TrainingRows


class StreamedRows(TrainingRows):
    """The rows of a dataset; class numbers are final after the first pass."""

    random_access = False
    checked = True

    def __init__(self, dataset: Dataset, classification: bool) -> None:
        self._dataset = dataset
        self.classification = classification
        self._coder = LabelCoder(dataset.target or "y", self.weighted) if classification else None
        self._as_first_read: npt.NDArray[np.float64] | None = None
        self.classes, self.n_classes = None, 0
        self.n_features = dataset.n_features
        names = dataset.feature_names
        self.names = None if names is None else np.array(names, dtype=object)

    @property
    def n_rows(self) -> int | None:
        return None if self._dataset.weight is not None else self._dataset.n_rows  # zero weights do not count

    @property
    def expected_rows(self) -> int | None:
        return self._dataset.expected_rows

    @property
    def weighted(self) -> bool:
        return self._dataset.weight is not None

    @property
    def nbytes(self) -> int | None:
        return self._dataset.nbytes

    def chunks(self, rows: int, start: Place) -> Iterator[Chunk]:
        number = start.row
        for batch in self._dataset.batches(rows, start.source_row, keep_bytes=True):
            targets = self._targets(batch)
            x, weights, end = batch.x, batch.weights, batch.first_row + len(batch.x)
            if weights is not None and not weights.all():
                kept = weights > 0
                x, targets, weights = x[kept], targets[kept], weights[kept]
            yield Chunk(number, x, targets, weights, end, batch.where)
            number += len(x)

    def finish_first_pass(self) -> npt.NDArray[np.int64] | None:
        if self._coder is None:
            return None
        final = self._coder.finish()
        self._as_first_read = np.argsort(final).astype(np.float64)
        self.classes, self.n_classes = self._coder.classes, len(final)
        return final

    def as_first_read(self, targets: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        if self._as_first_read is None:
            return targets
        return self._as_first_read[targets.astype(np.intp)]

    @property
    def reading_bytes(self) -> int:
        return READING_BYTES + self._dataset.reading_bytes

    @property
    def label_bytes(self) -> int:
        return 0 if self._coder is None else self._coder.bytes

    def limit_labels(self, limit: LabelLimit) -> None:
        if self._coder is not None:
            self._coder.limit = limit

    def label_state(self) -> dict[str, Any]:
        return {} if self._coder is None else self._coder.state()

    def restore_labels(self, state: dict[str, Any]) -> None:
        if self._coder is not None:
            self._coder.restore(state)

    def fingerprint(self) -> dict[str, Any]:
        return self._dataset.fingerprint()

    def _targets(self, batch: Batch) -> npt.NDArray[np.float64]:
        if batch.y is None:
            raise DataError(
                "The dataset has no target: name its column, as in open_dataset(source, target='label')."
            )
        if self._coder is not None:
            return self._coder.code(batch)
        if isinstance(batch.y, CodedLabels) or batch.y.dtype.kind not in "uifb":
            raise DataError(f"The target {self._dataset.target!r} is text: a regressor needs numbers.")
        values = batch.y.astype(np.float64)
        if not np.isfinite(values).all():
            row = batch.first_row + int(np.flatnonzero(~np.isfinite(values))[0])
            raise DataError(
                f"The target {self._dataset.target!r} is infinite or missing in row {row} of "
                f"{batch.where_of(row)}."
            )
        return values
