"""Cross-validation by spatial blocks, as a splitter of scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ...checks import whole
from ...errors import DataError, NoRowsError, ParameterError
from ..labels.block_filter import BlockFilter
from ..labels.blocks import BlockGrid, check_several, rows_by_block
from ..reading.strips import StripRows
from .scene import Scene

Rows = npt.NDArray[np.intp]


class BlockKFold:
    """Splits the rows of a scene into folds by square blocks of ground.

    Each row is tested once. Rows of training are so far from the blocks of the test that no patch has pixels
    of both, as in `Scene.split_blocks`.

    Parameters
    ----------
    data : Scene
        A scene, usually with labels: the rows are split in its order, which is that of `data.arrays()`.
    size : str or number
        Side of a block, such as "2 km" or "500 m", or a number in units of the map.
    n_splits : int, default 5
        Number of folds. Blocks are dealt in random order, each to the fold with the fewest rows.
    seed : int, default 0
        The order in which blocks are dealt.

    Examples
    --------
    >>> data = raster.open_scene("scene.tif", patch=3).with_labels("landuse.gpkg")  # doctest: +SKIP
    >>> X, y = data.arrays()  # doctest: +SKIP
    >>> folds = raster.BlockKFold(data, "2 km", n_splits=5)  # doctest: +SKIP
    >>> cross_val_score(RandomForestClassifier(24), X, y, cv=folds)  # doctest: +SKIP
    """

    def __init__(self, data: Scene, size: str | float, n_splits: int = 5, seed: int = 0) -> None:
        if not isinstance(data, Scene):
            raise ParameterError("data", data, "a scene: see open_scene")
        self.data, self.size = data, size
        self.n_splits, self.seed = whole("n_splits", n_splits, 2), whole("seed", seed, 0)
        self._blocks = BlockGrid.of(size, [layers.grid for layers in data.scenes], data.patch)
        self._known: tuple[list[StripRows], npt.NDArray[np.int32]] | None = None

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of folds."""
        return self.n_splits

    def split(self, X: Any = None, y: Any = None, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Yield the numbers of the rows for training and of those for the test, for each fold.

        Parameters
        ----------
        X, y : array-like, optional
            The rows and labels, such as `data.arrays()` returns: only their number matters.
        groups : object
            Not used.
        """
        strips, fold_of_block = self._folds()
        n_rows = sum(len(some.lines) for some in strips)
        for name, rows in (("X", X), ("y", y)):
            given = n_rows if rows is None else rows.shape[0] if hasattr(rows, "shape") else len(rows)
            if given != n_rows:
                raise DataError(
                    f"{name} has {given:,} rows, but the scene has {n_rows:,}: use X and y of data.arrays()."
                )
        for fold in range(self.n_splits):
            chosen = fold_of_block == fold
            train, test = (
                self._rows(strips, BlockFilter(self._blocks, chosen, inside)) for inside in (False, True)
            )
            if not len(train):
                where = self.data.scenes[0].where
                raise NoRowsError(where, f"all rows are near a block of fold {fold + 1}: make size smaller")
            yield train, test

    def _folds(self) -> tuple[list[StripRows], npt.NDArray[np.int32]]:
        """Where the rows are, and the fold of each block; negative if it has no rows."""
        if self._known is None:
            strips = [_small(some) for some in self.data.rows() if len(some.lines)]
            counts = rows_by_block(strips, self._blocks)
            check_several(counts, self.size, self.n_splits)
            folds = np.full(len(counts), -1, dtype=np.int32)
            sizes = np.zeros(self.n_splits, dtype=np.int64)
            order = np.random.default_rng(self.seed).permutation(np.flatnonzero(counts))
            for i, block in enumerate(order.tolist()):
                fold = i if i < self.n_splits else int(np.argmin(sizes))
                folds[block] = fold
                sizes[fold] += counts[block]
            self._known = strips, folds
        return self._known

    def _rows(self, strips: list[StripRows], pixels: BlockFilter) -> Rows:
        """The numbers of the rows that a filter keeps."""
        kept = [pixels.keeps(some.strip, None)[some.lines, some.pixels] for some in strips]
        return np.flatnonzero(np.concatenate(kept))

    def __deepcopy__(self, memo: Any) -> BlockKFold:
        return self  # nothing of it changes

    def __repr__(self) -> str:
        where = ", ".join(layers.where for layers in self.data.scenes[:3])
        return f"BlockKFold(<{where}>, {self.size!r}, n_splits={self.n_splits}, seed={self.seed})"


def _small(some: StripRows) -> StripRows:
    """The same rows, in half the memory and without labels."""
    lines, pixels = some.lines.astype(np.int32), some.pixels.astype(np.int32)
    return StripRows(some.strip, lines, pixels, None)  # type: ignore[arg-type]
