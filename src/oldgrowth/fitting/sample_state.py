"""The saved state of an interrupted first pass.

It is checked before use: its checksum may be right and its contents wrong.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..rows.training_rows import Place, Trail, TrainingRows
from .learned import Learned

# Bytes of labels as an array, beyond what they take themselves: its type may be wider than all of them.
_LABEL_BYTES = 2**24
# Of a double whose mantissa is between 0.5 and 1.
_LEAST_EXPONENT, _LARGEST_EXPONENT = -1073, 1024


def state_of(learned: Learned) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """The arrays and values from which `restore` rebuilds the state."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    if learned.candidates is not None:
        arrays = {f"kept_{name}": array for name, array in learned.candidates.state().items()}
    flags = []
    for f in range(learned.n_features):
        wide, missing, arrays[f"values_{f}"] = learned.profile.state(f)
        flags.append((wide, missing))
    values = {
        "place": vars(learned.end),
        "trail": learned.trail.state(),
        "features": flags,
        "facts": learned.summary.state(),
        "labels": {} if learned.labels is None else learned.labels.state(),
    }
    return arrays, values


def restore(
    learned: Learned,
    rows: TrainingRows,
    arrays: dict[str, npt.NDArray[Any]],
    values: dict[str, Any],
    of: int | None,
) -> bool:
    """Rebuild the saved state of the rows from `learned.start` on, `of` rows if known. False if candidate
    rows are lost; then the pass starts again."""
    place, classes = Place(**values["place"]), len(values["labels"].get("labels", []))
    check_state(values, replace(place, row=place.row - learned.start.row), rows, of)
    if learned.candidates is not None:
        parts = {k.removeprefix("kept_"): v for k, v in arrays.items() if k.startswith("kept_")}
        if not learned.candidates.restore(parts, classes, place.row):
            return False
    for f, (wide, missing) in enumerate(values["features"]):
        known = arrays[f"values_{f}"]
        if known.dtype != np.float32 or not np.isfinite(known).all():
            raise ValueError(f"values of feature {f}")
        learned.profile.restore(f, bool(wide), bool(missing), known)
    learned.summary.restore(values["facts"])
    if learned.labels is not None:
        learned.labels.restore(values["labels"])
    learned.trail, learned.end = Trail.restored(values["trail"]), place
    return True


def check_state(values: dict[str, Any], place: Place, rows: TrainingRows, of: int | None) -> None:
    """Refuse a state that these rows, up to this place, cannot have produced."""
    _check_place(place, bool(values["complete"]), of)
    if len(values["features"]) != rows.n_features:
        raise ValueError("another number of features")
    for entry in values["trail"]:
        if len(entry) != len(vars(place)) or not _whole(*entry):
            raise ValueError("no place of the pass")
    summary = values["facts"]
    if summary["rows"] != place.row:
        raise ValueError("another number of rows")
    _check_weights(summary["weight"], place.row)
    n_classes = rows.n_classes
    if rows.classification and not rows.random_access:
        n_classes = _check_labels(values["labels"])
    if rows.classification:
        _check_classes(summary, n_classes, place.row)
    elif place.row:
        low, high = (float.fromhex(text) for text in summary["range"])
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise ValueError("no range of targets")


def _check_place(place: Place, complete: bool, of: int | None) -> None:
    if not _whole(*vars(place).values()) or place.row > place.source_row:
        raise ValueError("no place of the pass")
    if (of is not None and place.row > of) or (complete and of not in (None, place.row)):
        raise ValueError("another number of rows")


def _check_classes(summary: dict[str, Any], n_classes: int, n_rows: int) -> None:
    counts = summary["class_rows"]
    if len(counts) > n_classes or not _whole(*counts) or sum(counts) != n_rows:
        raise ValueError("another number of rows of the classes")
    if any(not 0 <= int(code) < n_classes for code in summary["weight"]):
        raise ValueError("the weight of a class that does not exist")


def _check_weights(weights: dict[str, dict[str, Any]], n_rows: int) -> None:
    """Sums of mantissas of 53 bits, by their exponents."""
    for sums in weights.values():
        for exponent, total in sums.items():
            is_sum = type(total) is int and 0 <= total <= n_rows << 53
            if not (is_sum and _LEAST_EXPONENT <= int(exponent) <= _LARGEST_EXPONENT):
                raise ValueError("a sum of weights that no rows have")


def _check_labels(labels: dict[str, Any]) -> int:
    """How many there are."""
    known = labels["labels"]
    if len(set(known)) != len(known):
        raise ValueError("a label twice")
    if labels["dtype"] is not None:
        dtype = np.dtype(labels["dtype"])
        text = 4 * sum(len(label) for label in known if isinstance(label, str))
        too_wide = dtype.itemsize * len(known) > text + 16 * len(known) + _LABEL_BYTES
        if dtype.kind not in "OUbiuf" or too_wide:
            raise ValueError("a type that labels cannot have")
    return len(known)


def _whole(*numbers: Any) -> bool:
    return all(type(number) is int and 0 <= number < 2**63 for number in numbers)
