"""Labels that cannot be used: the error says what is wrong with which file, and what to do."""

import json
import os

import numpy as np
import pyogrio
import pytest
import shapely
from affine import Affine
from rasters import UTM, smooth_scene, write_raster
from vectors import in_crs, label_image, labels_of, on_map, write_vectors

from oldgrowth import RandomForestClassifier, RandomForestRegressor, raster
from oldgrowth.errors import (
    ColumnTypeError,
    DamagedFileError,
    DataError,
    GeometryTypeError,
    LabelledSceneError,
    MissingColumnError,
    MissingCRSError,
    MissingLabelError,
    NoDataError,
    NoLabelsError,
    NoRowsError,
    OldgrowthError,
    ParameterError,
    RemoteRasterError,
    TransformError,
)

SHAPE = (20, 30)
BOXES = [on_map(shapely.box(x, 2, x + 8, 15)) for x in (1, 11, 21)]


@pytest.fixture
def scene(tmp_path):
    return raster.open_scene(write_raster(tmp_path / "scene.tif", smooth_scene(2, *SHAPE), nodata=0))


def write(tmp_path, geometries=BOXES, name="a.gpkg", crs=UTM, **fields):
    return write_vectors(tmp_path / name, geometries, crs, **(fields or {"kind": ["a", "b", "c"]}))


def test_outside_the_scene(tmp_path, scene):
    far = write(tmp_path, [shapely.box(0, 0, 10, 10)] * 3)
    message = r"a\.gpkg labels no pixel: of its 3 features \(x 0 to 10, y 0 to 10, EPSG:32637\), none"
    with pytest.raises(
        NoLabelsError, match=message + r".*scene\.tif \(x 820000 to 820900, y 829400 to 830000"
    ):
        scene.with_labels(far)
    other = write(tmp_path, [shapely.box(0, 50, 1, 51)] * 3, "b.gpkg", "EPSG:4326")
    with pytest.raises(
        NoLabelsError, match=r"which is x 41\.\d+ to 41\.\d+, y 7\.\d+ to 7\.\d+ in EPSG:4326"
    ):
        scene.with_labels(other)


def test_fields(tmp_path, scene):
    file = write(tmp_path, landuse=["a", "b", "c"], code=[1, 2, 3])
    with pytest.raises(MissingColumnError, match=r"has no field 'land_use'. Did you mean 'landuse'\?"):
        scene.with_labels(file, field="land_use")
    with pytest.raises(MissingColumnError, match=r"has no field 'CODE'. Did you mean 'code'\?"):
        scene.with_labels(file, field="CODE")
    with pytest.raises(ParameterError, match=r"field must be one of the fields of .*: 'landuse' and 'code'"):
        scene.with_labels(file)
    bare = tmp_path / "bare.geojson"
    bare.write_text('{"type": "Point", "coordinates": [41.9, 7.5]}')
    with pytest.raises(NoLabelsError, match="its geometries have no field, and so no labels"):
        scene.with_labels(bare)


def test_layers(tmp_path, scene):
    file = write(tmp_path)
    pyogrio.raw.write(
        file, shapely.to_wkb(np.array(BOXES)), [np.arange(3)], ["kind"], geometry_type="Polygon", crs=UTM,
        layer="roads", append=True,
    )  # fmt: skip
    with pytest.raises(ParameterError, match=r"layer must be one of the layers of .*: 'a' and 'roads'"):
        scene.with_labels(file)
    with pytest.raises(MissingColumnError, match=r"has no layer 'road'. Did you mean 'roads'\?"):
        scene.with_labels(file, layer="road")


def test_types_that_are_no_labels(tmp_path, scene):
    days = np.array(["2020-01-01"] * 3, dtype="datetime64[D]")
    wkb = shapely.to_wkb(np.array(BOXES))
    pyogrio.raw.write(tmp_path / "a.gpkg", wkb, [days], ["day"], geometry_type="Polygon", crs=UTM)
    with pytest.raises(ColumnTypeError, match=r"Column 'day' of .*a\.gpkg has type date32\[day\]"):
        scene.with_labels(tmp_path / "a.gpkg")
    with pytest.raises(MissingLabelError, match=r"row 2, column kind, of .*b\.gpkg is infinite"):
        scene.with_labels(write(tmp_path, name="b.gpkg", kind=[0.5, np.inf, 1.0]))
    with pytest.raises(NoLabelsError, match=r"of its 3 features \(.*\), none with a label is in"):
        scene.with_labels(write(tmp_path, name="c.gpkg", kind=["", "", ""]))


