"""predict_xarray: pixel for pixel what `write_map` writes, whatever the chunks and the scheduler."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import rasterio
import rioxarray
import xarray
from rasters import TRANSFORM, UTM, smooth_scene, write_raster
from xarray_world import HEIGHT, NAMES, WIDTH, World

from oldgrowth import RandomForestClassifier, RandomForestRegressor, raster
from oldgrowth.errors import (
    BandError,
    DataError,
    MissingExtraError,
    ParameterError,
    RecipeError,
)
from oldgrowth.messages.warnings import LeftOutWarning
from oldgrowth.raster.scenes import scene as scene_module


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return World(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    return World(tmp_path_factory.mktemp("wide"), patch=5)


def placed(result, data):
    """Assert that the coordinates of a result are those of the data."""
    assert result.dims[-2:] == ("y", "x")
    assert result.rio.crs == data.rio.crs and result.rio.transform() == data.rio.transform() == TRANSFORM
    for name in ("x", "y", "spatial_ref"):
        xarray.testing.assert_identical(result[name].variable, data[name].variable)


@pytest.mark.parametrize(
    ("which", "chunks"),
    [
        ("world", None),
        ("world", {"band": 1, "y": 7, "x": 11}),
        ("world", {"y": HEIGHT, "x": 1}),
        ("wide", None),
        ("wide", {"band": 2, "y": (1, 17, 2, 3, 1, 1, 16), "x": WIDTH}),
        ("wide", {"band": -1, "y": 1, "x": 26}),
        ("wide", {"y": 40, "x": 52}),
    ],
)
def test_the_result_is_the_map_for_all_chunks(request, monkeypatch, which, chunks):
    world = request.getfixturevalue(which)
    monkeypatch.setattr(scene_module, "STRIP_PIXELS", 300)
    data = world.opened() if chunks is None else world.opened().chunk(chunks)
    result = raster.predict_xarray(world.forest, data)
    assert (result.chunks is None) == (chunks is None)
    np.testing.assert_array_equal(result.values, world.map)
    assert result.dtype == world.map.dtype and result.rio.nodata == world.nodata
    placed(result, data)
    if chunks is not None:
        assert result.chunks == data.chunks[1:]


@pytest.mark.parametrize("size", [(1, WIDTH), (2, 3), (1, 1)])
def test_a_scene_smaller_than_a_patch(wide, size):
    data = wide.opened()[:, : size[0], : size[1]]
    whole = raster.predict_xarray(wide.forest, data.load())
    np.testing.assert_array_equal(raster.predict_xarray(wide.forest, data.chunk(1)).values, whole.values)
    assert (whole.values != whole.rio.nodata).any()


def test_probabilities_and_confidence(world):
    data = world.opened(chunks={"x": 20, "y": 9})
    expected = np.concatenate([batch.x for batch in world.scene.batches(500)])
    expected = world.forest.predict_proba(pd.DataFrame(expected, columns=world.forest.feature_names_in_))
    for one in (data, data.load()):
        result = raster.predict_xarray(world.forest, one, output="probabilities")
        assert result.dims == ("class", "y", "x") and result.name == "probability"
        assert result["class"].values.tolist() == world.forest.classes_.tolist()
        np.testing.assert_array_equal(result.values[:, world.valid].T, expected.astype(np.float32))
        assert np.isnan(result.values[:, ~world.valid]).all() and np.isnan(result.rio.nodata)
        placed(result, data)
        margin = raster.predict_xarray(world.forest, one, output="margin")
        np.testing.assert_array_equal(margin.values, world.margin)
    with pytest.raises(ParameterError, match=r"output must be one of .*probabilities.*; got 'map'"):
        raster.predict_xarray(world.forest, data, output="map")


def test_a_dataset_of_bands_with_other_types_and_nodata(world):
    bands = world.bands.astype(np.int16)
    bands[:, ~world.valid] = -1
    data = xarray.Dataset(
        {
            "green": (("y", "x"), bands[1]),
            "near infrared": (("y", "x"), np.where(world.valid, world.bands[2], np.nan)),
            "red": (("y", "x"), world.bands[0]),
            "when": (("time",), np.array(["2026-01-01"], dtype="datetime64[ns]")),
        },
        coords=world.opened().drop_vars("band").coords,
    ).rio.write_crs(UTM)
    data["green"].attrs["_FillValue"] = -1
    data["red"].attrs["_FillValue"] = 0
    mixed = data.copy()
    mixed["red"] = data["red"].chunk({"y": 8, "x": 15})
    mixed["green"] = data["green"].chunk({"y": 20, "x": 5})
    for one in (data, mixed, data.chunk({"y": 10, "x": 9}), data.expand_dims("band", axis=0)):
        result = raster.predict_xarray(world.forest, one)
        np.testing.assert_array_equal(result.values, world.map)
        placed(result, data)


def test_variables_of_a_file_are_known_by_what_the_file_calls_them(world, tmp_path):
    data = world.opened(band_as_variable=True, chunks={"y": 10})
    assert "band_1" in data
    np.testing.assert_array_equal(raster.predict_xarray(world.forest, data).values, world.map)
    nameless = write_raster(tmp_path / "nameless.tif", world.bands, nodata=0)
    scene = raster.open_scene(nameless)
    model = RandomForestClassifier(2, random_state=0).fit(
        scene.with_labels(world.file.with_name("labels.tif"))
    )
    raster.write_map(model, scene, tmp_path / "map.tif")
    expected = rioxarray.open_rasterio(tmp_path / "map.tif").values[0]
    for as_variable in (True, False):
        data = rioxarray.open_rasterio(nameless, band_as_variable=as_variable)
        np.testing.assert_array_equal(raster.predict_xarray(model, data).values, expected)


def test_bands_are_matched_by_name_in_any_order(world):
    data = world.opened()
    for one in (data[::-1], data.assign_coords(band=NAMES)[[1, 2, 0]], data.transpose("x", "band", "y")):
        result = raster.predict_xarray(world.forest, one)
        np.testing.assert_array_equal(result.transpose("y", "x").values, world.map)
        assert result.dims == tuple(dim for dim in one.dims if dim != "band")


def test_a_single_band_needs_no_dimension_of_bands(world):
    frame = pd.DataFrame({"red": world.bands[0].ravel()})
    model = RandomForestClassifier(2, random_state=0).fit(frame, frame["red"] // 90 + 1)
    expected = np.where(world.valid, model.predict(frame).reshape(HEIGHT, WIDTH), 0)
    band = world.opened(chunks={"y": 20})[0].rename("red")
    for one in (band, band.T.load(), band.to_dataset()):
        result = raster.predict_xarray(model, one)
        np.testing.assert_array_equal(result.transpose("y", "x").values, expected)
    assert result.coords["band"] == 1


def test_scale_and_offset(tmp_path):
    bands = smooth_scene(2, 20, 30).astype(np.int16)
    file = write_raster(tmp_path / "scaled.tif", bands, nodata=7)
    with rasterio.open(file, "r+") as raw:
        raw.scales, raw.offsets = (0.5, 0.01), (-3.0, 2.0)
    scene = raster.open_scene(file, patch=3)
    labels = write_raster(tmp_path / "labels.tif", (bands[:1] // 60 + 1).astype(np.uint8))
    model = RandomForestClassifier(4, random_state=0).fit(scene.with_labels(labels))
    raster.write_map(model, scene, tmp_path / "map.tif")
    expected = rioxarray.open_rasterio(tmp_path / "map.tif").values[0]
    with pytest.warns(UserWarning, match="differ across bands"):
        data = rioxarray.open_rasterio(file)
    np.testing.assert_array_equal(raster.predict_xarray(model, data).values, expected)
    np.testing.assert_array_equal(raster.predict_xarray(model, data[::-1].chunk(7)).values, expected)
    with pytest.warns(UserWarning, match="differ across bands"):
        scaled = rioxarray.open_rasterio(file, mask_and_scale=True)
    assert scaled.dtype.kind == "f"
    assert (raster.predict_xarray(model, scaled).values != expected).mean() < 0.01  # rounded otherwise
    del data.attrs["scales"], data.attrs["offsets"]
    with pytest.raises(RecipeError, match=r"scale and offset of band 'B1' is not in the file, and was 0\.5"):
        raster.predict_xarray(model, data)


def test_the_nodata_value_of_the_data_the_training_or_the_caller(tmp_path):
    bands = smooth_scene(2, 20, 30)
    bands[:, 3:5], bands[:, 8:11] = 0, 200
    scene = raster.open_scene(write_raster(tmp_path / "scene.tif", bands), nodata=0)
    labels = write_raster(tmp_path / "labels.tif", (bands[:1] // 60 + 1).astype(np.uint8))
    model = RandomForestClassifier(2, random_state=0).fit(scene.with_labels(labels))
    data = rioxarray.open_rasterio(tmp_path / "scene.tif")
    for one, options, lines in (
        (data, {}, [3, 4]),
        (data.rio.write_nodata(200), {}, [8, 9, 10]),
        (data.rio.write_nodata(0), {"nodata": 200}, [8, 9, 10]),
        (data, {"nodata": 300}, []),
    ):
        result = raster.predict_xarray(model, one, **options)
        assert np.flatnonzero((result.values == 0).all(axis=1)).tolist() == lines


def test_masks(tmp_path):
    bands = smooth_scene(2, 20, 30)
    quality = np.random.default_rng(1).integers(0, 8, (1, 20, 30)).astype(np.uint8)
    folder = tmp_path / "scene"
    folder.mkdir()
    write_raster(folder / "x_B1.tif", bands[:1])
    write_raster(folder / "x_B2.tif", bands[1:])
    write_raster(folder / "x_QA.tif", quality)
    scene = raster.open_scene(folder, patch=3, mask=("*QA.tif", "bits 0,2"))
    labels = write_raster(tmp_path / "labels.tif", (bands[:1] // 60 + 1).astype(np.uint8))
    model = RandomForestClassifier(4, random_state=0).fit(scene.with_labels(labels))
    raster.write_map(model, scene, tmp_path / "map.tif")
    expected = rioxarray.open_rasterio(tmp_path / "map.tif").values[0]
    assert ((expected == 0) == ((quality[0] & 5) != 0)).all()
    variables = {"B1": bands[0], "B2": bands[1], "QA": quality[0]}
    data = xarray.Dataset({name: (("y", "x"), values) for name, values in variables.items()})
    for mask in ("QA", ("QA", "bits 0,2"), ("QA", "values 1,3,4,5,6,7")):
        for one in (data, data.chunk({"x": 7, "y": 6})):
            np.testing.assert_array_equal(raster.predict_xarray(model, one, mask=mask).values, expected)
    stacked = data.to_dataarray("band").chunk({"x": 7})
    np.testing.assert_array_equal(raster.predict_xarray(model, stacked, mask="QA").values, expected)
    with pytest.raises(BandError, match=r"has no band 'clouds'\. Its bands are 'B1', 'B2' and 'QA'"):
        raster.predict_xarray(model, data, mask="clouds")
    model.recipe_["mask"] = None
    with pytest.raises(
        ParameterError, match=r"mask must be a band and a rule, such as \('QA', 'bits 1,3,4'\)"
    ):
        raster.predict_xarray(model, data, mask="QA")


def test_a_warning_of_pixels_that_training_left_out(tmp_path):
    bands = smooth_scene(2, 20, 30)
    write_raster(tmp_path / "QA.tif", bands[:1])
    file = write_raster(tmp_path / "scene.tif", bands)
    scene = raster.open_scene(file, nodata=0, mask=(str(tmp_path / "QA.tif"), "values 1,2"))
    labels = write_raster(tmp_path / "labels.tif", (bands[:1] // 60 + 1).astype(np.uint8))
    model = RandomForestClassifier(2, random_state=0).fit(scene.with_labels(labels))
    data = rioxarray.open_rasterio(file)
    with pytest.warns(LeftOutWarning, match=r"no mask, .*'values 1,2'\): .* mask=False") as found:
        raster.predict_xarray(model, data)
    assert len(found) == 1 and found[0].filename == __file__
    other = data.rio.write_nodata(7)
    with pytest.warns(LeftOutWarning, match=r"nodata value 7 in band 'B1', .*Give nodata=0") as found:
        raster.predict_xarray(model, other, mask=False)
    assert len(found) == 1 and found[0].filename == __file__
    write_raster(tmp_path / "tagged.tif", bands, nodata=0)
    tagged = rioxarray.open_rasterio(tmp_path / "tagged.tif", masked=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeftOutWarning)
        raster.predict_xarray(model, data, mask=False)
        raster.predict_xarray(model, data, mask=("B1", "values 3"))
        raster.predict_xarray(model, other, mask="B1", nodata=7)
        raster.predict_xarray(model, tagged, mask=False)


def test_lines_from_south_to_north_have_the_same_patches(world):
    data = world.opened(chunks={"y": 12, "x": 20})
    result = raster.predict_xarray(world.forest, data.isel(y=slice(None, None, -1)))
    assert result.y.values[0] < result.y.values[-1]
    np.testing.assert_array_equal(result.values[::-1], world.map)


def test_text_classes_and_values_of_a_regression(world, tmp_path):
    frame = pd.DataFrame({"green": world.bands[1].ravel(), "red": world.bands[0].ravel()})
    labels = np.array(["bare soil", "water"])[(frame["red"] > 120).astype(int)]
    model = RandomForestClassifier(4, random_state=0).fit(frame, labels)
    data = world.opened(chunks={"y": 10})
    result = raster.predict_xarray(model, data)
    expected = 1 + np.searchsorted(model.classes_, model.predict(frame)).reshape(HEIGHT, WIDTH)
    np.testing.assert_array_equal(result.values, np.where(world.valid, expected, 0))
    assert result.attrs["flag_meanings"] == "bare_soil water" and result.attrs["flag_values"].tolist() == [
        1,
        2,
    ]
    assert result.attrs["class_names"] == ["bare soil", "water"]
    result.rio.to_raster(tmp_path / "map.tif")
    with rasterio.open(tmp_path / "map.tif") as file:
        assert (file.nodata, file.crs, file.transform) == (0, UTM, TRANSFORM)
    values = RandomForestRegressor(4, random_state=0).fit(frame.to_numpy(), frame["red"])
    result = raster.predict_xarray(values, data[[1, 0]])
    expected = values.predict(frame.to_numpy()).astype(np.float32).reshape(HEIGHT, WIDTH)
    np.testing.assert_array_equal(result.values, np.where(world.valid, expected, np.nan))
    with pytest.raises(
        DataError, match="has 3 bands, but the forest was trained on 2 features without names"
    ):
        raster.predict_xarray(values, data)
    with pytest.raises(ParameterError, match="output must be omitted: a regression has values only"):
        raster.predict_xarray(values, data[:2], output="classes")


def test_what_cannot_be_predicted_is_refused(world):
    data = world.opened()
    with pytest.raises(BandError, match=r"has no band 'near_infrared'\. Its bands are 'red' and 'green'"):
        raster.predict_xarray(world.forest, data[:2])
    twice = xarray.concat([data[:1], data], "band")
    with pytest.raises(DataError, match="has 2 bands named 'red': give them other names"):
        raster.predict_xarray(world.forest, twice)
    with pytest.raises(
        DataError, match=r"more dimensions than bands, lines and pixels: time \(2\), band \(3\)"
    ):
        raster.predict_xarray(world.forest, xarray.concat([data, data], "time"))
    many = xarray.concat([data, data], "time").to_dataset("band")
    with pytest.raises(DataError, match=r"The variable .* of the Dataset has more dimensions .*: time \(2\)"):
        raster.predict_xarray(world.forest, many)
    with pytest.raises(DataError, match=r"its dimensions are band, north, east\. Name them y and x"):
        raster.predict_xarray(world.forest, data.rename(y="north", x="east").drop_vars(("north", "east")))
    with pytest.raises(DataError, match="values of type complex64 in band 'red', not numbers"):
        raster.predict_xarray(world.forest, data.astype(np.complex64))
    with pytest.raises(DataError, match="must be a DataArray or Dataset of xarray; got a ndarray"):
        raster.predict_xarray(world.forest, data.values)
    with pytest.raises(ParameterError, match="forest must be a forest of oldgrowth or the path of one"):
        raster.predict_xarray(b"forest.og", data)


def test_without_rioxarray(world, monkeypatch):
    data = world.opened()
    monkeypatch.setitem(sys.modules, "rioxarray", None)
    with pytest.raises(MissingExtraError, match=r"predict_xarray requires rioxarray .*'rioxarray>=0.17'"):
        raster.predict_xarray(world.forest, data)
