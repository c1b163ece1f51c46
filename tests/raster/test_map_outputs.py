"""Files of maps: refused before anything is written, complete or not there, without files of earlier maps."""

import errno
import os
import resource
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
import rasterio
import shapely
from rasters import smooth_scene, write_raster
from vectors import on_map, write_vectors

import oldgrowth
from oldgrowth import RandomForestClassifier, raster
from oldgrowth.errors import (
    MapInUseError,
    MapTooLargeError,
    OutputError,
    ParameterError,
    SameFileError,
    UnfinishedMapError,
    UnwritableFileError,
)
from oldgrowth.raster.maps import cog, map_outputs
from oldgrowth.system.limits import DiskSpace


@pytest.fixture
def made(tmp_path):
    """A forest and a scene of two files, of which one is a VRT of a third."""
    bands = smooth_scene(2, 40, 50)
    folder = tmp_path / "scene"
    folder.mkdir()
    for i, band in enumerate(bands, start=1):
        write_raster(folder / f"x_B{i}.tif", band[None])
    labels = write_raster(tmp_path / "labels.tif", (bands[:1] > 128).astype(np.uint8) + 1)
    scene = raster.open_scene(folder)
    forest = RandomForestClassifier(4, random_state=0).fit(scene.with_labels(labels))
    forest.save(tmp_path / "forest.og")
    return oldgrowth.load(tmp_path / "forest.og"), scene, tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_files_that_are_read_or_written_twice_are_refused(made):
    forest, scene, folder = made
    band, before = folder / "scene" / "x_B2.tif", contents(folder)
    (folder / "link.tif").symlink_to(band)
    os.link(band, folder / "hard.tif")
    before |= contents(folder)
    good = folder / "map.tif"
    cases = [
        (good, {"probabilities": folder / "scene" / ".." / "map.tif"}, "also the file of the probabilities"),
        (good, {"probabilities": folder / "p.tif", "confidence": folder / "p.tif"}, "of the confidence"),
        (band, {}, "path.* is one of the files of the scene"),
        (folder / "link.tif", {}, "one of the files of the scene"),
        (folder / "hard.tif", {}, "one of the files of the scene"),
        (good, {"confidence": band}, "confidence.* is one of the files of the scene"),
        (folder / "forest.og", {}, "the file of the forest"),
    ]
    for path, options, what in cases:
        with pytest.raises(SameFileError, match=what):
            raster.write_map(forest, scene, path, **options)
    assert contents(folder) == before


def test_the_files_of_labels_are_refused(made):
    forest, scene, folder = made
    square = [on_map(shapely.box(5, 5, 30, 30))]
    polygons = write_vectors(folder / "polygons.gpkg", square, kind=["forest"])
    shapes = write_vectors(folder / "shapes.shp", square, kind=["forest"])
    before = contents(folder)
    cases = [
        (folder / "labels.tif", "labels.tif"),
        (polygons, "polygons.gpkg"),
        (shapes, "shapes.shp"),
        (shapes, "shapes.dbf"),
        (shapes, "shapes.prj"),
    ]
    for labels, name in cases:
        labelled = scene.with_labels(labels)
        with pytest.raises(SameFileError, match=r"path.* is one of the files of the scene's labels"):
            raster.write_map(forest, labelled, folder / name)
        with pytest.raises(SameFileError, match=r"confidence.* is one of the files of the scene's labels"):
            raster.write_map(forest, labelled, folder / "map.tif", confidence=folder / name)
    train, _ = scene.with_labels(folder / "labels.tif", per_class=200).split_blocks(300)
    with pytest.raises(SameFileError, match="labels"):
        raster.write_map(forest, train, folder / "labels.tif")
    assert contents(folder) == before


@pytest.mark.parametrize("name", ["m.png", "m.jp2", "m", "m.tif.gz"])
def test_names_of_other_formats_are_refused(made, name):
    """The files are GeoTIFFs, whatever they are called."""
    forest, scene, folder = made
    before = contents(folder)
    for path, options in ((folder / name, {}), (folder / "map.tif", {"confidence": folder / name})):
        with pytest.raises(ParameterError, match=r"(path|confidence) must be a file that ends in .tif"):
            raster.write_map(forest, scene, path, **options)
    assert contents(folder) == before
    raster.write_map(forest, scene, folder / "map.TIFF")


def test_what_is_not_a_regular_file_is_refused(made):
    forest, scene, folder = made
    os.mkfifo(folder / "pipe.tif")
    with pytest.raises(OutputError, match="a pipe"):
        raster.write_map(forest, scene, folder / "map.tif", confidence=folder / "pipe.tif")
    with pytest.raises(ParameterError, match="the path of a file, not of a directory"):
        raster.write_map(forest, scene, folder)
    assert not list(folder.glob("*map*"))