def test_no_crs(tmp_path, scene):
    file = write(tmp_path, name="a.shp", crs=None)
    with pytest.raises(MissingCRSError, match="with ogr2ogr -a_srs"):
        scene.with_labels(file)
    labels = write_raster(tmp_path / "labels.tif", np.ones((1, *SHAPE), np.uint8), crs=None)
    with pytest.raises(MissingCRSError, match="with gdal_edit -a_srs"):
        scene.with_labels(labels)


@pytest.mark.parametrize(
    ("geometry", "kind"),
    [
        (shapely.LineString([(1, 1), (9, 9)]), "LineString"),
        (shapely.MultiLineString([[(1, 1), (9, 9)]]), "LineString"),
        (
            shapely.GeometryCollection([shapely.Point(1, 1), shapely.LineString([(1, 1), (9, 9)])]),
            "LineString",
        ),
    ],
)
def test_lines(tmp_path, scene, geometry, kind):
    file = write(tmp_path, [BOXES[0], on_map(geometry)], kind=["a", "b"])
    with pytest.raises(GeometryTypeError, match=rf"geometries of type {kind}: .* by a buffer around them"):
        scene.with_labels(file)
    assert set(
        labels_of(scene.with_labels(write(tmp_path, [BOXES[0], on_map(geometry)], "b.gpkg", kind=["a", ""])))
    ) == {"a"}


def test_curves(tmp_path, scene):
    ring = "820010 829990, 820100 829900, 820010 829810, 819900 829900, 820010 829990"
    (tmp_path / "a.csv").write_text(f'WKT,kind\n"CURVEPOLYGON(CIRCULARSTRING({ring}))",a\n')
    (tmp_path / "a.vrt.ogr").write_text(
        f"<OGRVRTDataSource><OGRVRTLayer name='a'><SrcDataSource>{tmp_path}/a.csv</SrcDataSource>"
        "<LayerSRS>EPSG:32637</LayerSRS></OGRVRTLayer></OGRVRTDataSource>"
    )
    with pytest.raises(GeometryTypeError, match=r"geometries of type curve: .* CONVERT_TO_LINEAR"):
        scene.with_labels(tmp_path / "a.vrt.ogr", field="kind")


