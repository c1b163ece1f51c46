"""`oldgrowth demo`: a forest on generated imagery beyond a memory limit, the baseline, a map and a picture.

It does what a person would do: open band files as a scene, take labels from polygons, fit, write the map.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from ..estimators.forests import RandomForestClassifier, SubsetForestClassifier
from ..forest.scoring import Confusion
from ..messages.text import human_bytes
from ..raster.maps.class_map import open_class_map
from ..raster.maps.maps import write_map
from ..raster.scenes.opening import open_scene
from ..raster.scenes.scene import Scene as RasterScene
from ..reporting.report import FitReport
from ..reporting.tables import share, stage_table, table
from ..storage.workspace import spill_workspace
from ..system.atomic_file import new_file
from ..system.memory import peak_memory
from .picture import COLOURS, save_picture
from .scene import Bools, Labels, Scene
from .scene_files import FIELD, SceneFiles, make_scene_files

_SUBSET_SHARE = 0.01
_RARE_SHARE = 0.001
_PATCH = 3
_EXTRA = {"ndvi": "(near_infrared - red) / (near_infrared + red)"}
_CATEGORIES = ".aux.xml"  # of the file beside a map in which GDAL keeps the names of its classes


@dataclass(frozen=True)
class Outcome:
    """The scene, its test pixels, and the maps of the two forests."""

    scene: Scene
    test: Bools
    forest_map: Labels
    subsets_map: Labels
    subset_rows: int
    report: FitReport

    def scores(self, predicted: Labels) -> dict[str, Any]:
        """The scores of a map on the test pixels."""
        confusion = Confusion(np.arange(len(self.scene.class_names)))
        confusion.add(self.scene.truth[self.test], predicted[self.test].astype(np.intp))
        return confusion.scores()


def run_demo(size: int, trees: int, seed: int, memory_limit: int, output: Path, console: Console) -> Outcome:
    """Generate a scene of `size` x `size` pixels, train, print the tables, save the map and the picture.

    The map has the name of the picture, with the ending .tif. All other files are in a private temporary
    directory, which is removed at the end.
    """
    started = time.perf_counter()
    with spill_workspace(None, demo=True) as workspace:
        console.print(f"Generating a scene of {size} x {size} pixels in {workspace.path} ...", soft_wrap=True)
        files = make_scene_files(workspace.path, size, seed)
        outcome = _train(files, trees, seed, memory_limit, workspace.path, console)
        forest, subsets = outcome.scores(outcome.forest_map), outcome.scores(outcome.subsets_map)
        console.print()
        console.print(recall_table(outcome.scene, forest, subsets))
        console.print(
            f"Test accuracy {share(forest['accuracy'])}; of the baseline, whose trees see "
            f"{outcome.subset_rows:,} random rows each, {share(subsets['accuracy'])}."
        )
        console.print()
        _publish(workspace.path / "map.tif", output.with_suffix(".tif"), console)
        _picture(outcome, output, console)
    console.print(f"Done in {time.perf_counter() - started:.1f} s.")
    return outcome


def _train(
    files: SceneFiles, trees: int, seed: int, memory_limit: int, directory: Path, console: Console
) -> Outcome:
    pixels = open_scene(files.bands, patch=_PATCH, extra=_EXTRA)
    data = pixels.with_labels(files.polygons, field=FIELD)
    _describe(files, data, console)
    shared: dict[str, Any] = {"random_state": seed, "memory_limit": memory_limit, "spill_dir": directory}
    forest = RandomForestClassifier(trees, trees_per_top=4, verbose=1, **shared).fit(data)
    report = forest.fit_report_
    subset_rows = max(2, round(_SUBSET_SHARE * report.rows))
    subsets = SubsetForestClassifier(trees, subset_size=subset_rows, **shared).fit(data)
    peak = peak_memory()
    console.print()
    console.print(stage_table(report))
    groups = "in one bucket"
    if report.top_trees:
        groups = f"on {report.top_trees} top trees, {report.buckets:,} buckets"
    console.print(f"{report.trees} fully-grown trees {groups}, {report.nodes:,} nodes.")
    # Bands have 16 bits, the index 32, the class 8.
    row_bytes = _PATCH**2 * (2 * len(files.scene.bands) + 4 * len(_EXTRA)) + 1
    console.print(memory_sentence(report.rows * row_bytes, memory_limit, peak, report.store))
    forest_map = _map(files.scene, forest, pixels, directory / "map.tif")
    subsets_map = _map(files.scene, subsets, pixels, directory / "subsets.tif")
    return Outcome(files.scene, files.test, forest_map, subsets_map, subset_rows, report)


def _describe(files: SceneFiles, data: RasterScene, console: Console) -> None:
    scene = files.scene
    wrong = (scene.labels != scene.truth)[files.train].mean()
    console.print(
        f"{len(scene.bands)} bands in GeoTIFFs of {human_bytes(scene.bands.nbytes)} in all, and polygons in "
        f"a GeoPackage with the classes of {files.train.sum():,} pixels, {wrong:.1%} of them wrong. Each "
        f"pixel is a row of {data.n_features} features (patches of {_PATCH} x {_PATCH} pixels of the bands "
        f"and of the vegetation index NDVI). {files.test.sum():,} pixels in other parts of the scene are for "
        "tests."
    )


def memory_sentence(rows: int, limit: int, peak: int, store: str) -> str:
    """The bytes of the rows, the limit and the peak of the process, compared."""
    sizes = (
        f"{human_bytes(rows)} of rows, memory limit {human_bytes(limit)}, "
        f"peak of the process while training {human_bytes(peak)}"
    )
    if rows <= limit:
        kept = "in memory" if store == "memory" else "on disk all the same"
        return f"{sizes}: the rows are no larger than the limit, and were kept {kept}."
    if peak > limit:
        return f"{sizes}: the limit was exceeded."
    return f"{sizes}: trained on all rows, on disk."


def _map(scene: Scene, model: Any, pixels: RasterScene, path: Path) -> Labels:
    """Write the map of a model, and return the class of each pixel."""
    try:
        write_map(model, pixels, path, colors=dict(zip(scene.class_names, COLOURS, strict=True)))
    except KeyboardInterrupt as stop:
        stop.__notes__ = []  # nothing is kept: the directory of the map is temporary here
        raise
    values = np.concatenate([strip.values for strip in open_class_map(path).strips()])
    # Names are counted from 1 in the map, in the order of the alphabet.
    numbers = [0, *(scene.class_names.index(name) for name in model.classes_)]
    return np.array(numbers, dtype=np.uint8)[values]


def _publish(made: Path, path: Path, console: Console) -> None:
    """Copy the map, and the names of its classes, to where they stay."""
    for ending in ("", _CATEGORIES):
        with open(f"{made}{ending}", "rb") as source, new_file(Path(f"{path}{ending}")) as target:
            shutil.copyfileobj(source, target)
    console.print(f"Map saved to {path}", markup=False, soft_wrap=True)


def recall_table(scene: Scene, forest: dict[str, Any], subsets: dict[str, Any]) -> Table:
    """Of the scores of both forests, the recall of each class."""
    title = "Recall: the share of a class's test pixels that is found"
    shown = table(title, "class", "of all pixels", "test pixels", "forest", "subsets")
    for label, name in enumerate(scene.class_names):
        of_all = float((scene.truth == label).mean())
        found, found_by_subsets = forest["classes"][label], subsets["classes"][label]
        shown.add_row(
            name,
            share(of_all),
            f"{found['support']:,}",
            share(found["recall"]),
            share(found_by_subsets["recall"]),
            style="bold" if of_all < _RARE_SHARE else None,
        )
    return shown


def _picture(outcome: Outcome, output: Path, console: Console) -> None:
    title = f"{outcome.report.trees} fully-grown trees, trained on {outcome.report.rows:,} pixels"
    try:
        save_picture(output, outcome.scene, outcome.test, outcome.forest_map, outcome.subsets_map, title)
    except ImportError:
        message = "No picture, because matplotlib is not installed: use pip install matplotlib."
        console.print(message, markup=False)
        return
    console.print(f"Picture saved to {output}", markup=False, soft_wrap=True)
