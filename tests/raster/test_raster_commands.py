"""The command line on scenes: from band files and polygons to a map, and to its accuracy."""

import re
import subprocess
import sys

import numpy as np
import pyogrio
import pytest
import rasterio
import shapely
from rasters import TRANSFORM, UTM, smooth_scene, write_raster
from wrong_commands import WRONG

import oldgrowth
from cli_files import as_json, done, failed
from oldgrowth import raster
from oldgrowth.cli.main import run
from oldgrowth.raster.maps.raw_map import RawMap

BANDS = ("B2", "B3", "B4")
FIT = ("--trees", "4", "--seed", "0", "-q")


def write_shapes(path, shapes, crs=UTM, **fields):
    """Polygons or points with fields."""
    columns = [np.array(values) for values in fields.values()]
    kind = shapes[0].geom_type
    wkb = shapely.to_wkb(np.array(shapes))
    pyogrio.raw.write(path, wkb, columns, list(fields), driver="GPKG", geometry_type=kind, crs=crs)
    return path


def write_scene(folder, seed):
    """A file for each band, and a mask whose second bit is set in some pixels."""
    folder.mkdir(parents=True)
    bands = smooth_scene(3, 40, 50, seed)
    bands[:, :2] = 0
    for name, values in zip(BANDS, bands, strict=True):
        write_raster(folder / f"LC08_x_{name}.TIF", values[None])
    mask = np.zeros((1, 40, 50), dtype=np.uint16)
    mask[:, 10:14, 20:30] = 2
    write_raster(folder / "LC08_x_QA.TIF", mask)
    return bands


