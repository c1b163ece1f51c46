"""write_map: the pixels of a scene, predicted strip by strip, as georeferenced files."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ...checks import verbosity
from ...errors import MemoryLimitError, ParameterError
from ...estimators.classifier import Classifier
from ...estimators.regressor import Regressor
from ...messages.log import warn
from ...messages.warnings import EmptyMapWarning
from ...planning.planner import jobs_of
from ...reporting.progress import Callback, Machine, Observers, Progress, StoppedByCallback
from ...storage.workspace import Workspace
from ...system.memory import memory_limit_of, release_memory, resident_memory
from ...system.resource_limits import check_address_space, clear_about_limits
from ...system.signals import ended_by_signals
from ..scenes.scene import Scene
from .cog import LEAST_CACHE, MOST_CACHE, MapFile
from .map_layers import (
    MapLayer,
    check_colors,
    class_layer,
    confidence_layer,
    probability_layer,
    value_layer,
)
from .map_outputs import SIDECAR, Outputs
from .map_pixels import MapWork
from .raw_map import RawMap
from .remembered import check_scene, colors_of

_PAGES = 16 << 20  # of a mapped forest, read one after the other


@dataclass(frozen=True)
class WrittenMap:
    """What `write_map` has written: all pixels, those with a result, by class, and the seconds it took."""

    pixels: int
    predicted: int
    by_class: dict[Any, int] | None  # None for a regression
    seconds: float


@clear_about_limits
def write_map(  # noqa: PLR0913 - three files, how they look, and how they are made
    forest: Any,
    scene: Scene,
    path: str | Path,
    *,
    probabilities: str | Path | None = None,
    probability_type: str = "uint8",
    confidence: str | Path | None = None,
    confidence_kind: str = "margin",
    colors: Mapping[Any, Any] | None = None,
    memory_limit: int | float | str | None = None,
    n_jobs: int | None = None,
    verbose: int | bool | None = None,
    callback: Callback | None = None,
) -> WrittenMap:
    """Predict all valid pixels of a scene, and write them as cloud-optimized GeoTIFFs.

    The map has the grid and the coordinates of the scene. Pixels that are not valid, as their centre is
    nodata, NaN or masked, are nodata in the map; all others are predicted, also if the scene has labels or is
    a part of a split. Scenes and maps may be larger than memory.

    Parameters
    ----------
    forest : estimator
        A fitted forest, or one that was loaded. Bands are matched by their names.
    scene : Scene
        One scene, opened by `open_scene` or `scene_like`. A `LeftOutWarning` tells if the forest was trained
        with a mask, or with a given nodata value, that a scene of `open_scene` does not have.
    path : path
        The map, a file that ends in ``.tif`` or ``.tiff``, as the others do: the class of each pixel, or the
        value (float32) if the forest is a regression. Classes that are whole numbers from 0 to 65,535 are
        their own pixel values; others are counted from 1. Names of the classes are in the tags ``CLASS_1``,
        ``CLASS_2``, ..., and as category names in a file ``.aux.xml`` beside the map, where GDAL keeps them.
        The tag ``OLDGROWTH_MODEL`` is the digest of the forest.
    probabilities : path, optional
        A file with a band for the probability of each class.
    probability_type : {"uint8", "float32"}, default "uint8"
        Probabilities are bytes in steps of 1/250, with a scale that tells so, or float32.
    confidence : path, optional
        A file that tells how sure the forest is of each pixel, from 0 to 1.
    confidence_kind : {"margin", "entropy", "share"}, default "margin"
        The probability of the first class minus that of the second; 1 minus the entropy of the probabilities
        as a share of the highest possible; or the probability of the first class.
    colors : dict, optional
        Colours of classes, such as ``{"water": "#1f77b4"}``. Those not named have the colours that the labels
        had in training, or distinct ones.
    memory_limit : int, float or str, optional
        Memory of the process, such as "512MB"; by default that of the forest.
    n_jobs : int, optional
        Number of threads; by default that of the forest.
    verbose : int or bool, optional
        Whether to show progress; by default as the forest does.
    callback : callable, optional
        Is called with the progress, as that of `fit`; its rows are pixels. It can end the work by raising.

    Returns
    -------
    WrittenMap
        The numbers of pixels, of predicted ones, and of those of each class.

    Notes
    -----
    Files appear when all of them are complete, one right after the other, and replace existing ones as a
    whole. Until then everything is in a directory ``.<name of the map>.unfinished`` beside the map, which
    takes the space of the map without compression, and which only one process can use. If the work ends
    early, by an error, a signal or a power cut, the directory stays: the same call goes on from there, and
    gives the same files, byte for byte, also if some of them had appeared. With another forest, scene or kind
    of map it begins anew. GDAL's files beside an existing map (``.aux.xml``, ``.ovr``, ``.msk``) are removed
    with it.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np, rasterio
    >>> from oldgrowth import RandomForestClassifier, raster
    >>> folder = tempfile.mkdtemp()
    >>> place = rasterio.Affine(30, 0, 820_000, 0, -30, 830_000)
    >>> def save(name, pixels):
    ...     about = dict(width=20, height=20, count=1, dtype="uint8", crs="EPSG:32637", transform=place)
    ...     with rasterio.open(f"{folder}/{name}.tif", "w", **about) as file:
    ...         file.write(pixels, 1)
    >>> red = np.random.default_rng(0).integers(1, 255, (20, 20), dtype=np.uint8)
    >>> save("red", red)
    >>> save("classes", (red > 100) + np.uint8(1))
    >>> scene = raster.open_scene(f"{folder}/red.tif")
    >>> forest = RandomForestClassifier(8, random_state=0).fit(scene.with_labels(f"{folder}/classes.tif"))
    >>> raster.write_map(forest, scene, f"{folder}/map.tif").pixels
    400
    >>> with rasterio.open(f"{folder}/map.tif") as file:
    ...     bool((file.read(1) == (red > 100) + 1).all())
    True
    """
    started = time.perf_counter()
    _check(forest, scene)
    wanted = _Wanted(path, probabilities, probability_type, confidence, confidence_kind, colors)
    layers, outputs = wanted.layers(forest), Outputs(wanted.files(forest))
    grid = scene.scenes[0].grid
    raw_bytes = grid.width * grid.height * sum(layer.pixel_bytes for layer in layers.values())
    outputs.check(scene, forest, raw_bytes)
    limit = memory_limit_of(getattr(forest, "memory_limit", "auto") if memory_limit is None else memory_limit)
    jobs = jobs_of(forest.n_jobs if n_jobs is None else n_jobs)
    work = MapWork(forest, scene, layers, limit, jobs)
    observers = Observers(verbosity(getattr(forest, "verbose", 0) if verbose is None else verbose), callback)
    try:
        with ended_by_signals(), outputs.workspace() as workspace, _told_how_to_resume(outputs):
            counts = _made(work, outputs, workspace, observers)
    except StoppedByCallback as stop:
        raised = stop.raised
    else:
        return _summary(forest, layers, counts, time.perf_counter() - started)
    raise raised


@dataclass(frozen=True)
class _Wanted:
    """The files that are asked for, and how they look."""

    path: Any
    probabilities: Any
    probability_type: str
    confidence: Any
    confidence_kind: str
    colors: Any

    def files(self, forest: Any) -> dict[str, Any]:
        named = {"probabilities": self.probabilities, "confidence": self.confidence}
        first = "classes" if hasattr(forest, "classes_") else "values"
        return {first: self.path} | {name: path for name, path in named.items() if path is not None}

    def layers(self, forest: Any) -> dict[str, MapLayer]:
        classes = getattr(forest, "classes_", None)
        if classes is None:
            for name in ("probabilities", "confidence", "colors"):
                if getattr(self, name) is not None:
                    raise ParameterError(name, getattr(self, name), "omitted: a regression has no classes")
            return {"values": value_layer("value")}
        if self.colors is not None:
            check_colors(classes, self.colors)
        made: dict[str, MapLayer] = {
            "classes": class_layer(classes, colors_of(forest) | dict(self.colors or {})),
            "probabilities": probability_layer(classes, self.probability_type),
            "confidence": confidence_layer(self.confidence_kind, len(classes)),
        }
        return {name: made[name] for name in self.files(forest)}


def _check(forest: Any, scene: Any) -> None:
    if isinstance(forest, Classifier | Regressor):
        check_is_fitted(forest, "forest_")
    elif not hasattr(forest, "forest_"):
        raise ParameterError("forest", forest, "a fitted forest of oldgrowth")
    if not isinstance(scene, Scene):
        raise ParameterError("scene", scene, "a scene, as opened by open_scene")
    if len(scene.scenes) != 1:
        raise ParameterError("scene", f"{len(scene.scenes)} scenes", "one scene: write a map for each")
    check_scene(forest, scene)


def _made(
    work: MapWork, outputs: Outputs, workspace: Workspace, observers: Observers
) -> npt.NDArray[np.int64]:
    """Predict what is not done yet, make files of it and publish them. Returns pixels by class value."""
    digest = work.forest.forest_.digest()
    files = _files(work, digest)
    check_address_space()
    _check_memory(work, files)
    raw = RawMap(workspace, work.layers, work.size, work.identity(digest))
    progress = Progress(observers, Machine(work.limit, workspace.used))
    pixels = work.size[0] * work.size[1]
    with raw.opened():
        if not raw.is_complete:
            with progress.stage("predict", pixels, None, "pixel") as stage:
                work.predict(raw, stage)
    release_memory()
    with progress.stage("write", pixels * len(files), None, "pixel") as stage:
        counts = None
        finished = {}
        for name, file in files.items():
            finished[name] = workspace.path / f"map-{name}.tif"
            found = _copied(file, raw, name, finished[name], _cache(work.limit, file))
            counts = found if counts is None else counts
            stage.advance(pixels)
        outputs.publish(finished)
    assert counts is not None
    return counts


def _files(work: MapWork, digest: str) -> dict[str, MapFile]:
    legend = {f"CLASS_{v}": name for layer in work.layers.values() for v, name in layer.names}
    tags, grid = {"OLDGROWTH_MODEL": digest} | legend, work.scene.scenes[0].grid
    return {name: MapFile(layer, grid, tags) for name, layer in work.layers.items()}


def _check_memory(work: MapWork, files: Mapping[str, MapFile]) -> None:
    """Refuse a limit that is too low to predict a map, or to write it, with one that is enough for both."""
    copying = resident_memory() + LEAST_CACHE + max(file.copying_bytes for file in files.values())
    least = int(1.02 * copying) if work.limit < copying else 0
    try:
        work.plan(work.lines(0))
    except MemoryLimitError as error:
        least = max(least, error.least)
    forest = work.forest.forest_
    if least:  # pages of a mapped forest may come and go until the next call
        raise MemoryLimitError(work.limit, least + forest.mapped * min(forest.nbytes, _PAGES), "")


def _cache(limit: int, file: MapFile) -> int:
    """Bytes of GDAL's cache while it copies."""
    room = limit - resident_memory() - file.copying_bytes
    return max(LEAST_CACHE, min(MOST_CACHE, room // 2))


def _copied(file: MapFile, raw: RawMap, name: str, finished: Path, cache: int) -> npt.NDArray[np.int64]:
    """Make a file in the workspace, which has its name there when it is complete."""
    made = finished.with_name(f"map-{name}.new.tif")
    for leftover in finished.parent.glob(f"map-{name}.new.*"):  # GDAL's temporary files, too
        leftover.unlink()
    counts: npt.NDArray[np.int64] = file.copied(raw.path(name), made, cache)
    beside = made.with_name(made.name + SIDECAR)
    if beside.exists():
        beside.replace(finished.with_name(finished.name + SIDECAR))
    made.replace(finished)
    return counts


@contextmanager
def _told_how_to_resume(outputs: Outputs) -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, StoppedByCallback) as stop:
        told = stop.raised if isinstance(stop, StoppedByCallback) else stop
        way = f"what is done is kept in {outputs.directory}. Write the same map again to go on."
        told.add_note(f"The map was interrupted: {way}")
        raise


def _summary(
    forest: Any, layers: Mapping[str, MapLayer], counts: npt.NDArray[np.int64], seconds: float
) -> WrittenMap:
    """What was written; `counts` has the pixels of each value of the first layer, or of none and some."""
    pixels = int(counts.sum())
    layer = next(iter(layers.values()))
    if not layer.names:
        predicted, by_class = int(counts[1]), None
    else:
        labels = forest.classes_.tolist()
        found = counts[[value for value, _ in layer.names]].tolist()
        predicted, by_class = sum(found), dict(zip(labels, found, strict=True))
    if not predicted:
        warn("No pixel of the scene is valid: all of the map is nodata.", EmptyMapWarning, stacklevel=4)
    return WrittenMap(pixels, predicted, by_class, seconds)
