"""`oldgrowth demo`: a forest on generated imagery beyond a memory limit, the baseline, and a picture."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from ..datasets import open_dataset
from ..datasets.base import Dataset
from ..estimators.forests import RandomForestClassifier, SubsetForestClassifier
from ..forest.scoring import Confusion
from ..messages.text import human_bytes
from ..reporting.report import FitReport
from ..reporting.tables import share, stage_table, table
from ..storage.workspace import spill_workspace
from ..system.memory import peak_memory
from .picture import save_picture
from .scene import FEATURE_NAMES, Bools, Labels, Scene, patches_of_lines
from .scene_files import TARGET, SceneFiles, make_scene_files, strips

_SUBSET_SHARE = 0.01
_RARE_SHARE = 0.001
_PIXELS_AT_A_TIME = 1 << 17


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
    """Generate a scene of `size` x `size` pixels, train, print the tables, save the picture.

    All other files are in a private temporary directory, which is removed at the end.
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
        _picture(outcome, output, console)
    console.print(f"Done in {time.perf_counter() - started:.1f} s.")
    return outcome


def _train(
    files: SceneFiles, trees: int, seed: int, memory_limit: int, directory: Path, console: Console
) -> Outcome:
    data = open_dataset(files.rows, target=TARGET)
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
    row_bytes = report.features * files.scene.bands.itemsize + files.scene.labels.itemsize
    console.print(memory_sentence(report.rows * row_bytes, memory_limit, peak, report.store))
    forest_map, subsets_map = _whole_map(files.scene, forest), _whole_map(files.scene, subsets)
    return Outcome(files.scene, files.test, forest_map, subsets_map, subset_rows, report)


def _describe(files: SceneFiles, data: Dataset, console: Console) -> None:
    scene, train = files.scene, ~files.test
    wrong = (scene.labels != scene.truth)[train].mean()
    console.print(
        f"Each pixel is a row of {data.n_features} features (3x3 patches of {len(scene.bands)} bands): "
        f"{data.n_rows:,} rows to train on, in Parquet files of "
        f"{human_bytes(data.nbytes or 0)}, and {files.test.sum():,} to test on in other parts of the scene. "
        f"{wrong:.1%} of the training labels are wrong."
    )


def memory_sentence(rows: int, limit: int, peak: int, store: str) -> str:
    """The bytes of the rows, the limit and the peak of the process, compared."""
    sizes = (
        f"{human_bytes(rows)} of 16-bit rows, memory limit {human_bytes(limit)}, "
        f"peak of the process while training {human_bytes(peak)}"
    )
    if rows <= limit:
        kept = "in memory" if store == "memory" else "on disk all the same"
        return f"{sizes}: the rows are no larger than the limit, and were kept {kept}."
    if peak > limit:
        return f"{sizes}: the limit was exceeded."
    return f"{sizes}: trained on all rows, on disk."


def _whole_map(scene: Scene, model: RandomForestClassifier | SubsetForestClassifier) -> Labels:
    """The label that a model predicts for each pixel."""

    def patches() -> Iterator[npt.NDArray[np.uint16]]:
        lines = strips(scene.shape, _PIXELS_AT_A_TIME)
        return (patches_of_lines(scene.bands, first, last) for first, last in lines)

    pixels = open_dataset(patches, features=FEATURE_NAMES)
    return model.predict(pixels).astype(np.uint8).reshape(scene.shape)


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
