"""Where the bands of a scene come from, and what they are called."""

import shutil

import numpy as np
import pytest
import rasterio
from affine import Affine
from rasterio.enums import ColorInterp
from rasters import TRANSFORM, smooth_scene, write_raster

from oldgrowth import RandomForestClassifier, raster
from oldgrowth.errors import (
    BandError,
    ComplexBandError,
    DamagedFileError,
    DuplicateBandError,
    GridError,
    MissingCRSError,
    NoDataError,
    ParameterError,
    RemoteRasterError,
    UnreadableFileError,
)

BANDS = smooth_scene(3, 12, 9)


def rows_of(scene):
    return np.concatenate([one.x.astype(np.float32) for one in scene.batches(1000, keep_bytes=True)])


def all_rows(bands):
    return bands.reshape(len(bands), -1).T.astype(np.float32)


def write_files(folder, bands=BANDS, first=9, **options):
    """A file for each band, named B9, B10, ..."""
    folder.mkdir(exist_ok=True)
    return [
        write_raster(folder / f"LC08_x_B{first + i}.TIF", band[None], **options)
        for i, band in enumerate(bands)
    ]


def virtual(path, bands, sources=None, size=(9, 12)):
    """A VRT of (file, band) pairs."""
    xml = "".join(
        f'<VRTRasterBand dataType="Byte" band="{i}"><SimpleSource><SourceFilename relativeToVRT="0">{file}'
        f"</SourceFilename><SourceBand>{band}</SourceBand></SimpleSource></VRTRasterBand>"
        for i, (file, band) in enumerate(bands, start=1)
    )
    place = ",".join(map(str, TRANSFORM.to_gdal()))
    path.write_text(
        f'<VRTDataset rasterXSize="{size[0]}" rasterYSize="{size[1]}"><SRS>EPSG:32637</SRS>'
        f"<GeoTransform>{place}</GeoTransform>{xml}</VRTDataset>"
    )
    return path


def test_a_file_for_each_band_in_a_directory_a_glob_or_a_list(tmp_path, recwarn):
    files = write_files(tmp_path / "scene")
    (tmp_path / "scene" / "LC08_x_MTL.txt").write_text("metadata")
    for source in (
        tmp_path / "scene",
        f"{tmp_path}/scene/LC08_*_B*.TIF",
        files,
        [str(file) for file in files],
    ):
        scene = raster.open_scene(source)
        assert scene.feature_names == ("B9", "B10", "B11")
        np.testing.assert_array_equal(rows_of(scene), all_rows(BANDS))
    backwards = raster.open_scene(files[::-1])  # the order of a list stays
    assert sorted(backwards.feature_names) == ["B10", "B11", "B9"] and backwards.feature_names[0] == "B11"
    chosen = raster.open_scene(tmp_path / "scene", bands=["B11", "B1*"])
    assert chosen.feature_names == ("B11", "B10")
    np.testing.assert_array_equal(rows_of(chosen), all_rows(BANDS[[2, 1]]))
    assert not recwarn.list


def test_a_vrt_of_files_and_of_vrts(tmp_path):
    files = write_files(tmp_path / "scene")
    inner = virtual(tmp_path / "inner.vrt", [(files[2], 1), (files[0], 1)])
    outer = virtual(tmp_path / "outer.vrt", [(inner, 1), (files[1], 1)])
    scene = raster.open_scene(outer)
    np.testing.assert_array_equal(rows_of(scene), all_rows(BANDS[[2, 1]]))
    watched = {entry["path"] for entry in scene.fingerprint()["files"]}
    assert watched == {str(path) for path in (outer, inner, *files)}
    files[0].unlink()
    with pytest.raises(NoDataError, match=r"refers to .*B9.TIF, which is not a local file"):
        raster.open_scene(outer)


