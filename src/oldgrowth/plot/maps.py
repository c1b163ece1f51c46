"""Maps, with their legend and how sure the forest is of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ParameterError
from ..estimators.fitted import drawable
from ..messages import text
from .style import FAINT, INK, LINE, new_axes

_PIXELS = 1200  # of the longer side: more than a page shows
_NAMED = 30  # classes of a legend
_NOTHING = "#e6e6e6"  # where there is no data


def map(path: str | Path, confidence: str | Path | None = None, ax: Any = None) -> Any:
    """Draw a map of `write_map`, and optionally the confidence beside it.

    Maps are read from their overviews, so that memory does not depend on their size. Pixels without data are
    grey. The legend has the classes in the picture, the most frequent ones if there are many.

    Parameters
    ----------
    path : path
        A raster of one band: classes with their names and colours, or values of a regression.
    confidence : path, optional
        A raster of one band from 0 to 1 that `write_map` wrote with the map.
    ax : matplotlib Axes, optional
        Where to draw; with `confidence` two of them. A new figure if not given.

    Returns
    -------
    matplotlib Axes
        With `confidence` an array of two.
    """
    from ..raster.maps.small_map import read_small  # needs rasterio

    shown = read_small(path, _PIXELS)
    sure = None if confidence is None else read_small(confidence, _PIXELS)
    if sure is not None and sure.grid != shown.grid:
        wanted = f"a raster with the grid of the map, {shown.grid}; it has {sure.grid}"
        raise ParameterError("confidence", str(confidence), wanted)
    height, width = shown.pixels.shape
    tall = float(np.clip(5.6 * height / width, 2.5, 9))
    if sure is None:
        ax = new_axes(ax, (7.4, tall + 0.8))
        _draw(ax, shown, Path(path).name)
        return ax
    pair = new_axes(ax, (13.4, tall + 0.8), columns=2)
    _draw(pair[0], shown, Path(path).name)
    _draw(pair[1], sure, f"Confidence: {sure.description}" if sure.description else "Confidence", of=(0, 1))
    return pair


def _draw(ax: Any, shown: Any, title: str, of: tuple[float | None, float | None] = (None, None)) -> None:
    ax.set_facecolor(_NOTHING)
    if shown.is_of_classes:
        _draw_classes(ax, shown)
    else:
        image = ax.imshow(shown.pixels, extent=shown.extent, cmap="viridis", vmin=of[0], vmax=of[1])
        bar = ax.figure.colorbar(image, cax=ax.inset_axes((1.02, 0, 0.035, 1)))
        bar.outline.set_visible(False)
        bar.ax.tick_params(colors=FAINT, labelsize=9, length=0)
    ax.set_title(drawable(title), loc="left", color=INK, size=11, pad=10)
    ax.tick_params(colors=LINE, labelcolor=FAINT, labelsize=8, length=3)
    for axis in (ax.xaxis, ax.yaxis):
        axis.get_major_locator().set_params(nbins=4)
        axis.set_major_formatter("{x:.10g}")
    for spine in ax.spines.values():
        spine.set_color(LINE)
    if shown.grid.crs is not None:
        ax.set_xlabel(drawable(shown.grid.crs.to_string()[:60]), color=FAINT, size=8)


def _draw_classes(ax: Any, shown: Any) -> None:
    from matplotlib.patches import Patch

    values, counts = np.unique(shown.pixels.compressed(), return_counts=True)
    image = np.zeros((*shown.pixels.shape, 4), dtype=np.uint8)
    for value in values.tolist():
        image[(shown.pixels == value).filled(False)] = (*shown.colors[value], 255)
    ax.imshow(image, extent=shown.extent, interpolation="nearest")
    often = values[np.argsort(-counts, kind="stable")[:_NAMED]]
    key = [
        Patch(
            facecolor="#" + bytes(shown.colors[value]).hex(),
            label=drawable(shown.names.get(value, str(value))),
        )
        for value in sorted(often.tolist())
    ]
    if len(values) > _NAMED:
        more = text.counted(len(values) - _NAMED, "more class", "more classes")
        key.append(Patch(facecolor="none", label=f"and {more}"))
    ax.legend(
        handles=key, loc="upper left", bbox_to_anchor=(1.0, 1.01), frameon=False, fontsize=9, labelcolor=INK,
        handlelength=1.1, borderaxespad=0.6,
    )  # fmt: skip
