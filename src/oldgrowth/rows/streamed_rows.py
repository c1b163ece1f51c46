"""The rows of a dataset, for training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..datasets.base import Dataset
from ..datasets.batches import Batch, FloatsOrBytes
from ..datasets.images import RowImage
from ..datasets.labels import CodedLabels
from ..datasets.levels import NOT_THERE, FeatureLevels
from ..errors import ChangedSourceError, DataError, NoTargetError
from ..system.memory import READING_BYTES
from .class_codes import LabelCoder
from .training_rows import Chunk, Place, TrainingRows


class StreamedRows(TrainingRows):
    """The rows of a dataset; class numbers are final after the first pass."""

    random_access = False
    checked = True

    def __init__(self, dataset: Dataset, classification: bool, categorical: tuple[int, ...] = ()) -> None:
        self._dataset = dataset
        self.feature_levels = dataset.feature_levels  # known on the workers of a cluster
        coded = (f for f, one in enumerate(self.feature_levels or ()) if one is not None)
        self.categorical = categorical or tuple(coded)
        self._image: RowImage | None = None
        self.classification = classification
        self.labels = LabelCoder(dataset.target or "y", self.weighted) if classification else None
        self.classes, self.n_classes = None, 0
        self.n_features = dataset.n_features
        names = dataset.feature_names
        self.names = None if names is None else np.array(names, dtype=object)

    @property
    def dataset(self) -> Dataset:
        return self._dataset

    def use_levels(self, levels: FeatureLevels) -> None:
        """Set the levels of the categorical features: from now on, the rows have their codes."""
        self.feature_levels = levels
        self._dataset = self._dataset.coded_by(levels, strictly=True)

    @property
    def n_rows(self) -> int | None:
        return None if self._dataset.weight is not None else self._dataset.n_rows  # zero weights do not count

    @property
    def expected_rows(self) -> int | None:
        return self._dataset.expected_rows

    @property
    def most_values(self) -> int | None:
        return self._dataset.most_values

    def read_within(self, room: int) -> None:
        self._dataset = self._dataset.within_memory(room)

    @property
    def image_bytes(self) -> int | None:
        return self._dataset.image_bytes

    def image(self) -> RowImage:
        if self._image is None:
            self._dataset, self._image = self._dataset.with_image()
        return self._image

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
            self._check_codes(x, batch)
            yield Chunk(number, x, targets, weights, end, batch.where)
            number += len(x)

    @property
    def reading_bytes(self) -> int:
        return READING_BYTES + self._dataset.reading_bytes

    def fingerprint(self) -> dict[str, Any]:
        return self._dataset.fingerprint()

    def _check_codes(self, x: FloatsOrBytes, batch: Batch) -> None:
        """Refuse values that were not there when levels were learned."""
        for feature in self.categorical:
            if (x[:, feature] == NOT_THERE).any():
                name = feature if self.names is None else self.names[feature]
                what = f"column {name!r} has values that it had not when its levels were learned"
                raise ChangedSourceError(batch.where, what)

    def _targets(self, batch: Batch) -> npt.NDArray[np.float64]:
        if batch.y is None:
            raise NoTargetError(self._dataset.way_to_target)
        if self.labels is not None:
            return self.labels.code(batch)
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
