"""Maps that are killed at any moment and resumed: the same files, byte for byte."""

import json
import logging
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from rasters import smooth_scene, write_raster

import oldgrowth
from oldgrowth import RandomForestClassifier, raster
from oldgrowth.raster.maps import cog, map_pixels
from oldgrowth.raster.scenes import scene as scene_module
from oldgrowth.reporting import progress as reporting

OUTPUTS = ("map.tif", "map.tif.aux.xml", "p.tif", "c.tif")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scene")
    bands = smooth_scene(2, 60, 50)
    bands[:, 20:30] = 0
    scene = raster.open_scene(write_raster(folder / "scene.tif", bands, nodata=0), patch=3)
    labels = write_raster(folder / "labels.tif", (bands[:1] > 128).astype(np.uint8) + 1)
    forest = RandomForestClassifier(4, random_state=0).fit(scene.with_labels(labels))
    forest.save(folder / "forest.og")
    write(forest, scene, folder)
    return forest, folder, contents(folder)


def write(forest, scene, folder, **options):
    files = {"probabilities": folder / "p.tif", "confidence": folder / "c.tif"}
    return raster.write_map(forest, scene, folder / "map.tif", **files, **options)


def contents(folder):
    return {name: (folder / name).read_bytes() for name in OUTPUTS if (folder / name).exists()}


def scene_of(folder, patch=3):
    return raster.open_scene(folder / "scene.tif", patch=patch)


# Where a process is killed: a function, and at which call of it.
MOMENTS = {
    "while pixels are appended": ("raw_map._write", 20),
    "before the state is saved": ("raw_map.os.fsync", 4),
    "after the state is saved": ("raw_map.RawMap.put", 5),
    "before the first copy": ("cog.gdal_copy", 1),
    "before the second copy": ("cog.gdal_copy", 2),
    "before a copy is read": ("cog.MapFile._compared", 2),
    "before files appear": ("map_outputs.Outputs.publish", 1),
    "after one has appeared": ("map_outputs._move", 2),
    "after two have appeared": ("map_outputs._move", 3),
}
# Forks a process for each moment, before it has threads of its own.
KILLS = """
import json, os, signal, sys
from functools import reduce
import oldgrowth
from oldgrowth import raster
from oldgrowth.raster.maps import cog
from oldgrowth.raster.maps import map_outputs
from oldgrowth.raster.maps import map_pixels
from oldgrowth.raster.maps import raw_map
from oldgrowth.raster.scenes import scene as scene_module

def killed_at(function, call):
    left = [call]
    def wrapped(*args, **options):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **options)
    return wrapped

def write(source, folder, place, call):
    *path, name = place.split(".")
    owner = reduce(getattr, path[1:], globals()[path[0]])
    setattr(owner, name, killed_at(getattr(owner, name), call))
    plan = map_pixels.plan_batches
    map_pixels.plan_batches = lambda *args: map_pixels.replace(plan(*args), rows=200)
    scene_module.STRIP_PIXELS, map_pixels.SAVED_EVERY = 150, 0
    forest, scene = oldgrowth.load(f"{source}/forest.og"), raster.open_scene(f"{source}/scene.tif", patch=3)
    files = {"probabilities": f"{folder}/p.tif", "confidence": f"{folder}/c.tif"}
    raster.write_map(forest, scene, f"{folder}/map.tif", n_jobs=1, **files)

source, moments = sys.argv[1], json.loads(sys.argv[2])
for folder, (place, call) in moments.items():
    if (child := os.fork()) == 0:
        try:
            write(source, folder, place, call)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, folder
"""