@pytest.mark.parametrize("name", ["a.gpkg", "a.shp", "a.geojson", "a.fgb", "a.dbf", "a.shx"])
@pytest.mark.parametrize("share", [0.0, 0.4, 0.95])
def test_truncated_files(tmp_path, scene, name, share):
    written = name if name[2:] not in ("dbf", "shx") else "a.shp"
    geometries = [on_map(shapely.box(x % 30, x // 30, x % 30 + 1, x // 30 + 1)) for x in range(600)]
    crs = UTM
    if name == "a.geojson":
        geometries, crs = [in_crs(one, "EPSG:4326") for one in geometries], "EPSG:4326"
    file = write(tmp_path, geometries, written, crs, kind=[f"class {i % 7}" for i in range(600)])
    cut = tmp_path / name
    cut.write_bytes(cut.read_bytes()[: int(share * cut.stat().st_size)])
    with pytest.raises((DamagedFileError, NoDataError), match=rf"{tmp_path}/a\."):
        labels_of(scene.with_labels(file))


def test_other_files(tmp_path, scene):
    (tmp_path / "a.gpkg").write_text("not a GeoPackage")
    with pytest.raises(DamagedFileError, match=r"a\.gpkg cannot be read as a vector file"):
        scene.with_labels(tmp_path / "a.gpkg")
    (tmp_path / "b.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": []}))
    with pytest.raises(NoDataError, match="it has no geometries"):
        scene.with_labels(tmp_path / "b.geojson")
    with pytest.raises(NoDataError, match="no file matches"):
        scene.with_labels(tmp_path / "c.gpkg")
    write(tmp_path, name="d1.gpkg")
    write(tmp_path, name="d2.gpkg")
    with pytest.raises(ParameterError, match=r"labels must be one file; .*d1\.gpkg and .*d2\.gpkg match"):
        scene.with_labels(tmp_path / "d*.gpkg")
    with pytest.raises(ParameterError, match="labels must be the path of a file"):
        scene.with_labels(np.ones(SHAPE))
    os.remove(write(tmp_path, name="e.shp").with_suffix(".dbf"))
    with pytest.raises(OldgrowthError, match=r"e\.shp"):
        scene.with_labels(tmp_path / "e.shp")


def test_text_that_gdal_does_not_decode(tmp_path, scene):
    file = write(tmp_path, name="a.shp", kind=["café", "b", "c"])
    dbf = file.with_suffix(".dbf")
    dbf.write_bytes(dbf.read_bytes().replace("café".encode(), b"caf\xe9 "))
    with pytest.raises(ColumnTypeError, match=r"a\.shp has type string with text that is not UTF-8"):
        scene.with_labels(file)
    file.with_suffix(".cpg").unlink()  # which said that it is UTF-8
    assert set(labels_of(scene.with_labels(file))) == {"café", "b", "c"}


def test_coordinates_that_are_no_numbers(tmp_path, scene):
    broken = shapely.Polygon([(820_010, 829_990), (np.nan, 829_900), (820_100, 829_800)])
    with pytest.raises(DamagedFileError, match="feature 2 has coordinates that are not numbers"):
        scene.with_labels(write(tmp_path, [BOXES[0], broken], kind=["a", "b"]))
    with pytest.raises(RemoteRasterError, match=r"https://example.org/a\.gpkg is not a local file"):
        scene.with_labels("https://example.org/a.gpkg")
    with pytest.raises(NoLabelsError, match=r"of its 1 feature \(no coordinates\), none with"):
        scene.with_labels(write(tmp_path, [shapely.Polygon()], "b.gpkg", kind=["a"]))


def test_rasters(tmp_path, scene):
    labels = np.ones((2, *SHAPE), np.uint8)
    with pytest.raises(ParameterError, match=r"labels must be a raster of one band; it has 2"):
        scene.with_labels(write_raster(tmp_path / "two.tif", labels))
    one = write_raster(tmp_path / "one.tif", labels[:1])
    with pytest.raises(ParameterError, match="field must be omitted: a raster of labels has no fields"):
        scene.with_labels(one, field="kind")
    with pytest.raises(ParameterError, match="layer must be omitted: a raster of labels has no layers"):
        scene.with_labels(one, layer="kind")
    with pytest.raises(ParameterError, match="nodata must be a number"):
        scene.with_labels(one, nodata="none")
    with pytest.raises(DataError, match="nodata must be omitted: polygons and points have no nodata"):
        scene.with_labels(write(tmp_path), nodata=0)
    with pytest.raises(NoLabelsError, match=r"one\.tif labels no pixel: it is in x 820000 to .* are nodata"):
        scene.with_labels(one, nodata=1)
    far = write_raster(tmp_path / "far.tif", labels[:1], transform=Affine(30, 0, 0, 0, -30, 0))
    with pytest.raises(NoLabelsError, match=r"it is in x 0 to 900, .* within .*scene\.tif \(x 820000 to"):
        scene.with_labels(far)
    complex_labels = write_raster(tmp_path / "c.tif", np.ones((1, *SHAPE), np.complex64))
    with pytest.raises(ColumnTypeError, match="complex64"):
        scene.with_labels(complex_labels)
    one.write_bytes(one.read_bytes()[:100])
    with pytest.raises(DamagedFileError, match=r"one\.tif cannot be read as a raster"):
        scene.with_labels(one)


def test_a_polygon_that_covers_the_scene_until_it_is_transformed(tmp_path, scene):
    world = shapely.box(-170, -70, 170, 70)
    file = write(tmp_path, [world], crs="EPSG:4326", kind=["land"])
    with pytest.raises(NoLabelsError, match=r"If one of them covers .* -clipsrc [\d. ]+\.$") as found:
        scene.with_labels(file)
    around = shapely.box(*map(float, str(found.value).rstrip(".").split("-clipsrc ")[1].split()))
    cut = write(tmp_path, [world.intersection(around)], "b.gpkg", crs="EPSG:4326", kind=["land"])
    grid = scene.scenes[0].grid
    assert scene.with_labels(cut).count_rows() == grid.width * grid.height
    finer = write(tmp_path, [shapely.segmentize(world, 1)], "c.gpkg", crs="EPSG:4326", kind=["land"])
    with pytest.raises(NoLabelsError, match=r"none has the centre of a pixel.* If one of them covers"):
        scene.with_labels(finer)


def test_polygons_without_the_centre_of_a_pixel(tmp_path, scene):
    small = [on_map(shapely.box(x + 0.1, 3.1, x + 0.3, 3.3)) for x in range(3)]
    with pytest.raises(
        NoLabelsError, match=r"3 of its polygons and points .* none has the centre of a pixel"
    ):
        scene.with_labels(write(tmp_path, small))


def test_no_row_is_left(tmp_path):
    bands = smooth_scene(1, *SHAPE)
    bands[:, :, :10] = 0
    scene = raster.open_scene(write_raster(tmp_path / "scene.tif", bands, nodata=0))
    data = scene.with_labels(write(tmp_path, BOXES[:1], kind=["a"]))
    for use in (RandomForestClassifier(2).fit, labels_of):
        with pytest.raises(
            NoRowsError, match=r"scene\.tif has no rows: of 104 pixels with a label, none is valid"
        ):
            use(data)
    capped = scene.with_labels(tmp_path / "a.gpkg", per_class=5)
    with pytest.raises(NoRowsError, match=r"of 104 pixels with a label, none is drawn by per_class=5"):
        labels_of(capped)
    # A block for tests between all others, which are too near to it.
    middle = raster.open_scene(tmp_path / "scene.tif", patch=15).with_labels(
        write(tmp_path, BOXES[1:], "b.gpkg", kind=["a", "b"])
    )
    train, _ = middle.split_blocks(450)
    with pytest.raises(
        NoRowsError, match=r"of 208 pixels with a label, none is far enough from the blocks for tests"
    ):
        labels_of(train)


def test_labels_twice(tmp_path, scene):
    data = scene.with_labels(write(tmp_path))
    for part in (data, data.split_blocks(300)[0]):
        with pytest.raises(LabelledSceneError, match="has labels already, of 'kind'"):
            part.with_labels(tmp_path / "a.gpkg")
    train, test = scene.split_blocks(300)  # before there are labels
    for part in (train, test):
        some, every = label_image(part.with_labels(tmp_path / "a.gpkg"), ""), label_image(data, "")
        assert 0 < (some != "").sum() < (every != "").sum() and (some[some != ""] == every[some != ""]).all()


def test_geometries_without_a_place(tmp_path):
    # The southern hemisphere has no place in the plane of the Lambert cone of North America.
    lambert = {"crs": "EPSG:2263", "transform": Affine(100, 0, 980_000, 0, -100, 200_000)}
    scene = raster.open_scene(write_raster(tmp_path / "scene.tif", smooth_scene(1, *SHAPE), **lambert))
    here = shapely.box(-74.01, 40.70, -73.99, 40.72)
    world = shapely.box(-180, -90, 180, 90)
    file = write(tmp_path, [here, world], crs="EPSG:4326", kind=["a", "b"])
    message = r"to EPSG:2263, that of the scene: feature 2 has vertices that cannot be transformed to it"
    with pytest.raises(TransformError, match=message):
        scene.with_labels(file)
    pole = shapely.box(-20, -90, 20, -80)
    data = scene.with_labels(write(tmp_path, [here, pole], "b.geojson", "EPSG:4326", kind=["a", "b"]))
    assert set(labels_of(data)) == {"a"}


def test_targets_of_forests(tmp_path, scene):
    text = scene.with_labels(write(tmp_path))
    assert RandomForestClassifier(2).fit(text).classes_.tolist() == ["a", "b", "c"]
    reals = scene.with_labels(write(tmp_path, name="b.gpkg", height=[0.5, 7.25, 11.0]))
    forest = RandomForestRegressor(2).fit(reals)
    assert forest.score(reals) > 0.5
