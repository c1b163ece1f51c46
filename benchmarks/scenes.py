"""Maps and fits of scenes: python benchmarks/scenes.py [--quick] [--billion].

A generated scene of 9 bands of bytes in GeoTIFFs, with 3x3 patches. Measurements alternate, each in its own
process. Rivals map fewer lines, as they are slow; speeds are compared in pixels a second.

    python benchmarks/scenes.py            61 megapixels; an hour, 2 GB of disk
    python benchmarks/scenes.py --quick    4 megapixels
    python benchmarks/scenes.py --billion  the paper's billion pixels in steps of 250 million; 30 GB of disk
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

import otb
from journal import Journal, Run
from oldgrowth import RandomForestClassifier, raster
from oldgrowth.messages.text import human_bytes
from raster_worker import PATCH, padded_patches, read_lines
from scene_files import first_labels, write_scene

HERE = Path(__file__).parent
TREES = 24
MAP_LIMIT = "512MB"
SHALLOW = f", trees of depth {otb.MOST_DEPTH}"
TRAINING_LINES = 64  # of which the pixels are trained on, for the maps
OTB_TRAINING_LINES = 16  # its training takes minutes
FIT = {"n_estimators": 4, "trees_per_top": 4, "random_state": 0}
PAPER_LIMIT = "16GB"


def main() -> None:
    options = parse()
    console = Console(highlight=False, width=max(Console().width, 110))
    work = options.directory
    work.mkdir(parents=True, exist_ok=True)
    if options.billion:
        billion(work, options.step, console)
    else:
        width, lines, rival_lines, fit_lines = (
            (8000, 7625, 256, 1000) if not options.quick else (2000, 2000, 64, 400)
        )
        maps(work, (width, lines, rival_lines), options.repeats, console)
        fits(work, (width, fit_lines), options.repeats, console)
    if not options.keep:
        shutil.rmtree(work)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--directory", type=Path, default=HERE / "results" / "rasters", help="for scenes and maps"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--billion", action="store_true")
    parser.add_argument("--step", type=int, default=250, help="megapixels between the sizes of --billion")
    parser.add_argument("--keep", action="store_true", help="keep the data")
    return parser.parse_args()


def run_worker(what: str, **arguments: Any) -> Run:
    command = [sys.executable, str(HERE / "raster_worker.py"), json.dumps({"what": what} | arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: Run = json.loads(done.stdout.strip().splitlines()[-1])
    return result


# Maps.


def maps(work: Path, size: tuple[int, int, int], repeats: int, console: Console) -> None:
    width, lines, rival_lines = size
    bands, labels = write_scene(work / f"scene-{width}x{lines}", lines, width=width)
    quarter, _ = write_scene(work / f"scene-{width}x{lines // 4}", lines // 4, width=width)
    models = train(work, bands, labels, TRAINING_LINES * 8000 // width)
    out = str(work / "map.tif")
    common: dict[str, Any] = {"bands": bands, "model": models["oldgrowth"]}
    rival = {"bands": bands, "model": models["scikit-learn"], "out": out, "lines": rival_lines}
    jobs: dict[str, Run] = {
        "map": common | {"out": out, "memory_limit": MAP_LIMIT},
        "predict": common,
        "rasterio + scikit-learn": rival,
        "dask + scikit-learn": rival,
    }
    if otb.is_installed():
        jobs |= jobs_with_otb(work, jobs["map"], labels, rival_lines)
    else:
        console.print("Orfeo ToolBox is left out: its applications are not installed (Debian: otb-bin).")
    runs: dict[str, list[Run]] = {what: [] for what in jobs}
    for _ in range(repeats):
        for what, arguments in jobs.items():
            runs[what].append(run_worker(what.removesuffix(SHALLOW), **arguments))
            last = runs[what][-1]
            console.print(
                f"{what}: {last['pixels'] / last['seconds'] / 1e6:.3f} megapixels/s", soft_wrap=True
            )
    small = run_worker("map", **(jobs["map"] | {"bands": quarter}))
    show_maps(console, runs, width * lines, small)


def train(work: Path, bands: list[str], labels: str, lines: int) -> dict[str, str]:
    """Forests of both libraries on the first lines of the scene."""
    from sklearn.ensemble import RandomForestClassifier as ScikitLearn

    ours, theirs = work / "forest.og", work / "forest.pickle"
    scene = raster.open_scene(bands, patch=PATCH).with_labels(first_labels(labels, lines))
    RandomForestClassifier(TREES, random_state=0).fit(scene).save(ours)
    batches = [(batch.x, np.asarray(batch.y)) for batch in scene.batches(1 << 18)]
    x, y = (np.concatenate(arrays) for arrays in zip(*batches, strict=True))
    model = ScikitLearn(TREES, n_jobs=-1, random_state=0).fit(np.nan_to_num(x), y)
    theirs.write_bytes(pickle.dumps(model))
    return {"oldgrowth": str(ours), "scikit-learn": str(theirs)}


def jobs_with_otb(work: Path, our_map: Run, labels: str, rival_lines: int) -> dict[str, Run]:
    """Maps of Orfeo ToolBox and of ours, with as many trees that are no deeper than its trees may be."""
    bands, ours, theirs, stack = our_map["bands"], work / "shallow.og", work / "otb.model", work / "stack.tif"
    rows = padded_patches(bands, 0, OTB_TRAINING_LINES, OTB_TRAINING_LINES)
    rows = rows.reshape(rows.shape[0] * rows.shape[1], -1)
    y = read_lines([labels], 0, OTB_TRAINING_LINES).ravel()
    scene = raster.open_scene(bands, patch=PATCH).with_labels(first_labels(labels, OTB_TRAINING_LINES))
    RandomForestClassifier(TREES, max_depth=otb.MOST_DEPTH, random_state=0).fit(scene).save(ours)
    otb.train(rows, y.astype(np.int32), TREES, int(rows.shape[1] ** 0.5), theirs)
    lines = padded_patches(bands, 0, rival_lines, rival_lines)
    otb.write_stack(lines.reshape(*lines.shape[:2], -1), bands[0], stack)
    arguments = {"model": str(theirs), "stack": str(stack), "out": our_map["out"]}
    return {f"map{SHALLOW}": our_map | {"model": str(ours)}, "OTB ImageClassifier": arguments}


def show_maps(console: Console, runs: dict[str, list[Run]], pixels: int, small: Run) -> None:
    speed = {what: max(run["pixels"] / run["seconds"] for run in some) for what, some in runs.items()}
    table = Table(
        title=f"Maps, {pixels / 1e6:.0f} megapixels x 9 bands, 3x3, {TREES} trees", title_justify="left"
    )
    for heading in ("what", "megapixels/s", "times ours", "goal"):
        table.add_column(heading, justify="left" if heading in ("what", "goal") else "right")
    goals = {
        "predict": "at most 1.25x",
        "rasterio + scikit-learn": "at most 1/8",
        "dask + scikit-learn": "at most 1/8",
        "OTB ImageClassifier": "at most 1/5",
    }
    for what, value in speed.items():
        ours = speed[f"map{SHALLOW}" if what == "OTB ImageClassifier" else "map"]
        table.add_row(what, f"{value / 1e6:.3f}", f"{value / ours:.3f}", goals.get(what, ""))
    console.print(table)
    peak = max(run["peak"] for run in runs["map"])
    console.print(
        f"memory of the map: {human_bytes(peak)}, limit {MAP_LIMIT}; with a quarter of the lines "
        f"{human_bytes(small['peak'])}: {peak / small['peak']:.3f}x (goal at most 1.05x)"
    )


# Fits.


def fits(work: Path, size: tuple[int, int], repeats: int, console: Console) -> None:
    width, lines = size
    bands, labels = write_scene(work / f"scene-{width}x{lines}", lines, width=width)
    table = write_table(work / "rows.parquet", bands, labels)
    spill = {"spill_dir": str(work)}
    scene: dict[str, Any] = {"bands": bands, "labels": labels}
    jobs: dict[str, tuple[str, Run]] = {
        f"{source}, {store}": (
            f"fit from {source}",
            (scene if source == "the scene" else {"table": table}) | {"fit": FIT | spill | {"store": store}},
        )
        for source, stores in (("the scene", ("gather", "disk", "memory")), ("Parquet", ("disk", "memory")))
        for store in stores
    }
    runs: dict[str, list[Run]] = {what: [] for what in jobs}
    for _ in range(repeats):
        for what, (work_name, arguments) in jobs.items():
            runs[what].append(run_worker(work_name, **arguments))
            console.print(f"{what}: {runs[what][-1]['seconds']:.1f} s", soft_wrap=True)
    assert len({run["digest"] for some in runs.values() for run in some}) == 1, "forests differ"
    show_fits(console, runs, width * lines)


def write_table(path: Path, bands: list[str], labels: str) -> str:
    """The rows of the scene as Parquet: bytes, and null where a value is missing."""
    scene = raster.open_scene(bands, patch=PATCH).with_labels(labels)
    writer: pq.ParquetWriter | None = None
    for batch in scene.batches(1 << 18):
        missing = np.isnan(batch.x)
        values = np.where(missing, 0, batch.x).astype(np.uint8)
        columns = [pa.array(values[:, i].copy(), mask=missing[:, i].copy()) for i in range(values.shape[1])]
        assert scene.feature_names is not None
        rows = pa.table([*columns, pa.array(np.asarray(batch.y))], names=[*scene.feature_names, "label"])
        writer = writer or pq.ParquetWriter(path, rows.schema)
        writer.write_table(rows)
    assert writer is not None
    writer.close()
    return str(path)


def show_fits(console: Console, runs: dict[str, list[Run]], pixels: int) -> None:
    table = Table(
        title=f"Fits, {pixels / 1e6:.0f} megapixels x 81, 4 trees on a top tree", title_justify="left"
    )
    stages = ("sample", "top trees", "distribute", "grow", "assemble")
    for heading in ("what", "median s", *stages, "bytes/row on disk"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for what, some in runs.items():
        best = min(some, key=lambda run: run["seconds"])
        by_name = {stage["name"]: stage for stage in best["report"]["stages"]}
        written = by_name["distribute"]["bytes_written"] / by_name["distribute"]["rows"]
        seconds = [f"{by_name[name]['seconds']:.1f}" for name in stages]
        table.add_row(what, f"{median(run['seconds'] for run in some):.1f}", *seconds, f"{written:.1f}")
    console.print(table)


# The paper's billion.


def billion(work: Path, step: int, console: Console) -> None:
    """One top tree with four trees, lambda 1, for growing parts of a scene."""
    width = 25_000
    journal = Journal(HERE / "results" / "rasters-billion.jsonl")
    fit = FIT | {"balance": 1.0, "memory_limit": PAPER_LIMIT, "spill_dir": str(work), "verbose": 1}
    table = Table(title=f"Pixels x 81, one top tree, memory limit {PAPER_LIMIT}", title_justify="left")
    stages = ("sample", "top trees", "distribute", "grow", "assemble")
    for heading in ("megapixels", "seconds", *stages, "peak memory", "written"):
        table.add_column(heading, justify="right")
    for size in range(step, 4 * step + 1, step):
        bands, labels = write_scene(work / f"scene-{size}", size * 10**6 // width, width=width)
        for file in (*bands, labels):
            forget(file)
        arguments = {"bands": bands, "labels": labels, "fit": fit}
        run = journal.run(
            {"megapixels": size}, lambda arguments=arguments: run_worker("fit from the scene", **arguments)
        )
        by_name = {stage["name"]: stage for stage in run["report"]["stages"]}
        seconds = [f"{by_name[name]['seconds']:.0f}" for name in stages]
        written = human_bytes(sum(stage["bytes_written"] for stage in by_name.values()))
        table.add_row(f"{size:,}", f"{run['seconds']:.0f}", *seconds, human_bytes(run["peak"]), written)
        console.print(table)
        shutil.rmtree(work / f"scene-{size}")


def forget(file: str) -> None:
    """Drop a file from the system's cache."""
    with open(file, "rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


if __name__ == "__main__":
    main()
