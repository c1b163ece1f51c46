"""What reading a scene takes is what a fit counts on: measured in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rasters import smooth_scene, write_raster

import oldgrowth
from oldgrowth import raster
from oldgrowth.errors import MemoryLimitError
from oldgrowth.planning.execution import refuse_at_start
from oldgrowth.planning.planner import Planner
from oldgrowth.rows.streamed_rows import StreamedRows
from oldgrowth.system.limits import limits_of

MEASURE = """
import json, sys
from pathlib import Path
import numpy as np
from oldgrowth import raster
from oldgrowth.datasets.batches import Span
from oldgrowth.system.memory import peak_memory, resident_memory

def read(scene):
    for piece in scene._pieces(1000, Span(0), ()):
        piece.fill(np.empty((1, scene.n_features), np.float32), 0)
        del piece

first, *others = sys.argv[1:]
read(raster.open_scene(first, patch=3))  # what is imported and allocated once
for path in others:
    scene = raster.open_scene(path, patch=3)
    Path("/proc/self/clear_refs").write_text("5")
    began = resident_memory()
    read(scene)
    print(json.dumps([peak_memory() - began, scene.reading_bytes]))
"""


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the peak of a process cannot be reset"
)
def test_memory_for_reading(tmp_path):
    small = write_raster(tmp_path / "small.tif", smooth_scene(3, 20, 20))
    pixels = np.tile(smooth_scene(9, 200, 200), (1, 10, 10))
    tiles = {"tiled": True, "blockxsize": 64, "blockysize": 64, "compress": "none"}
    files = [
        write_raster(tmp_path / "tiles.tif", pixels, **tiles),
        write_raster(tmp_path / "bands.tif", pixels, **tiles, interleave="band"),
        write_raster(tmp_path / "lines.tif", pixels.reshape(9, 20, 200_000), compress="none"),
    ]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, small, *files], capture_output=True, text=True, check=True
    )
    for line in done.stdout.splitlines():
        measured, counted = json.loads(line)
        assert measured < 1.05 * counted + 2e6


def test_bytes_need_no_tables_of_all_codes(tmp_path):
    """The limit that is named has room for as many values as the type has, not for as many as codes hold."""
    named = {}
    for dtype in (np.uint8, np.uint16):
        pixels = smooth_scene(3, 300, 300).astype(dtype)
        bands = write_raster(tmp_path / f"{dtype.__name__}.tif", pixels)
        labels = write_raster(tmp_path / "labels.tif", pixels[:1] // 64)
        rows = StreamedRows(raster.open_scene(bands, patch=5).with_labels(labels), classification=True)
        params = oldgrowth.RandomForestClassifier(memory_limit=1000, random_state=0).get_params()
        with pytest.raises(MemoryLimitError) as refused:
            refuse_at_start(Planner(params, False, True), rows, limits_of(params))
        named[dtype] = refused.value.least
    assert named[np.uint16] - named[np.uint8] > 75 * 10**6  # 75 features, of which each has a megabyte
