"""How often rows of each class are predicted as each class."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..datasets.base import Dataset
from ..datasets.labels import kept_apart
from ..errors import DataError
from ..estimators.fitted import drawable, forest_in
from ..estimators.inputs import given_targets, refuse_with_a_dataset, targets_to_score
from ..forest.scoring import MOST_IN_MATRIX, Confusion, check_kind
from ..messages import text
from .style import FAINT, INK, LINE, finish, new_axes

_ANNOTATED = 12  # classes of a matrix whose cells have numbers
_NAMED = 40  # classes of a matrix that are named


def confusion(forest: Any, X: Any, y: Any = None, normalize: bool = True, ax: Any = None) -> Any:
    """Draw a confusion matrix: how often rows of each class are predicted as each class.

    Parameters
    ----------
    forest : estimator
        A classifier, fitted or loaded, or a fitted Pipeline or search that ends in one.
    X : array or data frame of shape (n_samples, n_features), or dataset
        Rows that the forest has not seen. A dataset has its labels in it, and need not fit in memory.
    y : array of shape (n_samples,)
        Their labels. Rows with labels unknown to the forest are left out, and counted below the matrix.
    normalize : bool, default True
        Whether to show shares of the rows of each true class, or numbers of rows.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes
    """
    counted = _confusion(forest, X, y)
    k, matrix = len(counted.classes), counted.matrix
    if matrix is None:
        raise DataError(f"{k:,} classes are too many for a matrix: at most {MOST_IN_MATRIX:,} can be drawn.")
    values = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1) if normalize else matrix
    side = float(np.clip(0.55 * k + 2.2, 4, 9))
    ax = new_axes(ax, (side + 0.9, side))
    image = ax.imshow(values, cmap="Greens", vmin=0, vmax=1 if normalize else None, aspect="equal")
    bar = ax.figure.colorbar(
        image, ax=ax, fraction=0.046, pad=0.03, format="{x:.0%}" if normalize else "{x:,.0f}"
    )
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=FAINT, labelsize=9, length=0)
    if k <= _ANNOTATED:
        _write_cells(ax, values, normalize)
    if k <= _NAMED:
        names = [drawable(label) for label in counted.classes]
        long = sum(map(len, names)) > 40
        ax.set_xticks(range(k), names, rotation=45 if long else 0, ha="right" if long else "center")
        ax.set_yticks(range(k), names)
    unknown = text.counted(counted.unknown_rows, "row with an unknown label", "rows with unknown labels")
    left_out = f"\n{unknown} left out" if counted.unknown else ""
    ax.set_xlabel(f"predicted class{left_out}", color=FAINT)
    ax.set_ylabel("true class", color=FAINT)
    right = np.trace(matrix) / max(1, matrix.sum())
    finish(ax, f"{text.counted(int(matrix.sum()), 'row')}, {right:.1%} right", spines=())
    return ax


def _write_cells(ax: Any, values: npt.NDArray[Any], shares: bool) -> None:
    dark = 0.5 if shares else values.max() / 2
    box = ax.get_window_extent()
    cell = min(box.width, box.height) * 72 / ax.figure.dpi / len(values)  # in points
    size = float(np.clip(cell / 3, 6, 9))
    for (i, j), value in np.ndenumerate(values):
        text = f"{value:.1%}" if shares else f"{value:,}"
        colour = "white" if value > dark else INK if value else LINE
        ax.text(j, i, text, ha="center", va="center", size=size, color=colour)


def _confusion(model: Any, X: Any, y: Any) -> Confusion:
    forest = forest_in(model)
    if not hasattr(forest, "classes_"):
        raise DataError(f"A confusion matrix needs classes, but a {type(forest).__name__} predicts numbers.")
    counted = Confusion(forest.classes_)
    if isinstance(X, Dataset):
        refuse_with_a_dataset(y)
        if model is not forest:
            raise DataError(
                f"A {type(model).__name__} does not predict datasets: give X and y as arrays or data frames."
            )
        for batch in forest._scored(X):
            counted.add(batch.targets, batch.classes)
        return counted
    y = kept_apart(given_targets(y, "labels"))
    predicted = model.predict(X)
    labels, _ = targets_to_score(y, None, len(predicted), numeric=False)
    check_kind(labels, forest.classes_)
    counted.add(labels, np.searchsorted(forest.classes_, predicted))
    return counted