def test_directories_must_exist_and_be_writable(made, monkeypatch):
    forest, scene, folder = made
    with pytest.raises(UnwritableFileError, match=r"the directory .*nowhere does not exist"):
        raster.write_map(forest, scene, folder / "map.tif", confidence=folder / "nowhere" / "c.tif")
    with pytest.raises(UnwritableFileError, match="Not a directory"):
        raster.write_map(forest, scene, folder / "labels.tif" / "map.tif")
    monkeypatch.setattr(map_outputs.os, "access", lambda *_: False)  # as for anyone but root
    with pytest.raises(UnwritableFileError, match="Permission denied"):
        raster.write_map(forest, scene, folder / "map.tif")
    assert not list(folder.glob("*map*")) and not (folder / "nowhere").exists()


def test_a_map_replaces_a_file_with_what_belonged_to_it(made):
    forest, scene, folder = made
    path = folder / "map.tif"
    raster.write_map(forest, scene, path)
    expected = contents(folder)
    path.write_bytes(b"old")
    path.chmod(0o640)
    for suffix in (".aux.xml", ".ovr", ".msk"):
        (folder / f"map.tif{suffix}").write_bytes(b"of the old one")
    raster.write_map(forest, scene, path)
    assert contents(folder) == expected
    assert path.stat().st_mode & 0o777 == 0o640
    (folder / "there").mkdir()
    (folder / "there" / "target.tif").write_bytes(b"old")
    (folder / "named.tif").symlink_to(folder / "there" / "target.tif")
    raster.write_map(forest, scene, folder / "named.tif")
    assert (folder / "named.tif").is_symlink()
    assert (folder / "there" / "target.tif").read_bytes() == expected[path]


def test_long_names(made):
    forest, scene, folder = made
    path = folder / ("m" * 240 + ".tif")
    raster.write_map(forest, scene, path)
    with rasterio.open(path) as file:
        assert file.shape == (40, 50)


def test_only_one_process_writes_a_map(made):
    forest, scene, folder = made
    refused = []

    def again(_):
        if not refused:
            with pytest.raises(MapInUseError, match=r"map\.tif is being written by another process") as error:
                raster.write_map(forest, scene, folder / "map.tif")
            refused.append(error)

    raster.write_map(forest, scene, folder / "map.tif", callback=again)
    assert refused and (folder / "map.tif").exists()


def test_a_disk_that_is_too_small_is_refused_at_once(made, monkeypatch):
    forest, scene, folder = made
    monkeypatch.setattr(map_outputs, "disk_space", lambda _: DiskSpace(10**9, 1000))
    before = contents(folder)
    with pytest.raises(MapTooLargeError, match=r"needs 2 kB of disk .* 1 kB are free"):
        raster.write_map(forest, scene, folder / "map.tif")
    assert contents(folder) == before


@contextmanager
def files_of_at_most(size):
    """As on a full disk, writing fails behind this number of bytes."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


@pytest.mark.parametrize("while_copying", [False, True])
def test_a_full_disk_is_a_clear_error_and_the_map_is_resumed(made, monkeypatch, while_copying):
    forest, scene, folder = made
    path, files = folder / "map.tif", {"confidence": folder / "c.tif"}
    raster.write_map(forest, scene, path, **files)
    expected = contents(folder)
    path.write_bytes(b"old")
    copy = cog.gdal_copy

    def copy_to_a_full_disk(*args, **options):
        with files_of_at_most(600):
            copy(*args, **options)

    what = "" if while_copying else "File too large"
    with monkeypatch.context() as patch, nullcontext() if while_copying else files_of_at_most(600):
        if while_copying:
            patch.setattr(cog, "gdal_copy", copy_to_a_full_disk)
        with pytest.raises(UnfinishedMapError, match=rf"{what}.*is unchanged.*\.unfinished") as error:
            raster.write_map(forest, scene, path, **files)
    assert error.value.errno == (errno.EIO if while_copying else errno.EFBIG)
    assert path.read_bytes() == b"old"
    raster.write_map(forest, scene, path, **files)
    assert contents(folder) == expected


def test_a_copy_that_differs_is_an_error(made, monkeypatch):
    forest, scene, folder = made
    copy = cog.gdal_copy

    def copy_and_change(virtual, finished, **options):
        copy(virtual, finished, **options)
        with rasterio.open(finished, "r+", IGNORE_COG_LAYOUT_BREAK="YES") as file:
            file.write(file.read() ^ 3)

    with monkeypatch.context() as patch:
        patch.setattr(cog, "gdal_copy", copy_and_change)
        with pytest.raises(UnfinishedMapError, match="does not have the pixels that were written"):
            raster.write_map(forest, scene, folder / "map.tif")
    assert not (folder / "map.tif").exists()


def test_names_too_long_for_the_files_beside_a_map(made):
    forest, scene, folder = made
    before = contents(folder)
    for length in (248, 254, 255):
        for options in ({}, {"confidence": folder / ("c" * (length - 4) + ".tif")}):
            path = folder / ("map.tif" if options else "m" * (length - 4) + ".tif")
            with pytest.raises(
                UnwritableFileError, match=rf"too long: with .aux.xml, it has {length + 8} bytes"
            ):
                raster.write_map(forest, scene, path, **options)
    assert contents(folder) == before and not list(folder.glob(".*"))
    longest = folder / ("m" * 243 + ".tif")
    raster.write_map(forest, scene, longest)
    assert longest.exists() and not list(folder.glob(".*"))
