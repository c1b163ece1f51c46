"""Which pixels are rows, and what their values are: nodata, masks, types, scale and offset, expressions."""

import warnings

import numpy as np
import pytest
import rasterio
from affine import Affine
from rasters import TRANSFORM, patches_by_numpy, smooth_scene, write_raster

from oldgrowth import raster
from oldgrowth.errors import (
    ExpressionError,
    GridError,
    InfiniteValueError,
    NoDataError,
    NoRowsError,
    ParameterError,
)
from oldgrowth.messages.warnings import NodataWarning
from oldgrowth.raster.reading import layers as layers_module
from oldgrowth.raster.scenes import scene as scene_module

BANDS = smooth_scene(3, 12, 9)


def rows_of(scene, batch=1000):
    return np.concatenate([one.x.astype(np.float32) for one in scene.batches(batch, keep_bytes=True)])


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "uint16", "uint32", "int64", "uint64", "float32", "float64"]
)
def test_types_with_nodata(tmp_path, dtype):
    kind = np.dtype(dtype)
    low = 0 if kind.kind == "u" else -100
    bands = np.random.default_rng(0).integers(low, 100, (2, 12, 9)).astype(kind)
    nodata = float(np.finfo(kind).min) if kind.kind == "f" else min(int(np.iinfo(kind).max), 100_000)
    bands[0, 3:6, 4] = nodata
    path = write_raster(tmp_path / "scene.tif", bands, nodata=nodata)
    valid = (bands != nodata).all(axis=0)
    np.testing.assert_array_equal(
        rows_of(raster.open_scene(path, patch=3)), patches_by_numpy(bands, valid, 3)
    )
    if kind.kind == "f":  # NaN is never valid
        bands[0, 3:6, 4], bands[1, 0, 0] = 1, np.nan
        path = write_raster(tmp_path / "nan.tif", bands, nodata=np.nan)
        valid = np.isfinite(bands).all(axis=0)
        np.testing.assert_array_equal(rows_of(raster.open_scene(path)), patches_by_numpy(bands, valid, 1))


def test_large_numbers_are_rounded_and_those_beyond_float32_refused(tmp_path):
    bands = np.full((1, 2, 2), 2**24 + 1, np.uint32)
    assert rows_of(raster.open_scene(write_raster(tmp_path / "a.tif", bands)))[0, 0] == 2**24
    path = write_raster(tmp_path / "b.tif", np.array([[[1.0, 1e300]]]))
    with pytest.raises(InfiniteValueError, match=r"b.tif.*row 1|row 1.*b.tif"):
        rows_of(raster.open_scene(path))


def test_bands_with_nodata_values_of_their_own(tmp_path):
    files = [
        write_raster(tmp_path / f"s_B{i}.tif", BANDS[i : i + 1], nodata=int(BANDS[i, 2 * i, 3]))
        for i in range(3)
    ]
    valid = np.all([BANDS[i] != BANDS[i, 2 * i, 3] for i in range(3)], axis=0)
    np.testing.assert_array_equal(rows_of(raster.open_scene(files)), patches_by_numpy(BANDS, valid, 1))
    value = int(BANDS[0, 5, 5])  # given, it counts instead of all tags
    valid = (value != BANDS).all(axis=0)
    np.testing.assert_array_equal(
        rows_of(raster.open_scene(files, nodata=value)), patches_by_numpy(BANDS, valid, 1)
    )


def test_scale_and_offset_are_applied(tmp_path):
    bands = (BANDS * 100).astype(np.uint16)
    bands[0, 4, 4] = 7
    path = write_raster(tmp_path / "scene.tif", bands, nodata=7)
    with rasterio.open(path, "r+") as file:
        file.scales, file.offsets = (2.75e-05, 1, 2), (-0.2, 0, 0)
    expected = np.stack([bands[0] * 2.75e-05 - 0.2, bands[1], bands[2] * 2.0])
    scene = raster.open_scene(path)
    np.testing.assert_array_equal(rows_of(scene), patches_by_numpy(expected, bands[0] != 7, 1))
    assert scene.recipe["scale"]["B1"] == [2.75e-05, -0.2]


MASK = np.random.default_rng(1).integers(0, 32, (1, 12, 9)).astype(np.uint16)


