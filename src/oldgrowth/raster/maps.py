"""write_map: the pixels of a scene, predicted strip by strip, as georeferenced files."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import numpy.typing as npt
import rasterio
from rasterio.shutil import copy as gdal_copy

from ..datasets.batches import Span
from ..errors import ParameterError
from ..forest.batch_predict import Needs
from ..storage.checkpoint_dir import persistent_workspace
from ..system.atomic_file import check_replaceable
from .grid import Grid
from .map_layers import MapLayer, band_xml, class_layer, confidence_layer, probability_layer, value_layer
from .raw_map import RawMap
from .scene import Scene, ScenePiece
from .strips import Strip

SAVED_EVERY = 5.0  # seconds
_COG = {"driver": "COG", "COMPRESS": "DEFLATE", "PREDICTOR": "YES", "BIGTIFF": "IF_SAFER"}


class _Traced(Scene):
    """A scene that remembers, for each strip that was read, which pixels are rows."""

    def __init__(self, scene: Scene, counts: list[int]) -> None:
        self.__dict__.update(vars(scene._changed()))
        self._counts = dict(zip(self.strips, counts, strict=False))
        self.first_row, self._is_part = sum(counts), True
        self._left = deque(self.strips[len(counts) :])
        self.read: deque[tuple[Strip, npt.NDArray[np.intp]]] = deque()

    def _pieces(self, rows: int, span: Span, carry: tuple[str, ...]) -> Iterator[ScenePiece]:
        for piece in super()._pieces(rows, span, carry):
            strip = self._left.popleft()
            self.read.append((strip, piece.lines * self.scenes[0].grid.width + piece.pixels))
            yield piece


def write_map(  # noqa: PLR0913 - three files, and how they look
    forest: Any,
    scene: Scene,
    path: str | Path,
    *,
    probabilities: str | Path | None = None,
    confidence: str | Path | None = None,
    confidence_kind: str = "margin",
    colors: Mapping[Any, str] | None = None,
) -> None:
    """Predict all valid pixels of a scene and write them as cloud-optimized GeoTIFFs."""
    if len(scene.scenes) != 1:
        raise ParameterError("scene", f"{len(scene.scenes)} scenes", "one scene; write a map for each")
    layers, outputs = _layers_of(forest, path, probabilities, confidence, confidence_kind, colors)
    for output in outputs.values():
        check_replaceable(output)
    identity = {"model": forest.forest_.digest(), "scene": scene.fingerprint(), "layers": repr(layers)}
    first = outputs["classes"]
    with persistent_workspace(first.with_name(f".{first.name}.unfinished")) as workspace:
        raw = RawMap(workspace.path, layers, identity)
        try:
            _predict(forest, scene, layers, raw)
            raw.save()
        finally:
            raw.close()
        tags = {"OLDGROWTH_MODEL": forest.forest_.digest(), **_legend(layers["classes"])}
        for name, output in outputs.items():
            _publish(workspace.path, name, layers[name], scene.scenes[0].grid, tags, output)
    os.rmdir(first.with_name(f".{first.name}.unfinished"))


def _layers_of(
    forest: Any, path: Any, probabilities: Any, confidence: Any, kind: str, colors: Mapping[Any, str] | None
) -> tuple[dict[str, MapLayer], dict[str, Path]]:
    """The layers that are asked for, and where they go."""
    classes = getattr(forest, "classes_", None)
    outputs = {"classes": Path(path)}
    if classes is None:
        if probabilities is not None or confidence is not None:
            raise ParameterError("probabilities", probabilities, "omitted: a regression has no classes")
        return {"classes": value_layer("value")}, outputs
    layers: dict[str, MapLayer] = {"classes": class_layer(classes, colors)}
    if probabilities is not None:
        layers["probabilities"], outputs["probabilities"] = probability_layer(classes), Path(probabilities)
    if confidence is not None:
        layers["confidence"], outputs["confidence"] = confidence_layer(kind), Path(confidence)
    return layers, outputs


def _predict(forest: Any, scene: Scene, layers: Mapping[str, MapLayer], raw: RawMap) -> None:
    """Append the pixels of all strips that are not done yet."""
    width, saved = scene.scenes[0].grid.width, time.monotonic()
    for strip, places, means in _by_strip(forest, scene, raw.counts):
        shape = (strip.stop - strip.first) * width
        pixels = {}
        for name, layer in layers.items():
            out = np.full((shape, len(layer.bands)), layer.nodata, dtype=layer.dtype)
            if len(places):
                out[places] = layer.pixels(means)
            pixels[name] = out
        raw.append(len(places), pixels)
        if time.monotonic() - saved > SAVED_EVERY:
            raw.save()
            saved = time.monotonic()


def _by_strip(
    forest: Any, scene: Scene, counts: list[int]
) -> Iterator[tuple[Strip, npt.NDArray[np.intp], npt.NDArray[np.float64]]]:
    """For each strip after those that are done: which pixels are rows, and what the forest says of them."""
    traced = _Traced(scene, counts)
    outputs = forest.forest_.n_outputs
    made: list[npt.NDArray[np.float64]] = []
    have = 0
    with closing(forest._by_batch(traced, forest._predicting(), Needs(8 * outputs, 24 * outputs))) as batches:
        for _, means in batches:
            made.append(means)
            have += len(means)
            while traced.read and len(traced.read[0][1]) <= have:
                strip, places = traced.read.popleft()
                whole = np.concatenate(made) if len(made) > 1 else made[0]
                yield strip, places, whole[: len(places)]
                made, have = [whole[len(places) :]], have - len(places)
    while traced.read:  # strips without rows at the end
        strip, places = traced.read.popleft()
        yield strip, places, np.empty((0, outputs))


def _legend(layer: MapLayer) -> dict[str, str]:
    return {f"CLASS_{value}": name for value, name in layer.names}


def _publish(
    directory: Path, name: str, layer: MapLayer, grid: Grid, tags: Mapping[str, str], output: Path
) -> None:
    """Copy a raw file to a cloud-optimized GeoTIFF that appears whole."""
    bands = "".join(band_xml(layer, i, grid.width, f"map-{name}.raw") for i in range(len(layer.bands)))
    said = "".join(f'<MDI key="{escape(key)}">{escape(value)}</MDI>' for key, value in tags.items())
    place = ", ".join(repr(float(v)) for v in grid.transform.to_gdal())
    virtual = directory / f"map-{name}.vrt"
    virtual.write_text(
        f'<VRTDataset rasterXSize="{grid.width}" rasterYSize="{grid.height}">'
        f"<SRS>{escape(grid.crs.to_wkt())}</SRS><GeoTransform>{place}</GeoTransform>"
        f"<Metadata>{said}</Metadata>{bands}</VRTDataset>"
    )
    finished = directory / f"map-{name}.tif"
    resampling = "NEAREST" if layer.names else "AVERAGE"
    with rasterio.Env(GDAL_CACHEMAX=64, GDAL_NUM_THREADS="2"):
        gdal_copy(virtual, finished, OVERVIEW_RESAMPLING=resampling, **_COG)
    os.replace(finished, output)
    beside = finished.with_name(f"{finished.name}.aux.xml")
    if beside.exists():
        os.replace(beside, output.with_name(f"{output.name}.aux.xml"))
