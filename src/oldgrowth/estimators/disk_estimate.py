"""The disk space that a fit would take, estimated before it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..datasets.base import Dataset
from ..errors import DataError
from ..planning.disk_plan import DiskEstimate
from ..planning.execution import expected_disk, largest_model
from ..planning.planner import Planner
from ..rows.array_rows import ArrayRows
from ..rows.streamed_rows import StreamedRows
from ..rows.training_rows import TrainingRows
from ..system.limits import limits_of
from .inputs import refuse_other_sources
from .parameters import Parameter, checked


class DiskEstimating:
    """The method `estimate_disk` of the estimators."""

    _random_thresholds: bool
    _parameters: dict[str, Parameter]

    def estimate_disk(self, X: Any, y: Any = None) -> DiskEstimate:
        """Estimate the maximum disk space of `fit(X, y)`. Nothing is trained or written.

        Values are not read: features count as four bytes each, and a dataset as having two classes, unless
        `y` has its labels. Sources that do not know their number of rows, such as CSV files, are read once
        to count them.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features), or dataset
            As for `fit`.
        y : array of shape (n_samples,), optional
            Labels, to count the classes.

        Returns
        -------
        DiskEstimate
            `needed` is in bytes, 0 if the fit stays in memory (see `memory_limit` and `store`); `free` is the
            free space of the disk, and `directory` is where the fit would write.

        Examples
        --------
        >>> import numpy as np
        >>> from oldgrowth import RandomForestClassifier
        >>> X = np.zeros((1_000_000, 10), dtype=np.float32)
        >>> RandomForestClassifier(8, store="disk").estimate_disk(X).needed > X.nbytes
        True
        >>> RandomForestClassifier(8, store="memory").estimate_disk(X).needed
        0
        """
        classification = is_classifier(self)
        params = checked(self._parameters, self.get_params())  # type: ignore[attr-defined]
        if isinstance(X, Dataset):
            rows: TrainingRows = StreamedRows(X, classification)
            n_rows = X.count_rows()
        else:
            refuse_other_sources(X)
            rows = _rows_like(X, classification)
            n_rows = len(X)
        if classification and y is not None:
            rows.n_classes = len(np.unique(np.asarray(y)))
        planner = Planner(params, self._random_thresholds, classification)
        plan = planner.expect(n_rows, rows.n_features, rows.n_classes)
        return expected_disk(largest_model(plan, rows, n_rows, limits_of(params)))


def _rows_like(X: Any, classification: bool) -> ArrayRows:
    """Rows of the shape of X, without values."""
    shape = np.shape(X)
    if len(shape) != 2 or 0 in shape:
        raise DataError(f"X has the shape {shape}: it must have rows and columns.")
    dtype = X.dtype if isinstance(X, np.ndarray) and X.dtype.kind in "biu" else np.dtype(np.float32)
    values, targets = np.broadcast_to(np.zeros((), dtype), shape), np.broadcast_to(np.zeros(()), shape[:1])
    return ArrayRows(values, targets, 2 if classification else 0)
