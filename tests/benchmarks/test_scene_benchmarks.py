"""Benchmarks of scenes: the scenes, the goals, and the paper's sizes in small."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import billion_scenes
import scene_goals
from imagery import pixels
from journal import Journal
from scene_files import write_scenes
from scene_goals import Verdict, fit_name


def test_scenes_are_parts_of_one_ground(tmp_path: Path) -> None:
    scenes = write_scenes(tmp_path, 3, lines=20, width=30)
    values, labels = pixels(0, 60, 0, 30)
    with rasterio.open(scenes.labels) as file:
        np.testing.assert_array_equal(file.read(1).ravel(), labels + 1)
        top = file.transform
    for part, bands in enumerate(scenes.bands):
        with rasterio.open(bands[4]) as file:
            np.testing.assert_array_equal(
                file.read(1), values[:, 4].reshape(60, 30)[20 * part : 20 * part + 20]
            )
            assert file.transform @ (0, 0) == top @ (0, 20 * part)
    assert scenes.first(2).bands == scenes.bands[:2] and scenes.first(2).labels == scenes.labels


@pytest.mark.parametrize(
    ("value", "goal", "is_most", "word"),
    [(1.2, 1.25, True, "; holds)"), (1.3, 1.25, True, "not hold"), (7.9, 8, False, "not hold"),
     (8.0, 8, False, "; holds)"), (None, 8, False, "not measured")],
)  # fmt: skip
def test_verdicts(value: float | None, goal: float, is_most: bool, word: str) -> None:
    verdict = Verdict("speed", value, goal, is_most=is_most)
    assert word in str(verdict) and f"{goal:g}x" in str(verdict)


def of_map(seconds: float, peak: int = 0) -> dict[str, Any]:
    return {"seconds": seconds, "pixels": 100, "peak": peak}


def test_goals_of_maps() -> None:
    runs = {
        scene_goals.MAP: [of_map(2.0, 400), of_map(1.0, 420)],
        scene_goals.PREDICT: [of_map(0.9), of_map(0.5)],
        scene_goals.LOOP: [of_map(4.0)],
        scene_goals.DASK: [of_map(9.0)],
    }
    over, loop, dask, otb, peak, more = scene_goals.of_maps(runs, of_map(1.0, 400), 512)
    assert [one.value for one in (over, loop, dask, otb)] == [2.0, 4.0, 9.0, None]
    assert [one.holds for one in (over, loop, dask, otb)] == [False, False, True, None]
    assert peak.holds and more.value == pytest.approx(1.05)


def of_fit(seconds: float, written: int) -> dict[str, Any]:
    stage = {"name": "distribute", "bytes_written": written}
    return {"seconds": seconds, "report": {"rows": 10, "top_trees": 2, "stages": [stage]}}


def test_goals_of_fits() -> None:
    seconds = {("scene", "gather"): 5.0, ("scene", "disk"): 4.0, ("scene", "memory"): 3.0}
    seconds |= {("Parquet", "disk"): 4.5, ("Parquet", "memory"): 2.0}
    runs = {fit_name(*which): [of_fit(one, 100), of_fit(one + 1, 80)] for which, one in seconds.items()}
    disk, memory, gather, size = scene_goals.of_fits(runs)
    assert [one.holds for one in (disk, memory, gather, size)] == [True, False, False, True]
    assert size.value == 5.0


def test_growing_sizes_are_journalled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(billion_scenes, "WIDTH", 200)
    monkeypatch.setattr(billion_scenes, "SCENES", 2)
    console = Console(record=True, width=300)
    journal = tmp_path / "runs.jsonl"
    (tmp_path / "attempts-2").write_text("1")  # of a run that was killed
    billion_scenes.billion(tmp_path, 0.02, Journal(journal), console)
    monkeypatch.setattr(billion_scenes, "run_worker", None)
    billion_scenes.billion(tmp_path, 0.02, Journal(journal), console)
    rows = [line.split(" | ") for line in console.export_text().splitlines() if line.startswith("| 0.04")]
    assert len(rows) == 2 and rows[0] == rows[1]
    assert len(rows[0]) == len(billion_scenes.HEADINGS)
    assert rows[0][-1] == "2 |"
    assert not list(tmp_path.glob("checkpoint*")) and not list(tmp_path.glob("attempts*"))
