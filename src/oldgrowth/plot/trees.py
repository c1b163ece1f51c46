"""Top trees and the sizes of their buckets."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import NoBucketRowsError, ParameterError
from ..estimators.fitted import drawable, feature_names, forest_in
from ..forest.tree_layout import TreeLayout, lay_out
from ..messages import text
from ..reporting.report import KEPT_BUCKETS, quantiles_of_buckets
from .style import FAINT, INK, LEAF, LINE, OVER, finish, new_axes

# The most buckets for which rows below each, and the split of each node, have room.
_NUMBERED, _EXPLAINED = 16, 8
_LEVELS = 3  # that are named at a split
_WIDEST = 34.0  # diameter of the largest circle, in points
_INKED = 0.04  # share of the axes that circles may cover even if they overlap


def top_tree(forest: Any, top: int = 0, ax: Any = None) -> Any:
    """Draw a top tree, with its buckets as circles whose area shows their number of rows.

    Parameters
    ----------
    forest : estimator
        Fitted or loaded, or a fitted Pipeline or search that ends in one. A forest on few rows has a single
        bucket.
    top : int, default 0
        Which top tree.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> import oldgrowth.plot
    >>> X, y = make_classification(2000, random_state=0)
    >>> model = oldgrowth.RandomForestClassifier(8, bucket_size=200, balance=1, random_state=0).fit(X, y)
    >>> oldgrowth.plot.top_tree(model).get_title("left")
    'Top tree 0: 16 buckets of 125 rows each'
    """
    model, forest = forest, forest_in(forest)
    by_top = _rows_by_bucket(forest)
    if not 0 <= top < len(by_top):
        raise ParameterError("top", top, f"the number of a top tree, from 0 to {len(by_top) - 1}")
    tree = lay_out(forest.forest_, top)
    rows = np.array(by_top[top])[tree.bucket]
    size = np.clip(0.35 * len(rows) + 3, 6, 13), np.clip(0.35 * tree.depth.max() + 1.8, 3.2, 8)
    ax = new_axes(ax, size)
    _draw_branches(ax, tree)
    ax.set_xlim(-0.8, len(rows) - 0.2)
    ax.set_ylim(tree.depth.max() + 0.7, -0.5)
    limit = _limit(forest)
    _draw_buckets(ax, tree, rows, limit)
    if len(rows) <= _EXPLAINED:
        _write_splits(ax, tree, feature_names(model), forest)
    ax.set_ylabel("depth", color=FAINT)
    ax.set_yticks(range(0, tree.depth.max() + 1, 1 + tree.depth.max() // 12))
    ax.set_xticks([])
    title = f"Top tree {top}: {_of_rows(rows)}" if limit else f"No top tree: {_of_rows(rows)}"
    finish(ax, title, spines=("left",))
    return ax


def bucket_sizes(forest: Any, ax: Any = None) -> Any:
    """Draw a histogram of the rows per bucket of all top trees, with `bucket_size` as a line.

    Parameters
    ----------
    forest : estimator
        Fitted or loaded, or a fitted Pipeline or search that ends in one.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes
    """
    forest = forest_in(forest)
    rows = np.concatenate([np.array(top) for top in _rows_by_bucket(forest)])
    limit = _limit(forest)
    ax = new_axes(ax, (6.4, 3.8))
    end = max(int(rows.max()), limit) + 1
    step = -(-end // int(np.clip(2 * np.sqrt(len(rows)), 10, 50)))
    ax.hist(rows, bins=range(0, end + step, step), color=LEAF, edgecolor="white", linewidth=0.6)
    if limit:
        ax.axvline(limit, color=OVER, linewidth=1.8, label=f"bucket_size {limit:,}")
        ax.legend(frameon=False, labelcolor=INK, loc="upper left" if limit > 0.6 * end else "upper right")
    ax.margins(y=0.2)
    ax.set_xlim(0, 1.04 * end)
    ax.set_xlabel("rows", color=FAINT)
    ax.set_ylabel("buckets", color=FAINT)
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.yaxis.set_major_formatter("{x:,.0f}")
    ax.yaxis.get_major_locator().set_params(integer=True)
    finish(ax, _of_rows(rows))
    return ax


def _rows_by_bucket(forest: Any) -> list[list[int]]:
    kept: list[list[int]] = forest.fit_report_.rows_by_bucket
    if not kept:
        raise NoBucketRowsError(int(forest.forest_.bucket_start[-1]), KEPT_BUCKETS)
    return kept


def _limit(forest: Any) -> int:
    """The bucket size; 0 without top trees."""
    return forest.fit_report_.bucket_size if forest.fit_report_.top_trees else 0


def _of_rows(rows: npt.NDArray[np.int64]) -> str:
    if len(rows) == 1:
        return f"one bucket of {text.counted(int(rows[0]), 'row')}"
    if rows.min() == rows.max():
        return f"{len(rows):,} buckets of {text.counted(int(rows[0]), 'row')} each"
    median = quantiles_of_buckets(rows)["50%"]
    return f"{len(rows):,} buckets of {rows.min():,} to {rows.max():,} rows, median {median:,}"


def _draw_branches(ax: Any, tree: TreeLayout) -> None:
    from matplotlib.collections import LineCollection

    ends = np.stack([tree.x[tree.links], tree.depth[tree.links]], axis=-1)
    width = 1.2 if len(tree.bucket) <= 100 else 0.7
    ax.add_collection(LineCollection(list(ends), colors=LINE, linewidths=width, zorder=1))


def _draw_buckets(ax: Any, tree: TreeLayout, rows: npt.NDArray[np.int64], limit: int) -> None:
    from matplotlib.colors import to_rgba

    x, depth = tree.x[tree.leaves], tree.depth[tree.leaves]
    scale = _largest(ax, x, depth, rows) ** 2 / rows.max()  # square points for each row
    over = rows > limit if limit else np.zeros(len(rows), dtype=bool)
    many = len(rows) > 100  # they overlap: draw them pale, with an edge
    for which, colour in ((~over, LEAF), (over, OVER)):
        if which.any():
            ax.scatter(
                x[which], depth[which], s=rows[which] * scale, edgecolors=colour,
                facecolor=to_rgba(colour, 0.6 if many else 1.0), linewidths=0.4 if many else 0, zorder=2,
            )  # fmt: skip
    if len(rows) > _NUMBERED:
        _explain_circles(ax, rows, scale, limit if over.any() else 0)
        return
    for at, level, n in zip(x, depth, rows, strict=True):
        drop = np.sqrt(n * scale) / 2 + 3
        ax.annotate(
            f"{n:,}", (at, level), (0, -drop), textcoords="offset points", ha="center", va="top", size=9,
            color=OVER if limit and n > limit else INK,
        )  # fmt: skip


def _largest(
    ax: Any, x: npt.NDArray[np.float64], depth: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
) -> float:
    """Diameter of the largest circle in points: circles of the same depth hardly overlap, unless they would
    be too small to see."""
    box = ax.get_window_extent()
    width, height = np.array([box.width, box.height]) * 72 / ax.figure.dpi
    visible = np.sqrt(_INKED * width * height * rows.max() / rows.sum())
    radii = np.sqrt(rows / rows.max()) / 2
    order = np.lexsort((x, depth))
    near = np.diff(depth[order]) == 0
    if not near.any():
        return _WIDEST
    gaps = np.diff(x[order])[near] * width / np.ptp(ax.get_xlim())
    apart = np.quantile(gaps / (radii[order][1:] + radii[order][:-1])[near], 0.1)
    return float(min(max(visible, apart), _WIDEST))


def _explain_circles(ax: Any, rows: npt.NDArray[np.int64], scale: float, limit: int) -> None:
    """A legend below the tree: the rows of some areas, and the meaning of the other colour."""
    from matplotlib.lines import Line2D

    def circle(n: float, colour: str, label: str) -> Any:
        look = {"marker": "o", "markersize": np.sqrt(n * scale), "markeredgewidth": 0}
        return Line2D([], [], color=colour, linestyle="none", label=label, **look)

    largest = 10 ** int(np.log10(rows.max()))
    largest *= next(unit for unit in (5, 2, 1) if unit * largest <= rows.max())
    shown = [n for n in (largest, largest // 2, largest // 10) if n]
    key = [circle(n, LEAF, text.counted(n, "row")) for n in shown]
    if limit:
        key.append(circle(largest // 2, OVER, f"above bucket_size, {text.counted(limit, 'row')}"))
    ax.legend(
        handles=key, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=len(key), frameon=False, fontsize=9,
        labelcolor=INK, borderpad=1.0, handletextpad=1.0, columnspacing=2.5,
    )  # fmt: skip


def _write_splits(ax: Any, tree: TreeLayout, names: list[str], forest: Any) -> None:
    for k, i in enumerate(tree.splits):
        levels = forest._levels[tree.feature[k]] if tree.sets[k] is not None else None
        said = names[tree.feature[k]] + (
            f" ≤ {tree.threshold[k]:.4g}" if levels is None else _of_levels(tree.sets[k], levels.names)
        )
        ax.annotate(
            said, (tree.x[i], tree.depth[i]), ha="center", va="center",
            size=9, color=INK, bbox={"facecolor": "white", "edgecolor": LINE, "boxstyle": "round,pad=0.35"},
        )  # fmt: skip


def _of_levels(split: Any, names: list[str]) -> str:
    """Which levels go left, or which do not."""
    found, goes_left = split
    shown = [drawable(names[level]) for level in found[:_LEVELS]]
    more = f" and {len(found) - _LEVELS:,} more" if len(found) > _LEVELS else ""
    return f"{' is' if goes_left else ' is not'} {', '.join(shown)}{more}"
