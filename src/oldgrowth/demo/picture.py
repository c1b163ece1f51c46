"""The picture of the demo: the bands, the true classes and the predicted ones.

Needs matplotlib, which is imported when it is used.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..system.atomic_file import new_file
from .scene import Bools, Labels, Scene

COLOURS = ("#2f6b3c", "#a8cf6f", "#efd06b", "#3b7fb8", "#c9483f", "#b08a62", "#7b2cbf")
_SHOWN_BANDS = (4, 3, 2)  # as red, green and blue
_INK, _FAINT = "#222222", "#666666"
_PAGE_WIDTH, _MARGIN = 16.0, 0.3
_ZOOM = (29, 37)
# The whole scene is drawn on some hundred pixels: larger scenes are thinned out.
_WIDE_PIXELS = 600
SUFFIXES = (".png", ".pdf", ".svg")


def save_picture(
    path: Path, scene: Scene, test: Bools, forest_map: Labels, subsets_map: Labels, title: str
) -> None:
    """Draw and save the picture; raises ImportError without matplotlib."""
    from matplotlib.figure import Figure

    centres = [centre for centre in stands(scene) if _tested(scene, test, centre)] or stands(scene)
    zoom = max(centres, key=lambda centre: _tested(scene, test, centre))
    maps = _Maps(scene, test, forest_map, subsets_map)
    page = _Page(scene.shape)
    figure = Figure(figsize=(_PAGE_WIDTH, page.height), dpi=110, facecolor="white")
    step = max(1, max(scene.shape) // _WIDE_PIXELS)
    bands, truth, forest, _ = maps.painted((slice(None, None, step), slice(None, None, step)))
    wide = (
        (bands, "Bands: short-wave, near infrared, red"),
        (truth, "True classes"),
        (forest, "Predicted by the forest (pale: training pixels, true classes)"),
    )
    for i, (image, caption) in enumerate(wide):
        axes = figure.add_axes(page.wide(i))
        _show(axes, image, caption)
        for y, x in centres:
            _ring(axes, (y // step, x // step), zoomed=(y, x) == zoom)
    captions = ("Close up: bands", "True classes", "Forest, all rows", "Baseline, small subsets")
    for i, (image, caption) in enumerate(
        zip(maps.painted(_around(scene.shape, zoom)), captions, strict=True)
    ):
        _show(figure.add_axes(page.close(i)), image, caption)
    _words(figure, scene, title, page)
    image_file = io.BytesIO()
    figure.savefig(image_file, format=path.suffix.lower().lstrip("."))
    with new_file(path) as file:
        file.write(image_file.getvalue())


class _Page:
    """The layout in inches from the top left: a row of three whole scenes, a row of four close-ups."""

    def __init__(self, scene_shape: tuple[int, int]) -> None:
        inner = _PAGE_WIDTH - 2 * _MARGIN
        self._wide_width, self._close_width = (inner - 2 * _MARGIN) / 3, (inner - 3 * _MARGIN) / 4
        self._wide_height = self._wide_width * scene_shape[0] / scene_shape[1]
        self._close_height = self._close_width * _ZOOM[0] / _ZOOM[1]
        self._wide_top = 1.1
        self._close_top = self._wide_top + self._wide_height + 0.6
        self.height = self._close_top + self._close_height + 0.75

    def wide(self, i: int) -> tuple[float, float, float, float]:
        return self._box(i, self._wide_top, self._wide_width, self._wide_height)

    def close(self, i: int) -> tuple[float, float, float, float]:
        return self._box(i, self._close_top, self._close_width, self._close_height)

    def across(self, inches: float) -> float:
        return inches / _PAGE_WIDTH

    def down(self, inches: float) -> float:
        return 1 - inches / self.height

    def _box(self, i: int, top: float, width: float, height: float) -> tuple[float, float, float, float]:
        left = _MARGIN + i * (width + _MARGIN)
        return self.across(left), self.down(top + height), self.across(width), height / self.height


def stands(scene: Scene) -> list[tuple[int, int]]:
    """The middle of each group of pixels of the last, rare class."""
    left = {(int(y), int(x)) for y, x in np.argwhere(scene.truth == len(scene.class_names) - 1)}
    middles = []
    while left:
        group, edge = [], [left.pop()]
        while edge:
            y, x = edge.pop()
            group.append((y, x))
            near = {(y + dy, x + dx) for dy in range(-2, 3) for dx in range(-2, 3)} & left
            left -= near
            edge += near
        y_mean, x_mean = np.mean(group, axis=0)
        middles.append((round(y_mean), round(x_mean)))
    return sorted(middles)


def _tested(scene: Scene, test: Bools, centre: tuple[int, int]) -> int:
    """The number of test pixels in a stand."""
    rare_test = (scene.truth == len(scene.class_names) - 1) & test
    return int(rare_test[_around(scene.shape, centre, (13, 13))].sum())


def _around(
    shape: tuple[int, int], centre: tuple[int, int], size: tuple[int, int] = _ZOOM
) -> tuple[slice, slice]:
    """The part of a scene around a pixel, moved inwards at the borders."""
    first = [
        min(max(0, middle - wanted // 2), length - wanted)
        for middle, length, wanted in zip(centre, shape, size, strict=True)
    ]
    return slice(first[0], first[0] + size[0]), slice(first[1], first[1] + size[1])


class _Maps:
    """Paints parts of the scene and of the maps, all in the same colours."""

    def __init__(self, scene: Scene, test: Bools, forest_map: Labels, subsets_map: Labels) -> None:
        self._scene, self._test, self._predicted = scene, test, (forest_map, subsets_map)
        step = max(1, max(scene.shape) // _WIDE_PIXELS)
        some = scene.bands[list(_SHOWN_BANDS), ::step, ::step]
        self._low, self._high = np.quantile(some, (0.01, 0.99), axis=(1, 2), keepdims=True)

    def painted(self, part: tuple[slice, slice]) -> list[npt.NDArray[np.float64]]:
        """The bands, the true classes, and the predictions of the two forests."""
        truth, learned = self._scene.truth[part], ~self._test[part]
        # Predictions of training pixels say little: the true classes are drawn there.
        said = [np.where(learned, truth, labels[part]) for labels in self._predicted]
        return [self._bands(part), _paint(truth), *(_fade(_paint(labels), learned) for labels in said)]

    def _bands(self, part: tuple[slice, slice]) -> npt.NDArray[np.float64]:
        """Three bands as red, green and blue, each stretched between its 1st and 99th percentile."""
        image = self._scene.bands[(list(_SHOWN_BANDS), *part)].astype(np.float64)
        image = np.clip((image - self._low) / np.maximum(self._high - self._low, 1), 0, 1)
        image += 0.3 * (image.mean(axis=0) - image)  # calmer colours
        return np.moveaxis(image, 0, 2)


def _paint(labels: Labels) -> npt.NDArray[np.float64]:
    from matplotlib.colors import to_rgb

    return np.array([to_rgb(colour) for colour in COLOURS])[labels]


def _fade(image: npt.NDArray[np.float64], where: Bools) -> npt.NDArray[np.float64]:
    image[where] = 0.45 * image[where] + 0.55
    return image


def _show(axes: Any, image: npt.NDArray[Any], caption: str) -> None:
    axes.imshow(image, interpolation="nearest")
    axes.set_title(caption, size=13, color=_INK, loc="left", pad=7)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color("#bbbbbb")


def _ring(axes: Any, centre: tuple[int, int], zoomed: bool) -> None:
    """A ring around a stand, which would be too small to see; the one shown close up is bolder."""
    from matplotlib.patches import Circle

    radius = 0.022 * max(axes.images[0].get_array().shape[:2])
    for colour, width in (("white", 4.5 if zoomed else 3.0), (COLOURS[-1], 2.8 if zoomed else 1.5)):
        axes.add_patch(Circle(centre[::-1], radius, fill=False, edgecolor=colour, linewidth=width))


def _words(figure: Any, scene: Scene, title: str, page: _Page) -> None:
    """The title, what the rings mean, and the legend with the share of each class."""
    from matplotlib.patches import Patch

    left, right, top = page.across(_MARGIN), page.across(_PAGE_WIDTH - _MARGIN), page.down(0.4)
    figure.text(left, top, title, size=19, weight="bold", color=_INK, va="center")
    note = f"Rings mark the stands of {scene.class_names[-1]} to be found; the bold one is shown close up."
    figure.text(right, top, note, size=13, color=_FAINT, va="center", ha="right")
    shares = np.bincount(scene.truth.ravel(), minlength=len(scene.class_names)) / scene.truth.size
    handles = [
        Patch(facecolor=colour, label=f"{name}  {share:.2%}" if share < 0.01 else f"{name}  {share:.0%}")
        for name, colour, share in zip(scene.class_names, COLOURS, shares, strict=True)
    ]
    figure.legend(
        handles=handles, loc="center", ncols=len(handles), frameon=False, fontsize=13, handlelength=1.1,
        columnspacing=2.0, bbox_to_anchor=(0.5, page.down(page.height - 0.38)), labelcolor=_INK,
    )  # fmt: skip
