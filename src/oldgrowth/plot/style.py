"""What all plots have in common: colours, axes, titles."""

from __future__ import annotations

from typing import Any

from ..errors import MissingExtraError

LEAF, OVER, BAR = "#3f8f55", "#d9822b", "#3f7f93"
INK, FAINT, LINE = "#222222", "#666666", "#b5b5b5"


def new_axes(ax: Any, size: tuple[float, float], columns: int = 1) -> Any:
    """The given axes, or those of a new figure of this size in inches."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingExtraError("matplotlib>=3.8", "oldgrowth.plot") from error
    return pyplot.subplots(1, columns, figsize=size, layout="constrained")[1] if ax is None else ax


def finish(ax: Any, title: str, spines: tuple[str, ...] = ("left", "bottom")) -> None:
    ax.set_title(title, loc="left", color=INK, size=11, pad=10)
    ax.tick_params(colors=FAINT, labelcolor=INK, labelsize=9, length=3 if spines else 0)
    for name, spine in ax.spines.items():
        spine.set_visible(name in spines)
        spine.set_color(LINE)
