"""Reference labels of points: names of classes or pixel values, in fields of all types."""

import warnings

import numpy as np
import pyogrio
import pytest
import shapely
from sampled_maps import classes, fill, read, write_map

from oldgrowth.errors import AmbiguousReferenceError
from oldgrowth.messages.warnings import SampleWarning
from oldgrowth.raster import assess_map, sample_map


def drawn_of(folder, names):
    """A map whose classes have these names, points of it, and the names of their classes."""
    path = write_map(folder / "named.tif", classes(), names=names)
    sample_map(path, 120, folder / "named.gpkg", min_per_class=20, overwrite=True)
    _, _, fields = read(folder / "named.gpkg")
    return path, folder / "named.gpkg", fields["map_value"]


@pytest.mark.parametrize("names", [{1: "wood ", 2: " grass", 7: "a\\tb"}, {1: "wood ", 2: "wood", 7: " w"}])
def test_blanks_of_names_do_not_count(tmp_path, names):
    path, points, values = drawn_of(tmp_path, names)
    labels = [names[value].replace("\\t", "\t") for value in values.tolist()]
    assert assess_map(path, fill(points, np.array(labels, dtype=object))).overall.value == 1
    if names[2] != "wood":
        stripped = np.array([label.strip() for label in labels], dtype=object)
        assert assess_map(path, fill(points, stripped)).overall.value == 1


@pytest.mark.parametrize("suffix", [".gpkg", ".shp", ".geojson"])
def test_bools_as_labels(tmp_path, suffix):
    values = np.where(classes() > 1, 2, 1).astype(np.uint8)
    path = write_map(tmp_path / "map.tif", values, names={1: "False", 2: "True"})
    points = tmp_path / f"points{suffix}"
    sample_map(path, 120, points, min_per_class=20)
    _, _, fields = read(points)
    true = fields["map_value"] == 2
    assert assess_map(path, fill(points, true)).overall.value == 1
    assert assess_map(path, fill(points, true.astype(int))).overall.value == 1
    assert assess_map(path, fill(points, fields["map_value"])).overall.value == 1
    meta, geometries, fields = read(points)
    columns, missing = list({**fields, "own": true}.values()), [None] * len(fields) + [np.arange(120) < 9]
    pyogrio.raw.write(
        tmp_path / "missing.gpkg", shapely.to_wkb(geometries), columns, [*fields, "own"],
        field_mask=missing, driver="GPKG", geometry_type="Point", crs=meta["crs"],
    )  # fmt: skip
    with pytest.warns(SampleWarning, match="left out: 9 of 120"):
        assert assess_map(path, tmp_path / "missing.gpkg", "own").overall.value == 1


def test_labels_that_may_be_names_or_pixel_values(tmp_path):
    names = {1: "-5", 2: "1", 7: "2"}
    path, points, values = drawn_of(tmp_path, names)
    as_names = np.array([int(names[value]) for value in values.tolist()])
    with warnings.catch_warnings():
        warnings.simplefilter("error", SampleWarning)
        assert assess_map(path, fill(points, as_names)).overall.value == 1
        assert assess_map(path, fill(points, values)).overall.value == 1
    mixed = as_names.copy()
    mixed[values == 7] = 7
    with pytest.raises(AmbiguousReferenceError, match="'1' may be the class '1', or the pixel value of '-5'"):
        assess_map(path, fill(points, mixed))
    with pytest.warns(
        SampleWarning, match="'1' is the class '1', .* of '-5'. They are read as names"
    ) as found:
        assess_map(path, fill(points, np.where(values == 7, 2, 1)))
    assert found[0].filename == __file__


def test_whole_numbers_of_classes_with_fractions(tmp_path):
    names = {1: "0.5", 2: "4.0", 7: "2.0"}
    path, points, values = drawn_of(tmp_path, names)
    labels = np.array([float(names[value]) for value in values.tolist()])
    assert assess_map(path, fill(points, labels)).overall.value == 1