@pytest.mark.parametrize(
    ("rule", "masked"),
    [
        ("bits 1,3", (MASK[0] & 0b1010) > 0),
        ("values 4, 6,31", np.isin(MASK[0], [4, 6, 31])),
        ("not values 1,2,3", ~np.isin(MASK[0], [1, 2, 3])),
    ],
)
def test_masks(tmp_path, rule, masked):
    path = write_raster(tmp_path / "x_all.tif", BANDS)
    write_raster(tmp_path / "x_QA.tif", MASK)
    expected = patches_by_numpy(BANDS, ~masked, 3)
    for mask in ("*_QA.tif", "x_QA.tif", tmp_path / "x_QA.tif"):
        for source in (path, tmp_path):
            np.testing.assert_array_equal(
                rows_of(raster.open_scene(source, patch=3, mask=(mask, rule))), expected
            )
    together = np.concatenate([BANDS.astype(np.uint16), MASK])  # a band of the scene
    scene = raster.open_scene(
        write_raster(tmp_path / "one.tif", together, names=["B1", "B2", "B3", "QA"]),
        patch=3,
        mask=("QA", rule),
    )
    np.testing.assert_array_equal(rows_of(scene), expected)


def test_masks_of_other_sizes(tmp_path):
    path = write_raster(tmp_path / "scene.tif", BANDS)
    write_raster(tmp_path / "coarse.tif", MASK[:, :4, :3], transform=TRANSFORM @ Affine.scale(3))
    masked = np.kron(MASK[0, :4, :3] & 1, np.ones((3, 3))) > 0
    scene = raster.open_scene(path, mask=("coarse.tif", "bits 0"))
    np.testing.assert_array_equal(rows_of(scene), patches_by_numpy(BANDS, ~masked, 1))
    write_raster(tmp_path / "small.tif", MASK[:, :11])
    with pytest.raises(
        GridError, match=r"small.tif does not fit the grid of .*scene.tif. It has 9 x 11 pixels"
    ):
        raster.open_scene(path, mask=("small.tif", "bits 0"))


@pytest.mark.parametrize(
    "mask",
    ["QA.tif", ("QA.tif",), ("QA.tif", "bit 1"), ("QA.tif", "bits 63"), ("QA.tif", "bits 16"), ("QA.tif", 3),
     ("none", "bits 1"), ("float.tif", "bits 0"), ("scene.tif", "bits 0"), ("*.tif", "bits 1")],
)  # fmt: skip
def test_wrong_masks(tmp_path, mask):
    path = write_raster(tmp_path / "scene.tif", BANDS)
    write_raster(tmp_path / "QA.tif", MASK)
    write_raster(tmp_path / "float.tif", MASK.astype(np.float32))
    with pytest.raises((ParameterError, NoDataError), match="mask"):
        raster.open_scene(path, mask=mask)


def test_expressions(tmp_path):
    bands = BANDS.astype(np.float32)
    bands[0, 0, :3] = bands[1, 0, :3]
    expressions = {
        "nd": "(B1 - B2) / (B1 - B2)",
        "root": "sqrt(B1 - 128) + log(B2)",
        "power": "2 ** B1 ** 1e20",
        "most": "maximum(abs(-B3), 100) * minimum(B1, +B2) - exp(0)",
    }
    b1, b2, b3 = bands
    with np.errstate(all="ignore"):
        expected = [(b1 - b2) / (b1 - b2), np.sqrt(b1 - 128) + np.log(b2), b1 * np.nan,
                    np.maximum(b3, 100) * np.minimum(b1, b2) - 1]  # fmt: skip
    path = write_raster(tmp_path / "scene.tif", bands.astype(np.uint8))
    scene = raster.open_scene(path, bands="B1", extra=expressions)
    assert scene.feature_names == ("B1", *expressions)
    np.testing.assert_array_equal(rows_of(scene), np.stack([b1, *expected]).reshape(5, -1).T)
    assert np.isnan(rows_of(scene)[:3, 1]).all()  # divided by zero


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("__import__('os')", "is not allowed"),
        ("B1.real", "B1.real is not allowed"),
        ("B1[0]", "is not allowed"),
        ("B1 if B2 else B3", "is not allowed"),
        ("sqrt(B1, B2)", "sqrt takes 1 argument, and has 2"),
        ("maximum(B1, B2, swir)", "maximum takes 2 arguments, and has 3"),
        ("(lambda: B1)()", "is not allowed"),
        ("B1 + True", "True is not allowed"),
        ("B1 + 'a'", "is not allowed"),
        ("B1 + 1e999", "is not allowed"),
        ("B1 +", "invalid syntax"),
        ("3 + 4", "it uses no band"),
        ("B1 + Swir", "did you mean swir?"),
        ("B1 + Q", "the bands are B1, B2, swir"),
        ("(" * 150 + "B1" + ")" * 150 + "+ B9", "there is no band B9"),
        ("(" * 3000 + "B1" + ")" * 900, "nested|too many"),
        ("-" * 3000 + "B1", "more than|nested|too many|recursion"),
        ("+".join(["B1"] * 900), "more than"),
        ("B1 + " * 3000 + "B1", "more than 4000 characters"),
        (3, "an expression is text"),
    ],
)
def test_expressions_that_are_not_allowed(tmp_path, text, why):
    path = write_raster(tmp_path / "scene.tif", BANDS, names=["B1", "B2", "swir"])
    with pytest.raises(ExpressionError, match=why.replace("?", r"\?")):
        raster.open_scene(path, extra={"new": text})