def test_several_scenes_with_a_crs_and_an_order_of_their_own(tmp_path):
    write_files(tmp_path / "one")
    other = smooth_scene(4, 5, 6, seed=1)
    north = write_raster(tmp_path / "two.tif", other, crs="EPSG:32737", names=["B11", "B10", "more", "B9"])
    scene = raster.open_scene([tmp_path / "one", north], patch=3)
    assert scene.layer_names == ("B9", "B10", "B11")
    assert [str(layers.grid.crs) for layers in scene.scenes] == ["EPSG:32637", "EPSG:32737"]
    alone = [
        raster.open_scene(tmp_path / "one", patch=3),
        raster.open_scene(north, patch=3, bands=["B9", "B10", "B11"]),
    ]
    np.testing.assert_array_equal(rows_of(scene), np.concatenate([rows_of(one) for one in alone]))
    with pytest.raises(BandError, match=r"two.tif has no band 'B9x', which .*one.tif has. Did you mean 'B9'"):
        write_raster(tmp_path / "one.tif", BANDS, names=["B9x", "B10", "B11"])
        raster.open_scene([tmp_path / "one.tif", north])


def test_files_of_a_list_are_one_scene_if_their_bands_differ(tmp_path):
    one = write_raster(tmp_path / "one.tif", BANDS)
    two = write_raster(tmp_path / "two.tif", BANDS)
    dem = write_raster(tmp_path / "x_dem.tif", BANDS[:1])
    assert len(raster.open_scene([one, two]).scenes) == 2
    both = raster.open_scene([one, dem])
    assert len(both.scenes) == 1 and both.feature_names == ("B1", "B2", "B3", "x_dem")
    nested = raster.open_scene([[one, dem], [dem, two]])
    assert len(nested.scenes) == 2 and nested.feature_names == both.feature_names


def test_a_date_at_the_end_of_a_name_is_no_band(tmp_path):
    dem = write_raster(tmp_path / "dem_2020.tif", BANDS[:1])
    slope = write_raster(tmp_path / "slope_2020.tif", BANDS[1:2])
    elsewhere = write_raster(tmp_path / "dem_2021.tif", BANDS[:1], crs="EPSG:32737")
    scene = raster.open_scene([dem, slope])
    assert len(scene.scenes) == 1 and scene.feature_names == ("dem_2020", "slope_2020")
    assert len(raster.open_scene([dem, elsewhere]).scenes) == 2


@pytest.mark.parametrize("names", [["blue", "near infrared", "2nd"], ["gray", "gray", ""]])
def test_bands_are_named_by_description_or_number(tmp_path, names):
    scene = raster.open_scene(write_raster(tmp_path / "scene.tif", BANDS, names=names))
    assert scene.feature_names == (
        ("blue", "near_infrared", "B2nd") if names[0] == "blue" else ("B1", "B2", "B3")
    )


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("dem_2020.tif", "B1"),
        ("dem.tif", "B1"),
        ("ndvi_site2.tif", "B1"),
        ("20200131.tif", "B1"),
        ("LC08_L2SP_170055_20200131_02_T1_SR_B2.TIF", "B2"),
        ("LE07_170055_20200131_B6_VCID_1.tif", "B6"),
        ("T37NBG_20200131T081229_B8A_20m.tif", "B8A"),
        ("x_band4.tif", "band4"),
        ("x_band_4.tif", "B4"),
        ("x_nir.tif", "nir"),
    ],
)
def test_a_single_band_is_named_by_its_number_unless_its_file_is_named_like_a_band(tmp_path, file, name):
    assert raster.open_scene(write_raster(tmp_path / file, BANDS[:1])).feature_names == (name,)
    described = write_raster(tmp_path / file, BANDS[:1], names=["height"])
    assert raster.open_scene(described).feature_names == ("height",)


def test_a_forest_of_a_single_file_maps_one_with_another_date(tmp_path):
    scene = raster.open_scene(write_raster(tmp_path / "dem_2020.tif", BANDS[:1]))
    labels = write_raster(tmp_path / "labels.tif", (BANDS[:1] > 128).astype(np.uint8))
    forest = RandomForestClassifier(2, random_state=0).fit(scene.with_labels(labels))
    other = write_raster(tmp_path / "dem_2021.tif", BANDS[1:2])
    assert raster.write_map(forest, raster.scene_like(forest, other), tmp_path / "map.tif").predicted == 108


