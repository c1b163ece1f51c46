"""What datasets know of categories: which features could be, and how the codes of levels take their place."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Self

from ..errors import NotCategoricalError, NumbersExpectedError, TextColumnsError
from .level_counts import RawColumns
from .levels import FeatureLevels, LevelCoder, Levels


class Coded:
    """The part of a dataset that is about categorical features."""

    kind: str
    feature_names: tuple[str, ...] | None
    n_features: int
    _can_be_coded = True
    _coders: tuple[LevelCoder | None, ...] | None = None  # of each feature, if categories are coded

    @property
    def where(self) -> str:
        """The source, for errors."""
        return self._where

    @property
    def _where(self) -> str:
        raise NotImplementedError

    @property
    def feature_levels(self) -> FeatureLevels | None:
        """The levels of each feature whose codes the rows have; None if categories are not coded."""
        if self._coders is None:
            return None
        return tuple(None if coder is None else coder.levels for coder in self._coders)

    @property
    def text_features(self) -> tuple[int, ...]:
        """The numbers of the features that hold text, which can only be categories."""
        return ()

    @property
    def typed_categories(self) -> tuple[int, ...]:
        """The numbers of the features that are categories by their type: text, and dictionaries."""
        return self.text_features

    def raw_columns(self, features: tuple[int, ...], start: int) -> Iterator[RawColumns]:
        """Yield these features as they are, from row number `start` on, with the weights of the rows."""
        raise NotCategoricalError(self.kind)

    def coded_by(self, levels: FeatureLevels, strictly: bool = False) -> Self:
        """The same rows with codes in place of the values of features that have levels.

        Values without a code are missing; `strictly`, they are `NOT_THERE`.
        """
        if not self._can_be_coded and any(one is not None for one in levels):
            raise NotCategoricalError(self.kind)
        text = [place for place in self.text_features if levels[place] is None]
        if text:
            raise NumbersExpectedError(self.named(text), self._where)
        names = self.named(range(self.n_features))
        coded = copy.copy(self)
        coded._coders = tuple(
            None if one is None else LevelCoder(one, name, strictly)
            for one, name in zip(levels, names, strict=True)
        )
        return coded

    def coded_for(self, levels: FeatureLevels | None) -> Self:
        """The same rows for a forest whose features have these levels, if it has categories."""
        if levels is None and not self.text_features:
            return self
        return self.coded_by([None] * self.n_features if levels is None else levels)

    def uncoded(self) -> Self:
        """The same rows, in which all text is missing: for their targets alone."""
        text = self.text_features
        levels = [Levels(()) if place in text else None for place in range(self.n_features)]
        return self.coded_by(levels) if text else self

    def named(self, features: Sequence[int]) -> list[str | int]:
        """The names of features, or their numbers if they have none."""
        names = self.feature_names
        return [place if names is None else names[place] for place in features]

    def _check_coded(self) -> None:
        """Refuse to read text as numbers."""
        text = self.named(self.text_features) if self._coders is None else []
        if text:
            raise TextColumnsError(text, self._where)