def square(column, line, side):
    corners = [
        TRANSFORM @ (column + dx, line + dy) for dx, dy in ((0, 0), (side, 0), (side, side), (0, side))
    ]
    return shapely.Polygon(corners)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two scenes to train on, labels, a table, and a forest of the scenes."""
    here = tmp_path_factory.mktemp("scenes")
    for name, seed in (("one", 0), ("two", 1), ("new", 2)):
        write_scene(here / "scenes" / name, seed)
    shapes = [square(2, 4, 9), square(30, 20, 9), square(12, 25, 9)]
    names = np.array(["wood", "grass", "wood"], dtype=object)
    write_shapes(here / "osm.gpkg", shapes, landuse=names, height=[1.5, 2.5, 3.5])
    (here / "t.csv").write_text("a,b,y\n1,2,0\n2,3,1\n")
    done("fit", here / "scenes/one", here / "scenes/two", *options(here), "-o", here / "forest.og")
    return here


def options(here, target="osm.gpkg"):
    made = (
        "--bands",
        "B[2-3]",
        "--bands",
        "B4",
        "--patch",
        "3",
        "--nodata",
        "0",
        "--mask",
        "*QA.TIF",
        "bits 1",
    )
    made += ("--extra", "ratio=(B4 - B2) / (B4 + B2)")
    return (*made, "--target", here / target, "--field", "landuse", *FIT)


def opened(here, *names):
    return raster.open_scene(
        [here / "scenes" / name for name in names],
        bands=["B[2-3]", "B4"], patch=3, nodata=0, mask=("*QA.TIF", "bits 1"),
        extra={"ratio": "(B4 - B2) / (B4 + B2)"},
    )  # fmt: skip


def test_a_forest_of_scenes_is_that_of_python(place):
    data = opened(place, "one", "two").with_labels(place / "osm.gpkg", field="landuse")
    expected = oldgrowth.RandomForestClassifier(4, random_state=0).fit(data)
    found = oldgrowth.load(place / "forest.og")
    assert found.forest_.digest() == expected.forest_.digest()
    assert found.recipe_ == expected.recipe_ and found.classes_.tolist() == ["grass", "wood"]


def test_a_quoted_pattern_of_directories_is_several_scenes(place, tmp_path):
    done("fit", f"{place}/scenes/[ot]*/", *options(place), "-o", tmp_path / "f.og")
    one, other = (oldgrowth.load(path) for path in (tmp_path / "f.og", place / "forest.og"))
    assert one.forest_.digest() == other.forest_.digest()


def test_maps_are_those_of_python(place, tmp_path, capsys):
    forest, scene = oldgrowth.load(place / "forest.og"), opened(place, "new")
    wanted = {"probabilities": tmp_path / "p.tif", "confidence": tmp_path / "c.tif"}
    raster.write_map(forest, scene, tmp_path / "m.tif", confidence_kind="share", **wanted)
    files = [f"{tmp_path}/{name}.tif" for name in ("map", "proba", "sure")]
    more = ("--probabilities", files[1], "--confidence", files[2], "--confidence-kind", "share")
    said = as_json(capsys, "predict", place / "forest.og", place / "scenes/new", "-o", files[0], *more)
    assert said["files"] == files and sorted(said["predicted"]) == ["grass", "wood"]
    for name, file in zip("mpc", files, strict=True):
        with rasterio.open(tmp_path / f"{name}.tif") as one, rasterio.open(file) as other:
            np.testing.assert_array_equal(one.read(), other.read())
            assert one.crs == other.crs and one.transform == other.transform
            if name == "m":
                assert said["rows"] == (one.read(1) != one.nodata).sum() == 38 * 50 - 40
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []


def test_a_map_says_what_it_has(place, tmp_path, capsys):
    done("predict", place / "forest.og", place / "scenes/new/", "-o", tmp_path / "map.tif", "-j", "1")
    out = capsys.readouterr().out
    assert "Predicted classes" in out and "grass" in out and f"saved to {tmp_path}/map.tif." in out
    assert "exists: --force replaces it" in failed(
        capsys, 2, "predict", place / "forest.og", place / "scenes/new", "-o", tmp_path / "map.tif"
    )
    done("predict", place / "forest.og", place / "scenes/new", "-o", tmp_path / "map.tif", "--force", "-q")
    assert capsys.readouterr().out == ""


def test_a_mask_of_the_scene_itself(place, tmp_path, capsys):
    other = np.zeros((1, 40, 50), dtype=np.uint8)
    other[:, :, :25] = 9
    write_raster(tmp_path / "clouds.tif", other)
    command = ("predict", place / "forest.og", place / "scenes/new", "-o", tmp_path / "map.tif")
    said = as_json(capsys, *command, "--mask", tmp_path / "clouds.tif", "values 9")
    assert said["rows"] == 38 * 25
    assert as_json(capsys, *command, "--no-mask", "--force")["rows"] == 38 * 50


def test_held_out_labels_give_the_plain_confusion(place, tmp_path, capsys):
    write_shapes(
        tmp_path / "held.gpkg",
        [square(5, 15, 8), square(33, 5, 8)],
        kind=np.array(["wood", "grass"], dtype=object),
    )
    test = opened(place, "new").with_labels(tmp_path / "held.gpkg")
    forest = oldgrowth.load(place / "forest.og")
    command = ("evaluate", place / "forest.og", place / "scenes/new", "--target", tmp_path / "held.gpkg")
    said = as_json(capsys, *command, "--field", "kind")
    assert said["accuracy"] == pytest.approx(forest.score(test)) and said["rows"] == 128
    done(*command)
    out = " ".join(capsys.readouterr().out.split())
    assert "Confusion: labels by predicted class" in out and "128 rows" in out


def test_regression_on_scenes(place, tmp_path, capsys):
    scene, forest = place / "scenes/one", tmp_path / "f.og"
    target = ("--target", place / "osm.gpkg", "--field", "height")
    done("fit", scene, *target, *FIT, "-o", forest, "--nodata", "0", "--bands", "B2,B3")
    assert "R2 " in said_by(capsys, "evaluate", forest, scene, *target)
    done("predict", forest, scene, "-o", tmp_path / "map.tif", "-q")
    with rasterio.open(tmp_path / "map.tif") as file:
        assert file.dtypes == ("float32",)
        assert 1.5 <= np.nanmin(file.read()) <= np.nanmax(file.read()) <= 3.5
    command = ("predict", forest, scene, "-o", tmp_path / "n.tif")
    said = failed(capsys, 1, *command, "--confidence", tmp_path / "c.tif")
    assert re.search("--confidence must be omitted: a regression has no classes; got '/.*", said)


def said_by(capsys, *arguments):
    capsys.readouterr()
    done(*arguments)
    return capsys.readouterr().out


def test_inspect_shows_how_features_are_made(place, capsys):
    out = said_by(capsys, "inspect", place / "forest.og")
    for words in ("B2, B3, B4", "ratio = (B4 - B2) / (B4 + B2)", "3 x 3 pixels", "*QA.TIF: bits 1"):
        assert words in out, words
    assert "scale" not in out and "south" not in out, "as usual"
    assert as_json(capsys, "inspect", place / "forest.og")["recipe"]["patch"] == 3


@pytest.fixture(scope="module")
def assessed(place):
    """A map, points drawn from it by the command line, and the same with reference labels."""
    done("predict", place / "forest.og", place / "scenes/new", "-o", place / "map.tif", "-q")
    done("sample", place / "map.tif", "-n", "80", "-o", place / "points.gpkg", "--min-per-class", "10", "-q")
    meta, _, wkb, columns = pyogrio.raw.read(place / "points.gpkg")
    fields = dict(zip(meta["fields"].tolist(), columns, strict=True))
    labels = fields["map_class"].copy()
    labels[::7] = "grass"
    write_shapes(place / "reference.gpkg", list(shapely.from_wkb(wkb)), **(fields | {"reference": labels}))
    return place


def test_a_sample_is_that_of_python(assessed, tmp_path, capsys):
    command = ("sample", assessed / "map.tif", "--points", "80", "--min-per-class", "10")
    said = as_json(capsys, *command, "-o", tmp_path / "a.geojson", "--seed", "5")
    strata = raster.sample_map(assessed / "map.tif", 80, tmp_path / "b.geojson", min_per_class=10, seed=5)
    assert (tmp_path / "a.geojson").read_text() == (tmp_path / "b.geojson").read_text().replace('"b"', '"a"')
    found = [(c["class"], c["value"], c["pixels"], c["points"]) for c in said["classes"]]
    assert found == [(s.label, s.value, s.pixels, s.points) for s in strata]
    out = said_by(capsys, *command, "-o", tmp_path / "a.shp")
    assert "80 points saved to" in out and f"oldgrowth evaluate {assessed}/map.tif {tmp_path}/a.shp" in out
    assert "exists: --force replaces it" in failed(capsys, 2, *command, "-o", tmp_path / "a.shp")
    done(*command, "-o", tmp_path / "a.shp", "--force")


def test_an_assessment_is_that_of_python(assessed, capsys):
    expected = raster.assess_map(assessed / "map.tif", assessed / "reference.gpkg")
    command = ("evaluate", assessed / "map.tif", assessed / "reference.gpkg")
    out = said_by(capsys, *command)
    for cells in expected.cells():
        assert all(cell in out for cell in cells), cells
    last = f"Overall accuracy {expected.overall.text(3)} (95 % interval)"
    assert out.splitlines()[-1] == last and said_by(capsys, *command, "-q") == f"{last}\n"
    said = as_json(capsys, *command, "--field", "reference")
    assert said["overall_accuracy"]["value"] == pytest.approx(expected.overall.value)
    wood = next(c for c in said["classes"] if c["class"] == "wood")
    assert wood["area"]["interval"][0] < wood["area"]["value"] < wood["mapped_pixels"] * 0.09
    assert said["area_unit"] == "ha" and np.sum(said["counts"]) == 80


@pytest.fixture(scope="module")
def many(assessed):
    """More files for what is wrong."""
    write_raster(assessed / "p3.tif", np.ones((3, 5, 5), dtype=np.uint8))
    far = rasterio.Affine(30, 0, 0, 0, -30, 0)
    write_raster(assessed / "far.tif", np.ones((1, 5, 5), dtype=np.uint8), transform=far)
    write_shapes(assessed / "other.gpkg", [square(5, 15, 8)], kind=np.array(["ice"], dtype=object))
    point = square(5, 15, 8).centroid
    write_shapes(assessed / "own.gpkg", [point], reference=np.array(["wood"], dtype=object))
    write_raster(assessed / "one.tif", smooth_scene(1, 40, 50), names=["one"])
    classes = ("--task", "classification", *FIT)
    done("fit", assessed / "t.csv", "--target", "y", "-o", assessed / "table.og", *classes)
    labels = ("--target", assessed / "osm.gpkg", "--field", "landuse")
    done("fit", assessed / "one.tif", *labels, "-o", assessed / "one.og", *classes)
    return assessed


@pytest.mark.parametrize(
    ("code", "command", "words"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG]
)
def test_errors_are_explained(many, capsys, monkeypatch, code, command, words):
    monkeypatch.chdir(many)
    before = sorted(many.rglob("*"))
    said = " ".join(failed(capsys, code, *command.split()).split())
    assert words in said and "features=" not in said and "patch=" not in said, said
    assert sorted(many.rglob("*")) == before, "nothing is left"


def test_without_the_extra_its_installation_is_named(assessed):
    commands = (
        "fit scenes/one --target osm.gpkg -o x.og",
        "sample map.tif -n 9 -o x.gpkg",
        "evaluate map.tif reference.gpkg",
    )
    script = (
        "import sys; sys.modules['rasterio'] = None; from oldgrowth.cli.main import run\n"
        f"for command in {commands!r}: assert run(command.split()) == 1"
    )
    result = subprocess.run([sys.executable, "-c", script], cwd=assessed, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    way = "Install it with: pip install 'rasterio>=1.4' 'pyogrio>=0.10' 'shapely>=2.0'."
    said = f"oldgrowth: oldgrowth.raster requires rasterio 1.4 or newer. {way}\n"
    assert result.stderr == 3 * said


def test_points_in_one_of_several_layers(assessed, tmp_path, capsys):
    """A GeoPackage to which another layer was added."""
    both = tmp_path / "both.gpkg"
    both.write_bytes((assessed / "reference.gpkg").read_bytes())
    wkb, written = shapely.to_wkb(np.array([square(5, 15, 8)])), {"geometry_type": "Polygon", "crs": UTM}
    pyogrio.raw.write(both, wkb, [np.array([1])], ["a"], layer="more", append=True, driver="GPKG", **written)
    command = ("evaluate", assessed / "map.tif", both, "-q")
    assert "--layer must be one of the layers of" in failed(capsys, 1, *command)
    said = said_by(capsys, *command, "--layer", "reference")
    assert said == said_by(capsys, "evaluate", assessed / "map.tif", assessed / "reference.gpkg", "-q")


def test_unknown_labels_are_warned_of(assessed, tmp_path, capsys):
    meta, _, wkb, columns = pyogrio.raw.read(assessed / "reference.gpkg")
    fields = dict(zip(meta["fields"].tolist(), columns, strict=True))
    fields["reference"][:3] = "gras"
    fields["reference"][3:5] = None
    write_shapes(tmp_path / "r.gpkg", list(shapely.from_wkb(wkb)), **fields)
    assert run(["evaluate", str(assessed / "map.tif"), str(tmp_path / "r.gpkg"), "-q"]) == 0
    err = capsys.readouterr().err.splitlines()
    assert len(err) == 2 and "warning: Points without a reference label" in err[0]
    assert "'gras' (3, similar to 'grass')" in err[1]


def test_labels_of_rasters_and_a_cap_per_class(place, tmp_path, capsys):
    """--label-nodata, --layer and --per-class are those of with_labels; --seed also draws the pixels."""
    scene = place / "scenes/one"
    labels = np.zeros((1, 40, 50), dtype=np.uint8)
    labels[:, 5:20, :10], labels[:, 5:20, 20:30] = 1, 2
    write_raster(tmp_path / "labels.tif", labels)
    command = ("fit", scene, "--target", tmp_path / "labels.tif", "--task", "classification", "--trees", "2")
    said = as_json(
        capsys, *command, "--label-nodata", "0", "--per-class", "40", "--seed", "3", "-o", tmp_path / "f.og"
    )
    assert said["classes"] == [1, 2] and said["rows"] == 80
    data = raster.open_scene(scene).with_labels(tmp_path / "labels.tif", nodata=0, per_class=40, seed=3)
    expected = oldgrowth.RandomForestClassifier(2, random_state=3).fit(data)
    assert oldgrowth.load(tmp_path / "f.og").forest_.digest() == expected.forest_.digest()
    layers = tmp_path / "layers.gpkg"
    for name in ("one", "two"):
        wkb, kind = shapely.to_wkb(np.array([square(2, 4, 9)])), [np.array([name], dtype=object)]
        written = {"driver": "GPKG", "geometry_type": "Polygon", "crs": UTM, "layer": name}
        pyogrio.raw.write(layers, wkb, kind, ["kind"], append=name == "two", **written)
    target = ("fit", scene, "--target", layers, *FIT, "-o", tmp_path / "g.og")
    assert "--layer must be one of the layers" in failed(capsys, 2, *target)
    done(*target, "--layer", "two")
    assert oldgrowth.load(tmp_path / "g.og").classes_.tolist() == ["two"]


def test_tables_beside_rasters_are_told(place, tmp_path, capsys):
    """A directory with both may have been named for either."""
    write_scene(tmp_path / "scene", 3)
    (tmp_path / "scene" / "notes").mkdir()
    (tmp_path / "scene" / "notes" / "rows.csv").write_text("a,y\n1,2\n")
    (tmp_path / "scene" / "LC08_x_MTL.txt").write_text("sensor")
    done("predict", place / "forest.og", tmp_path / "scene", "-q", "-o", tmp_path / "map.tif")
    told = capsys.readouterr().err
    assert "its tables are not read: 'rows.csv'. To read these, name them" in told and "MTL" not in told
    done("predict", place / "forest.og", place / "scenes/new", "-q", "-o", tmp_path / "new.tif")
    assert "tables" not in capsys.readouterr().err


def test_an_interrupted_map_is_resumed(place, tmp_path, capsys, monkeypatch):
    """The command tells where its work is kept, and goes on from there."""
    command = ["predict", f"{place}/forest.og", f"{place}/scenes/new", "-q", "-o"]

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(RawMap, "finish", interrupted)
        assert run([*command, f"{tmp_path}/map.tif"]) == 130
    said = capsys.readouterr().err.strip().splitlines()
    assert said[0] == "oldgrowth: interrupted." and said[1].endswith("Write the same map again to go on.")
    assert f"{tmp_path}/.map.tif.unfinished" in said[1] and not (tmp_path / "map.tif").exists()
    done(*command, tmp_path / "map.tif")
    done(*command, tmp_path / "same.tif")
    assert (tmp_path / "map.tif").read_bytes() == (tmp_path / "same.tif").read_bytes()
    assert not list(tmp_path.glob(".*"))