@pytest.mark.parametrize(
    "text",
    [
        "B2 / (B1 / (B2 - B2))",
        "minimum(B1 / (B2 - B2), B3)",
        "maximum(-B1 / (B2 - B2), B3)",
        "(B1 / (B2 - B2)) ** 0",
        "1 ** ((B2 - B2) / (B3 - B3))",
        "B1 / (1 / 0)",
        "exp(log(B1 - B1))",
        "maximum(log(B1 - B1), 3)",
        "1 / (B1 - B1) ** -1",
        "sqrt(-B1) ** 0",
        "1 ** (-B1) ** 0.5",
        "exp(B1 * 0 + 999)",
    ],
)
def test_what_is_undefined_on_the_way_is_missing(tmp_path, text):
    path = write_raster(tmp_path / "scene.tif", BANDS)
    values = rows_of(raster.open_scene(path, bands="B1", extra={"new": text, "good": "B1 / B2"}))
    assert np.isnan(values[:, 1]).all() and np.isfinite(values[:, 2]).all()


def test_only_the_pixels_that_are_undefined_are_missing(tmp_path):
    path, value = write_raster(tmp_path / "scene.tif", BANDS), BANDS[0, 0, 0]
    scene = raster.open_scene(path, bands="B1", extra={"new": f"B1 / (1 / (B1 - {value}))"})
    np.testing.assert_array_equal(np.isnan(rows_of(scene)[:, 1]), (BANDS[0] == value).ravel())


def test_what_is_too_large_on_the_way_may_become_finite(tmp_path):
    path = write_raster(tmp_path / "scene.tif", BANDS)
    scene = raster.open_scene(path, bands="B1", extra={"new": "1 / (1 + exp(B1 * 0 + 999))"})
    assert (rows_of(scene)[:, 1] == 0).all()


@pytest.mark.parametrize(
    "blocks", [{}, {"tiled": True, "blockxsize": 16, "blockysize": 16}, {"blockysize": 90}]
)
@pytest.mark.parametrize("interleave", ["band", "pixel"])
@pytest.mark.parametrize("room", [1 << 26, 500])
def test_blocks_do_not_matter(tmp_path, monkeypatch, blocks, interleave, room):
    monkeypatch.setattr(scene_module, "STRIP_PIXELS", 200)
    monkeypatch.setattr(layers_module, "BLOCK_ROWS_BYTES", room)
    bands = smooth_scene(3, 90, 31)
    path = write_raster(tmp_path / "scene.tif", bands, interleave=interleave, **blocks)
    every = np.ones((90, 31), dtype=bool)
    np.testing.assert_array_equal(
        rows_of(raster.open_scene(path, patch=5)), patches_by_numpy(bands, every, 5)
    )


def test_blocks_are_decoded_once(tmp_path, monkeypatch):
    """Lines of a file are asked of rasterio in whole rows of blocks, and once."""
    asked = []
    monkeypatch.setattr(scene_module, "STRIP_PIXELS", 31 * 7)
    read = layers_module.Together.read_into

    def spied(self, raster, others):
        inner = read(self, raster, others)

        def reading(first, out):
            asked.append((first, first + out.shape[1]))
            inner(first, out)

        return reading

    monkeypatch.setattr(layers_module.Together, "read_into", spied)
    path = write_raster(
        tmp_path / "scene.tif", smooth_scene(3, 90, 31), tiled=True, blockxsize=16, blockysize=32
    )
    rows_of(raster.open_scene(path, patch=3))
    assert asked == [(0, 32), (32, 64), (64, 90)]


