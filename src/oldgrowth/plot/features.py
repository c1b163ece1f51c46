"""Importances: of features, and by band and place in the patch."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DataError, ParameterError
from ..estimators.fitted import drawable, feature_names, forest_in
from .style import BAR, FAINT, INK, OVER, finish, new_axes


def importances(forest: Any, n: int = 20, ax: Any = None) -> Any:
    """Draw the most important features, by their share in the decrease of impurity.

    Parameters
    ----------
    forest : estimator
        Fitted or loaded, or a fitted Pipeline or search that ends in one.
    n : int, default 20
        How many features, at most.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes
    """
    if n < 1:
        raise ParameterError("n", n, "1 or more")
    values, names = forest_in(forest).feature_importances_, feature_names(forest)
    best = np.argsort(-values, kind="stable")[:n]
    ax = new_axes(ax, (6.4, 0.27 * len(best) + 1.2))
    ax.barh(np.arange(len(best)), values[best], height=0.72, color=BAR)
    ax.set_yticks(np.arange(len(best)), [names[i] for i in best])
    ax.set_ylim(len(best) - 0.4, -0.6)
    ax.set_xlabel("share of the decrease of impurity", color=FAINT)
    which = f"{len(best)} of {len(values):,} features" if len(best) < len(values) else "all features"
    finish(ax, f"Importances, {which}", spines=("bottom",))
    return ax


def patch_importances(forest: Any, ax: Any = None) -> Any:
    """Draw importances by band and by place in the patch: a square for each band.

    Bands come in the order of their importance; a cross marks the pixel itself.

    Parameters
    ----------
    forest : estimator
        Trained on a scene of `raster.open_scene`, fitted or loaded.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes
    """
    by_layer = _by_place(forest_in(forest))
    patch = next(iter(by_layer.values())).shape[0]
    totals = {name: float(np.nansum(shares)) for name, shares in by_layer.items()}
    squares = [(f"{drawable(name)}  {totals[name]:.1%}", shares) for name, shares in by_layer.items()]
    squares.sort(key=lambda square: -float(np.nansum(square[1])))
    columns = min(len(squares), max(3, round(np.sqrt(1.6 * len(squares)))))
    lines = -(-len(squares) // columns)
    step_x, step_y = patch + 0.35 * patch, patch + 0.55 * patch
    ax = new_axes(ax, (1.7 * columns + 1.2, 2.0 * lines + 0.8))
    most = max(float(np.nanmax(shares)) for _, shares in squares)
    for i, (label, shares) in enumerate(squares):
        x, y = (i % columns) * step_x, (i // columns) * step_y
        image = ax.imshow(shares, extent=(x, x + patch, y + patch, y), cmap="YlGnBu", vmin=0, vmax=most)
        ax.text(x, y - 0.08 * patch, label, size=9, color=INK, va="bottom")
        ax.plot(x + patch / 2, y + patch / 2, "+", color=OVER, markersize=6)
    ax.set_xlim(-0.1, columns * step_x - 0.3 * patch)
    ax.set_ylim(lines * step_y - 0.5 * patch, -0.4 * patch)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.03, pad=0.02, format="{x:.1%}")
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=FAINT, labelsize=9, length=0)
    ax.set_xticks([])
    ax.set_yticks([])
    finish(ax, f"Importances by band and place in the patch of {patch} x {patch} pixels", spines=())
    return ax


def _by_place(forest: Any) -> dict[str, npt.NDArray[np.float64]]:
    """The importances of each band or expression, by line and column of the patch; NaN if it was not used."""
    from ..raster.reading.patches import layer_of, place_of  # needs rasterio

    recipe = forest.recipe_ or {}
    if "patch" not in recipe:
        raise DataError(
            "The forest was not trained on a scene, so that its features have no place in a patch."
        )
    patch, half = recipe["patch"], recipe["patch"] // 2
    shares: dict[str, npt.NDArray[np.float64]] = {}
    for name, share in zip(forest.feature_names_in_, forest.feature_importances_, strict=True):
        dx, dy = place_of(name)
        square = shares.setdefault(layer_of(name), np.full((patch, patch), np.nan))
        square[half + dy, half + dx] = share
    return shares
