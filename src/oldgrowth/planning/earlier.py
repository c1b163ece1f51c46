"""A fitted forest that a fit adds trees to, as far as the stages know it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import WarmStartError
from ..storage.votes import AllVotes


@dataclass(frozen=True)
class Earlier:
    """The trees on each of its top trees, its classes, and its out-of-bag votes if they were kept."""

    trees_of_top: tuple[int, ...]
    classes: npt.NDArray[Any] | None
    votes: AllVotes | None

    @property
    def trees(self) -> int:
        return sum(self.trees_of_top)

    def check_classes(self, classes: npt.NDArray[Any] | None) -> None:
        """Refuse other classes than those of the forest."""
        if self.classes is None or classes is None or np.array_equal(self.classes, classes):
            return
        known, given = set(self.classes.tolist()), set(classes.tolist())
        what = f"{len(known)} classes, and y has {len(given)}"
        if different := sorted(map(repr, known ^ given)):
            only = "y" if different[0] in set(map(repr, given)) else "the forest"
            what = f"{what}; {different[0]} is a class of {only} alone"
        raise WarmStartError(f"it has {what}")

    def votes_on(self, data: tuple[int, bool]) -> AllVotes:
        """Its out-of-bag votes, which must be on these rows."""
        if self.votes is None:
            raise WarmStartError(
                "an out-of-bag score needs the votes of all its trees, which are kept, in this process "
                "alone, if they were grown with warm_start=True and oob_score=True"
            )
        if self.votes.data != data:
            raise WarmStartError("the votes for its out-of-bag score are on other rows, or by another voting")
        return self.votes