def test_an_alpha_band_and_a_mask_within_a_file_are_masks(tmp_path):
    alpha = np.full((1, 12, 9), 255, np.uint8)
    alpha[0, 3:5, 2] = 0
    path = write_raster(tmp_path / "rgba.tif", np.concatenate([BANDS, alpha]), photometric="RGB")
    with rasterio.open(path, "r+") as file:
        file.colorinterp = [ColorInterp.red, ColorInterp.green, ColorInterp.blue, ColorInterp.alpha]
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        masked = write_raster(tmp_path / "masked.tif", BANDS)
        with rasterio.open(masked, "r+") as file:
            file.write_mask(alpha[0] > 0)
    for file in (path, masked):
        scene = raster.open_scene(file)
        assert scene.n_features == 3
        np.testing.assert_array_equal(rows_of(scene), all_rows(BANDS)[alpha.ravel() > 0])


def test_the_fourth_band_of_bytes_is_no_alpha_band_if_it_varies(tmp_path):
    bands = smooth_scene(4, 12, 9)
    path = write_raster(tmp_path / "naip.tif", bands)
    with rasterio.open(path) as file:
        assert file.colorinterp[3] == ColorInterp.alpha
    np.testing.assert_array_equal(rows_of(raster.open_scene(path)), all_rows(bands))


def test_coarser_bands_join_by_nearest_neighbour(tmp_path):
    fine = write_raster(tmp_path / "a_B1.tif", BANDS[:1])
    coarse = smooth_scene(1, 4, 3, seed=2)
    thick = write_raster(tmp_path / "a_B2.tif", coarse, transform=TRANSFORM @ Affine.scale(3))
    wide = smooth_scene(1, 3, 3, seed=3)  # covers more than the scene
    write_raster(tmp_path / "a_B3.tif", wide, transform=TRANSFORM @ Affine.scale(4))
    repeated = [np.kron(coarse[0], np.ones((3, 3))), np.kron(wide[0], np.ones((4, 4)))[:12, :9]]
    expected = all_rows(np.stack([BANDS[0], *repeated]))
    scene = raster.open_scene(tmp_path)
    np.testing.assert_array_equal(rows_of(scene), expected)
    scene_of_lines = raster.open_scene(tmp_path, patch=3)
    np.testing.assert_array_equal(rows_of(scene_of_lines)[:, 12:15], expected)  # centres
    with pytest.raises(
        GridError,
        match=r"a_B1.tif does not fit the grid of .*a_B2.tif. It has 9 x 12 pixels of 30 x 30 "
        r"from .*; .* has 3 x 4 pixels of 90 x 90",
    ):
        raster.open_scene([thick, fine])


@pytest.mark.parametrize(
    "transform",
    [
        Affine(30, 0, 820_000, 0, 30, 830_000),  # south up
        Affine(0, 30, 820_000, 30, 0, 830_000),  # rotated by 90 degrees
        Affine.translation(8e5, 8e5) @ Affine.rotation(20) @ Affine.scale(30, -30),
    ],
)
def test_any_transform(tmp_path, transform):
    write_raster(tmp_path / "a_B1.tif", BANDS[:1], transform=transform)
    write_raster(tmp_path / "a_B2.tif", BANDS[1:2, ::2, ::2][:, :, :5], transform=transform @ Affine.scale(2))
    scene = raster.open_scene(tmp_path)
    np.testing.assert_array_equal(rows_of(scene)[:, 0], BANDS[0].ravel())
    np.testing.assert_array_equal(rows_of(scene)[:, 1].reshape(12, 9)[::2, ::2], BANDS[1, ::2, ::2])
    assert ("rotated" in repr(scene)) == (transform.b != 0)


