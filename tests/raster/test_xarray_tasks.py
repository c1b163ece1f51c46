"""Tasks of predict_xarray have the path of a model file, not the forest, and run on every scheduler."""

import os
import pickle
import subprocess
import sys

import dask
import numpy as np
import pytest
from xarray_world import World

import oldgrowth
from oldgrowth import RandomForestClassifier, raster
from oldgrowth.errors import SharedModelError
from oldgrowth.estimators import shared_model


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return World(tmp_path_factory.mktemp("world"))


class TestTheModelIsNotInTheGraph:
    def test_the_size_of_the_graph_does_not_depend_on_the_forest(self, world, tmp_path):
        large = World(tmp_path, estimators=200)
        data = world.opened(chunks={"y": 10, "x": 10})
        sizes = []
        for forest in (world.forest, large.forest):
            graph = raster.predict_xarray(forest, data).__dask_graph__()
            sizes.append(len(pickle.dumps(dict(graph))))
        assert large.forest.forest_.nbytes > 20 * world.forest.forest_.nbytes
        assert abs(sizes[1] - sizes[0]) < 0.02 * sizes[0] < large.forest.forest_.nbytes / 4

    def test_the_file_of_a_forest_is_opened_once(self, world, tmp_path, monkeypatch):
        opened = []
        real = shared_model.read_model
        monkeypatch.setattr(shared_model, "read_model", lambda path: opened.append(path) or real(path))
        monkeypatch.setattr(shared_model, "_process", shared_model._Process())
        forest = pickle.loads(pickle.dumps(world.forest))
        forest.save(tmp_path / "forest.og")
        data = world.opened(chunks={"y": 5, "x": 25})
        for model in (forest, oldgrowth.load(tmp_path / "forest.og"), str(tmp_path / "forest.og")):
            with dask.config.set(scheduler="threads", num_workers=4):
                np.testing.assert_array_equal(raster.predict_xarray(model, data).values, world.map)
        assert opened == [str(tmp_path / "forest.og")]
        forest.save(tmp_path / "other.og")
        raster.predict_xarray(forest, data).compute(scheduler="threads")
        assert opened == [str(tmp_path / "forest.og"), str(tmp_path / "other.og")]

    def test_a_forest_that_is_gone_or_another_one_is_an_error(self, world, tmp_path, monkeypatch):
        monkeypatch.setattr(shared_model, "_process", shared_model._Process())
        path = tmp_path / "forest.og"
        forest = pickle.loads(pickle.dumps(world.forest))
        forest.save(path)
        result = raster.predict_xarray(forest, world.opened(chunks={"y": 20}))
        path.rename(tmp_path / "elsewhere.og")
        with pytest.raises(
            SharedModelError, match=r"forest.og, .* does not exist on .* Save the forest where"
        ):
            result.compute(scheduler="threads")
        RandomForestClassifier(2).fit([[1], [2]], [1, 2]).save(path)
        with pytest.raises(SharedModelError, match="was replaced by another forest"):
            result.compute(scheduler="threads")
        again = raster.predict_xarray(forest, world.opened(chunks={"y": 20}))  # from a temporary file
        np.testing.assert_array_equal(again.values, world.map)

    @pytest.mark.slow
    def test_a_forest_that_was_not_saved_is_in_a_temporary_file_until_the_process_ends(self, world, tmp_path):
        world.forest.save(tmp_path / "forest.og")
        code = f"""
import pickle, oldgrowth, rioxarray
from pathlib import Path
from oldgrowth import raster
from oldgrowth.estimators.shared_model import shared
forest = pickle.loads(pickle.dumps(oldgrowth.load({str(tmp_path / "forest.og")!r})))
data = rioxarray.open_rasterio({str(world.file)!r}, chunks={{"y": 20}})
lazy = [raster.predict_xarray(forest, data) for _ in range(2)]
del forest
print(*(int(one.sum()) for one in lazy))
print(*Path({str(tmp_path)!r}).rglob("shared-*.og"))
"""
        here = {**os.environ, "TMPDIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=here)
        assert done.returncode == 0, done.stderr
        sums, files = done.stdout.splitlines()
        assert sums == f"{world.map.sum()} {world.map.sum()}" and len(files.split()) == 1
        assert not list(tmp_path.glob("oldgrowth-spill-*"))


@pytest.mark.slow
def test_processes(world):
    data = world.opened(chunks={"y": 21})
    with dask.config.set(scheduler="processes", num_workers=1):
        np.testing.assert_array_equal(raster.predict_xarray(world.forest, data).values, world.map)


@pytest.mark.slow
def test_distributed(world, tmp_path):
    distributed = pytest.importorskip("distributed")
    settings = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    with distributed.LocalCluster(**settings, local_directory=tmp_path) as cluster, cluster.get_client():
        data = world.opened(chunks={"y": 11, "x": 17, "band": 1})
        result = raster.predict_xarray(world.forest, data, output="margin")
        np.testing.assert_array_equal(result.persist().compute().values, world.margin)
