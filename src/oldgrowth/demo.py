"""`oldgrowth demo`: a forest on made-up imagery beside the baseline, with tables and a picture."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from .estimators import RandomForestClassifier, SubsetForestClassifier
from .picture import save_picture
from .report import FitReport
from .scene import Bools, Labels, Scene, make_scene, patches, split_blocks

_SUBSET_SHARE = 0.02
_BLOCKS_ACROSS = 12
_MIN_BLOCK = 5
_RARE_SHARE = 0.001


@dataclass(frozen=True)
class Outcome:
    """The scene, which of its pixels were tested, and what the two forests make of all of them."""

    scene: Scene
    test: Bools
    forest_map: Labels
    subsets_map: Labels
    subset_rows: int
    report: FitReport

    def accuracy(self, predicted: Labels) -> float:
        return float((predicted == self.scene.truth)[self.test].mean())

    def recall(self, predicted: Labels, label: int) -> float:
        """Of the test pixels of a class, the share that is found."""
        return float((predicted == label)[self.test & (self.scene.truth == label)].mean())


def run_demo(size: int, trees: int, seed: int, output: Path, console: Console) -> Outcome:
    """Make a scene of `size` x `size` pixels, train, print the tables, save the picture."""
    started = time.perf_counter()
    scene = make_scene(size, size, seed)
    rows = patches(scene)
    test = split_blocks(scene, block=max(_MIN_BLOCK, size // _BLOCKS_ACROSS), seed=seed)
    wrong = (scene.labels != scene.truth)[~test].mean()
    console.print(
        f"A scene of {size} x {size} pixels, each a row of {rows.shape[1]} features (3x3 patches of "
        f"{len(scene.bands)} bands): {(~test).sum():,} rows to train on, {test.sum():,} to test on in other "
        f"parts of the scene. {wrong:.1%} of the training labels are wrong."
    )
    outcome = _train(scene, rows, test, trees, seed)
    console.print()
    console.print(stage_table(outcome.report))
    report = outcome.report
    groups = "in one bucket"
    if report.top_trees:
        groups = f"on {report.top_trees} top trees, {report.buckets:,} buckets"
    console.print(f"{report.trees} fully-grown trees {groups}, {report.nodes:,} nodes.")
    console.print()
    console.print(recall_table(outcome))
    console.print(
        f"Test accuracy {outcome.accuracy(outcome.forest_map):.2%}; of the baseline, whose trees see "
        f"{outcome.subset_rows:,} random rows each, {outcome.accuracy(outcome.subsets_map):.2%}."
    )
    console.print()
    _picture(outcome, output, console)
    console.print(f"Done in {time.perf_counter() - started:.1f} s.")
    return outcome


def _train(scene: Scene, rows: npt.NDArray[np.uint16], test: Bools, trees: int, seed: int) -> Outcome:
    train = ~test.ravel()
    x, y = rows[train], scene.labels.ravel()[train]
    subset_rows = max(2, round(_SUBSET_SHARE * len(x)))
    forest = RandomForestClassifier(trees, random_state=seed, verbose=1).fit(x, y)
    subsets = SubsetForestClassifier(trees, subset_size=subset_rows, random_state=seed).fit(x, y)

    def whole_map(model: Any) -> Labels:
        predicted: Labels = model.predict(rows).reshape(scene.shape)
        return predicted

    return Outcome(scene, test, whole_map(forest), whole_map(subsets), subset_rows, forest.fit_report_)


def stage_table(report: FitReport) -> Table:
    table = Table("stage", title="Training, stage by stage", title_justify="left")
    for heading in ("rows", "seconds", "share"):
        table.add_column(heading, justify="right")
    total = report.seconds or 1.0
    for stage in report.stages:
        table.add_row(stage.name, f"{stage.rows:,}", f"{stage.seconds:.2f}", f"{stage.seconds / total:.1%}")
    table.add_section()
    table.add_row("total", f"{report.rows:,}", f"{report.seconds:.2f}", "100.0%", style="bold")
    return table


def recall_table(outcome: Outcome) -> Table:
    scene = outcome.scene
    table = Table(
        "class", title="Recall: the share of a class's test pixels that is found", title_justify="left"
    )
    for heading in ("of all pixels", "test pixels", "forest", "subsets"):
        table.add_column(heading, justify="right")
    for label, name in enumerate(scene.class_names):
        share = float((scene.truth == label).mean())
        table.add_row(
            name,
            f"{share:.2%}",
            f"{(outcome.test & (scene.truth == label)).sum():,}",
            f"{outcome.recall(outcome.forest_map, label):.1%}",
            f"{outcome.recall(outcome.subsets_map, label):.1%}",
            style="bold" if share < _RARE_SHARE else None,
        )
    return table


def _picture(outcome: Outcome, output: Path, console: Console) -> None:
    title = f"{outcome.report.trees} fully-grown trees, learned from {outcome.report.rows:,} pixels"
    try:
        save_picture(output, outcome.scene, outcome.test, outcome.forest_map, outcome.subsets_map, title)
    except ImportError:
        message = "No picture, as matplotlib is not installed: pip install matplotlib brings it."
        console.print(message, markup=False)
        return
    console.print(f"Picture saved to {output}", markup=False, soft_wrap=True)