@pytest.fixture(scope="module")
def killed(made, tmp_path_factory):
    """A folder for each moment, as the killed process left it."""
    folders = {moment: tmp_path_factory.mktemp("killed") for moment in MOMENTS}
    for folder in folders.values():
        (folder / "map.tif").write_bytes(b"old")
    moments = {str(folders[moment]): where for moment, where in MOMENTS.items()}
    subprocess.run([sys.executable, "-c", KILLS, str(made[1]), json.dumps(moments)], check=True, timeout=120)
    return folders


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_and_resumed(made, killed, moment):
    forest, source, expected = made
    folder = killed[moment]
    if "appeared" not in moment:
        assert contents(folder) == {"map.tif": b"old"}  # nothing is half-written
    assert (folder / ".map.tif.unfinished").is_dir()
    write(forest, scene_of(source), folder)
    assert contents(folder) == expected
    assert not list(folder.glob(".*"))


def _small(plan):
    return map_pixels.replace(plan, rows=200)


def test_lines_that_are_done_are_not_predicted_again(made, tmp_path, monkeypatch, caplog):
    forest, folder, expected = made
    monkeypatch.setattr(scene_module, "STRIP_PIXELS", 150)
    monkeypatch.setattr(map_pixels, "SAVED_EVERY", 0)
    monkeypatch.setattr(reporting, "_CALL_EVERY_SECONDS", 0)
    monkeypatch.setattr(reporting, "_LOOK_SECONDS", 0)
    plan = map_pixels.plan_batches
    monkeypatch.setattr(map_pixels, "plan_batches", lambda *args: _small(plan(*args)))

    def stop(progress):
        if progress.rows > 1800:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough") as stopped:
        write(forest, scene_of(folder), tmp_path, callback=stop)
    assert "Write the same map again to go on" in stopped.value.__notes__[-1]
    seen = []
    with caplog.at_level(logging.INFO, "oldgrowth"):
        write(forest, scene_of(folder), tmp_path, callback=seen.append)
    assert "lines are done" in caplog.text
    first = next(p for p in seen if p.stage == "predict" and p.rows)
    assert first.rows >= 1500 and first.total_rows == 3000
    assert [p.stage for p in seen if p.finished] == ["predict", "write"]
    assert contents(tmp_path) == expected


@pytest.mark.parametrize("other", ["forest", "scene", "layers", "damaged", "no state"])
def test_what_is_unfinished_of_another_map_is_not_resumed(made, tmp_path, monkeypatch, caplog, other):
    forest, folder, expected = made
    first, patch, options = forest, 3, {}
    if other == "forest":
        first = oldgrowth.load(folder / "forest.og").set_params(voting="hard")
    if other == "layers":
        options = {"confidence_kind": "entropy"}
    scene = scene_of(folder, patch)
    if other == "scene":
        scene = raster.open_scene(folder / "scene.tif", patch=3, nodata=200)
    with monkeypatch.context() as patched:
        patched.setattr(cog, "gdal_copy", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write(first, scene, tmp_path, **options)
    unfinished = tmp_path / ".map.tif.unfinished" / "oldgrowth-fit"
    if other == "damaged":
        with open(unfinished / "map-classes.raw", "r+b") as file:
            file.write(b"\xff")
    if other == "no state":
        (unfinished / "map-state.json").write_bytes(b"{")
    with caplog.at_level(logging.INFO, "oldgrowth"):
        write(forest, scene_of(folder), tmp_path)
    assert "Not resumed" in caplog.text
    assert contents(tmp_path) == expected
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_the_work_and_keep_what_is_done(made, tmp_path, number):
    forest, folder, expected = made
    code = f"""
        import os, sys
        import oldgrowth
        from oldgrowth import raster
        forest = oldgrowth.load({str(folder / "forest.og")!r})
        scene = raster.open_scene({str(folder / "scene.tif")!r}, patch=3)
        def end(progress):
            if progress.stage == "write":
                os.kill(os.getpid(), {int(number)})
        files = dict(probabilities={str(tmp_path / "p.tif")!r}, confidence={str(tmp_path / "c.tif")!r})
        raster.write_map(forest, scene, {str(tmp_path / "map.tif")!r}, callback=end, **files)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == -number, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [".map.tif.unfinished"]
    if number == signal.SIGINT:
        assert "Write the same map again to go on" in done.stderr
    write(forest, scene_of(folder), tmp_path)
    assert contents(tmp_path) == expected
