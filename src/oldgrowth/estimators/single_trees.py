"""What code for scikit-learn's forests asks of single trees, which are made one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ..errors import NotKeptError
from ..forest.forest import Forest
from ..system.resource_limits import clear_about_limits


class SingleTrees:
    """The attributes and methods of scikit-learn's forests that are about single trees."""

    forest_: Forest

    @property
    def estimators_(self) -> Sequence[Any]:
        """The trees as estimators of scikit-learn; each is converted when it is asked for, and not kept.

        `to_sklearn()` converts all at once.
        """
        from ..export.sklearn import SingleTrees as View  # which imports scikit-learn's forests

        check_is_fitted(self, "forest_")
        return View(self)

    def __len__(self) -> int:
        check_is_fitted(self, "forest_")
        return self.forest_.n_trees

    def __getitem__(self, place: Any) -> Any:
        return self.estimators_[place]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.estimators_)

    @property
    def n_outputs_(self) -> int:
        """The number of targets, which is one."""
        check_is_fitted(self, "forest_")
        return 1

    @property
    def estimators_samples_(self) -> Any:
        """Not kept: whether a tree has drawn a row is a function of the seed, the tree and the row."""
        why = "whether a tree has drawn a row is not stored; oob_score=True gives out-of-bag predictions"
        raise NotKeptError("estimators_samples_", why)

    @property
    def estimator_(self) -> Any:
        """Not kept: the trees are not grown from an estimator of their own."""
        raise NotKeptError("estimator_", "to_sklearn() gives a forest that has it")

    @clear_about_limits
    def decision_path(self, X: Any) -> tuple[Any, npt.NDArray[np.int64]]:
        """The nodes that each row passes, as of scikit-learn's forests.

        The nodes are those of the trees in `estimators_`, which are made one at a time.

        Returns
        -------
        indicator : sparse matrix of shape (n_samples, n_nodes)
            Not zero where a row passes a node.
        n_nodes_ptr : array of shape (n_estimators + 1,)
            The columns of tree i begin at n_nodes_ptr[i].
        """
        from scipy.sparse import hstack

        x = self._check_rows(X).astype(np.float32)  # type: ignore[attr-defined]
        paths = [tree.decision_path(x, check_input=False) for tree in self.estimators_]
        return hstack(paths).tocsr(), np.cumsum([0, *(path.shape[1] for path in paths)])