def test_much_of_one_value_around_a_scene_without_a_nodata_tag(tmp_path):
    bands = smooth_scene(2, 200, 300)
    y, x = np.mgrid[:200, :300]
    bands[:, (x + y < 100) | (x + y > 400)] = 0
    share = np.mean(bands[0] == 0)
    path = write_raster(tmp_path / "scene.tif", bands)
    with pytest.warns(
        NodataWarning, match=r"scene.tif has no nodata tag, but about \d+% .* give nodata=0"
    ) as found:
        raster.open_scene(path)
    told = int(str(found[0].message).split("about ")[1].split("%")[0])
    assert abs(told / 100 - share) < 0.05 and "--nodata 0" in found[0].message.on_command_line
    assert found[0].filename == __file__
    bands[1, 0, 0] = bands[1, -1, -1] = 9  # not in all bands
    for options in ({"nodata": 0}, {"mask": ("mask.tif", "values 1")}):
        write_raster(tmp_path / "mask.tif", (bands[:1] == 0).astype(np.uint8))
        with warnings.catch_warnings():
            warnings.simplefilter("error", NodataWarning)
            raster.open_scene(path, **options)
            raster.open_scene(write_raster(tmp_path / "other.tif", bands))
            raster.open_scene(write_raster(tmp_path / "tag.tif", bands, nodata=0))


def test_much_of_one_value_that_a_mask_or_another_nodata_tag_does_not_leave_out(tmp_path):
    bands = smooth_scene(2, 200, 300)
    y, x = np.mgrid[:200, :300]
    around = (x + y < 100) | (x + y > 400)
    bands[:, around] = 0
    clouds = ((y > 100) & (x < 250)).astype(np.uint8)
    path = write_raster(tmp_path / "scene.tif", bands)
    write_raster(tmp_path / "clouds.tif", clouds[None])
    write_raster(tmp_path / "coarse.tif", clouds[None, ::10, ::10], transform=TRANSFORM @ Affine.scale(10))
    write_raster(tmp_path / "around.tif", around[None].astype(np.uint8))
    tagged = write_raster(tmp_path / "tagged.tif", bands, nodata=255)
    for opened, mask in ((path, None), (path, "clouds.tif"), (path, "coarse.tif"), (tagged, None)):
        left = around & (clouds == 0) if mask else around
        what = "has no nodata tag, " if opened is path else r"tag 255, .* nodata=0, which replaces"
        with pytest.warns(NodataWarning, match=what) as found:
            raster.open_scene(opened, mask=None if mask is None else (mask, "values 1"))
        told = int(str(found[0].message).split("about ")[1].split("%")[0])
        assert abs(told / 100 - left.mean()) < 0.05
    with rasterio.open(write_raster(tmp_path / "masked.tif", bands), "r+") as file:
        file.write_mask(~around)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NodataWarning)
        raster.open_scene(path, mask=("around.tif", "values 1"))
        raster.open_scene(tmp_path / "masked.tif")
        raster.open_scene(tagged, nodata=0)


def test_no_valid_pixel(tmp_path):
    path = write_raster(tmp_path / "scene.tif", np.zeros((2, 4, 5), np.uint8), nodata=0)
    with pytest.raises(NoRowsError, match=r"scene.tif has no rows: of its 20 pixels, none is valid"):
        rows_of(raster.open_scene(path))


def test_a_scene_of_one_pixel(tmp_path):
    path = write_raster(tmp_path / "scene.tif", BANDS[:, :1, :1])
    np.testing.assert_array_equal(rows_of(raster.open_scene(path)), BANDS[:, :1, 0].T)
    with pytest.raises(
        ParameterError, match=r"patch must be at most 1: .*scene.tif has 1 x 1 pixels .*; got 3"
    ):
        raster.open_scene(path, patch=3)
    larger = write_raster(tmp_path / "larger.tif", BANDS)
    both = raster.open_scene([larger, path], patch=3)  # neighbours are outside, so missing
    assert np.isnan(rows_of(both)[-1]).sum() == 8 * 3