def test_grids_that_do_not_fit(tmp_path):
    write_raster(tmp_path / "a_B1.tif", BANDS[:1])
    others = {
        "shifted": {"transform": TRANSFORM @ Affine.translation(0.5, 0)},
        "another CRS": {"crs": "EPSG:32638"},
        "no CRS": {"crs": None},
    }
    for options in others.values():
        write_raster(tmp_path / "a_B2.tif", BANDS[:1], **options)
        with pytest.raises(
            GridError,
            match=r"a_B2.tif does not fit the grid of .*a_B1.tif. It has .* several scenes, give",
        ):
            raster.open_scene(tmp_path)
    write_raster(tmp_path / "a_B2.tif", BANDS[:1, :6])
    with pytest.raises(GridError, match=r"9 x 6 pixels"):
        raster.open_scene(tmp_path)
    assert raster.open_scene(tmp_path, bands="B1").n_features == 1  # others do not matter
    write_raster(tmp_path / "a_B1.tif", BANDS[:1], crs=None)
    with pytest.raises(MissingCRSError, match=r"a_B1.tif has no coordinate reference system"):
        raster.open_scene(tmp_path, bands="B1")


def test_sources_that_are_no_scene(tmp_path, monkeypatch):
    path = write_raster(tmp_path / "scene.tif", BANDS)
    with pytest.raises(NoDataError, match=r"no file matches"):
        raster.open_scene(tmp_path / "none*.tif")
    with pytest.raises(NoDataError, match=r"list of scenes contains no data"):
        raster.open_scene([])
    for remote in ("https://example.org/scene.tif", "/vsizip/a.zip/scene.tif", ["s3://b/a.tif"]):
        with pytest.raises(RemoteRasterError, match=r"is not a local file"):
            raster.open_scene(remote)
    with pytest.raises(ParameterError, match=r"source must be"):
        raster.open_scene(BANDS)
    (tmp_path / "text.tif").write_text("no raster")
    with pytest.raises(DamagedFileError, match=r"text.tif cannot be read as a raster"):
        raster.open_scene(tmp_path / "text.tif")
    (tmp_path / "text.tif").unlink()
    shutil.copy(path, tmp_path / "again.tif")
    with pytest.raises(
        DuplicateBandError, match=r"two bands named 'B1', in .*again.tif and .*scene.tif.*as a list"
    ):
        raster.open_scene(tmp_path)

    def denied(*args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("oldgrowth.datasets.files.SourceFile.open", denied)
    with pytest.raises(UnreadableFileError, match=r"you need permission"):
        raster.open_scene(path)


def test_bands_that_are_missing_or_complex(tmp_path):
    path = write_raster(tmp_path / "scene.tif", BANDS, names=["red", "green", "swir"])
    with pytest.raises(
        BandError, match=r"scene.tif has no band 'gren'. Did you mean 'green'\? Its bands are 'red'"
    ):
        raster.open_scene(path, bands=["red", "gren"])
    radar = write_raster(tmp_path / "radar.tif", (BANDS * 1j).astype(np.complex64))
    with pytest.raises(ComplexBandError, match=r"Band 'B1' of .*radar.tif has complex numbers"):
        raster.open_scene(radar)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"patch": patch} for patch in (0, 2, -1, 1.0, "3", True, 19)),
        *({"bands": bands} for bands in ([], 3, [1])),
        *({"nodata": value} for value in ("0", True, [0], 300, 0.5, float("inf"))),
        *({"extra": extra} for extra in ("B1 + B2", ["B1"], {"B1": "B2"}, {"a b": "B1"}, {3: "B1"})),
    ],
)
def test_wrong_parameters(tmp_path, wrong):
    path = write_raster(tmp_path / "scene.tif", BANDS)
    with pytest.raises(ParameterError, match=f"{next(iter(wrong))} must be"):
        raster.open_scene(path, **wrong)


@pytest.mark.parametrize("source", [[None], [3], [[None]], ["scene.tif", None], b"scene.tif", [b"scene.tif"]])
def test_sources_that_are_no_paths(source):
    with pytest.raises(ParameterError, match=r"source must be a path, a glob, or a list of them; got"):
        raster.open_scene(source)


def test_a_band_that_is_named_twice(tmp_path):
    path = write_raster(tmp_path / "scene.tif", BANDS)
    with pytest.raises(ParameterError, match=r"bands must be different names .*; got \['B1', 'B1'\]"):
        raster.open_scene(path, bands=["B1", "B1"])
    assert raster.open_scene(path, bands=["B2", "B*"]).feature_names == ("B2", "B1", "B3")
