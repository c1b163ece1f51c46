"""Chooses where labels come from, and tells why a scene has no rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import DataError, NoRowsError, ParameterError
from ...messages.surface import in_words_of
from ..reading.layers import Layers
from ..reading.raster_files import EXTENSIONS
from ..reading.strips import LabelSource, PixelFilter, Strip
from .label_rasters import RasterLabels
from .label_windows import WindowedLabels
from .vectors import VectorLabels


@dataclass(frozen=True)
class LabelChoice:
    """Which labels of a file: a field and a layer of polygons or points, or what a raster has for none."""

    field: str | None = None
    layer: str | None = None
    nodata: float | None = None


def labels_of(source: Any, choice: LabelChoice, scenes: Sequence[Layers]) -> LabelSource:
    """Labels of a vector file or of a raster; at least one pixel has one."""
    if not isinstance(source, str | Path):
        raise ParameterError("labels", source, "the path of a file of polygons or points, or of a raster")
    labels: WindowedLabels
    if Path(source).suffix.lower() in EXTENSIONS:
        for name, value in (("field", choice.field), ("layer", choice.layer)):
            if value is not None:
                raise ParameterError(name, value, f"omitted: a raster of labels has no {name}s")
        labels = RasterLabels(source, choice.nodata, scenes)
    else:
        if choice.nodata is not None:
            raise DataError(
                lambda say: (
                    f"{in_words_of(say, 'nodata', '--label-nodata')} must be omitted: polygons and points "
                    "have no nodata value."
                )
            )
        labels = VectorLabels(source, choice.layer, choice.field, scenes)
    labels.check_any()
    return labels


def no_rows(
    scenes: Sequence[Layers],
    strips: Sequence[Strip],
    labels: LabelSource | None,
    filters: Sequence[PixelFilter],
) -> NoRowsError:
    """The error of a scene without rows, with where they were lost."""
    where = scenes[0].where + (f" and {len(scenes) - 1} more" if len(scenes) > 1 else "")
    left = [0] * (1 + len(filters))
    for strip in strips:
        found = None if labels is None else labels.read(strip)
        width = scenes[strip.scene].grid.width
        left[0] += (strip.stop - strip.first) * width if found is None else int(found.present.sum())
        kept = None if found is None else found.present.copy()
        for i, pixels in enumerate(filters, start=1):
            keeps = pixels.keeps(strip, found)
            kept = keeps if kept is None else kept & keeps
            left[i] += int(kept.sum())
    what = f"of its {left[0]:,} pixels" if labels is None else f"of {left[0]:,} pixels with a label"
    for pixels, count in zip(filters, left[1:], strict=True):
        if not count:
            return NoRowsError(where, f"{what}, none is {pixels}")
        what += f", {count:,} are {pixels}"
    return NoRowsError(where, f"{what}, none is valid: all are nodata, masked or not finite")
