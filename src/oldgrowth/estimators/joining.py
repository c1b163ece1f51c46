"""Fitted forests over the same features as one: whether they can be, classes and levels, trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..checks import path_of
from ..datasets.labels import objects
from ..datasets.levels import MOST_LEVELS, FeatureLevels, Levels
from ..errors import MergeError
from ..fitting.assemble import arrays_in_memory, arrays_on_disk
from ..forest.forest import Forest
from ..forest.joined import JoinedForests
from ..forest.renumbered import NO_LEVEL, Renumbered
from ..storage.workspace import spill_workspace
from ..system.memory import memory_limit_of, resident_memory

Codes = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Union:
    """The classes and levels of several forests, and their trees, which are not copied yet."""

    classes: npt.NDArray[Any] | None
    levels: FeatureLevels | None
    forest: JoinedForests


def union_of(estimators: Sequence[Any], continued: bool = False) -> Union:
    """What several fitted forests are together; they may be `continued` as by `JoinedForests`."""
    first = estimators[0]
    classes = _union([e.classes_ for e in estimators]) if hasattr(first, "classes_") else None
    levels = _all_levels(estimators)
    n_classes, numbered = 0 if classes is None else len(classes), []
    for estimator in estimators:
        numbers = np.arange(0)
        if classes is not None:
            numbers = np.searchsorted(classes, estimator.classes_).astype(np.int64)
        codes = () if levels is None else _codes(estimator._levels, levels)
        numbered.append(Renumbered(estimator.forest_, numbers, n_classes, codes))
    return Union(classes, levels, JoinedForests(numbered, continued))


def assembled(joined: JoinedForests, estimators: Sequence[Any], first: Any) -> Forest:
    """The trees of these estimators in memory; or in an unnamed file in `spill_dir` of the first if some are
    mapped from a file, or if they exceed its `memory_limit` together."""
    filled = ((name, joined.length(name), joined.parts(name)) for name in joined.array_names)
    limit = memory_limit_of(first.memory_limit)
    size = sum(estimator.forest_.nbytes for estimator in estimators)
    if not any(e.forest_.mapped for e in estimators) and size <= limit - resident_memory():
        return Forest(joined.n_features, joined.n_classes, arrays_in_memory(filled))
    directory = None if first.spill_dir is None else path_of("spill_dir", first.spill_dir)
    with spill_workspace(directory) as workspace:
        arrays, mapped = arrays_on_disk(filled, workspace)
        return Forest(joined.n_features, joined.n_classes, arrays, mapped=mapped)


def check_features(first: Any, other: Any, i: int) -> None:
    """Refuse forest number i if it saw other features than the first."""
    if first.n_features_in_ != other.n_features_in_:
        raise MergeError(
            f"number 1 has {first.n_features_in_:,} features, number {i} has {other.n_features_in_:,}"
        )
    names, others = (getattr(e, "feature_names_in_", None) for e in (first, other))
    if (names is None) != (others is None):
        with_names, without = (1, i) if others is None else (i, 1)
        raise MergeError(f"number {with_names} has names of features, and number {without} has none")
    if names is not None and others is not None:
        for at, (name, its) in enumerate(zip(names, others, strict=True)):
            if name != its:
                raise MergeError(
                    f"their features differ: column {at} is {name!r} in number 1, {its!r} in number {i}"
                )
    _check_levels(first, other, i)
    if getattr(first, "recipe_", None) != getattr(other, "recipe_", None):
        raise MergeError(
            f"the features of number 1 and number {i} were made of scenes in different ways: see recipe_"
        )


def _check_levels(first: Any, other: Any, i: int) -> None:
    """Refuse a feature that is categorical in one forest alone."""
    n = first.n_features_in_
    pairs = zip(first._levels or [None] * n, other._levels or [None] * n, strict=True)
    for at, (levels, others) in enumerate(pairs):
        if (levels is None) != (others is None):
            categorical, numeric = (i, 1) if levels is None else (1, i)
            raise MergeError(
                f"column {_name(first, at)!r} is categorical in number {categorical} and numeric in number "
                f"{numeric}"
            )


def _name(estimator: Any, feature: int) -> Any:
    names = getattr(estimator, "feature_names_in_", None)
    return feature if names is None else names[feature]


def _all_levels(estimators: Sequence[Any]) -> FeatureLevels | None:
    """The levels that any of the forests knows, those of the first one first; None without categories."""
    if estimators[0]._levels is None:
        return None
    found: list[Levels | None] = []
    for at, of_each in enumerate(zip(*(e._levels for e in estimators), strict=True)):
        if of_each[0] is None:
            found.append(None)
            continue
        kinds = [levels.is_text for levels in of_each]
        if True in kinds and False in kinds:
            raise MergeError(
                f"the levels of column {_name(estimators[0], at)!r} are text in number "
                f"{kinds.index(True) + 1} and numbers in number {kinds.index(False) + 1}"
            )
        values = tuple(dict.fromkeys(value for levels in of_each for value in levels.values))
        union = Levels(values, any(levels.pooled for levels in of_each))
        if union.count > MOST_LEVELS:
            raise MergeError(
                f"column {_name(estimators[0], at)!r} has {len(values):,} levels in all of them together, "
                f"and a forest can tell apart {MOST_LEVELS:,}"
            )
        found.append(union)
    return tuple(found)


def _codes(own: FeatureLevels, union: FeatureLevels) -> tuple[Codes, ...]:
    """A forest's code of each level of the union: the pooled one, if there is one, for unknown levels."""
    codes = []
    for mine, levels in zip(own, union, strict=True):
        if mine is None or levels is None:
            codes.append(np.zeros(0, dtype=np.uint32))
            continue
        other = len(mine.values) if mine.pooled else NO_LEVEL
        known = [mine.codes.get(value, other) for value in levels.values] + [other] * levels.pooled
        codes.append(np.array(known, dtype=np.uint32))
    return tuple(codes) if any(map(len, codes)) else ()


def _is_text(classes: npt.NDArray[Any]) -> bool:
    return classes.dtype.kind in "UT" or all(isinstance(label, str) for label in classes.tolist())


def _union(classes: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """The sorted union of classes."""
    if all(np.array_equal(classes[0], other) and classes[0].dtype == other.dtype for other in classes):
        return classes[0]
    kinds = {"text" if _is_text(c) else "b" if c.dtype.kind == "b" else "numbers" for c in classes}
    if len(kinds) > 1:
        shown = ", ".join(sorted({repr(c.tolist()[0]) for c in classes}))
        raise MergeError(f"their labels have different types, such as {shown}")
    if kinds == {"text"} and len({c.dtype.kind for c in classes}) > 1:
        classes = [objects([str(label) for label in c.tolist()]) for c in classes]
    return np.unique(np.concatenate(classes))
