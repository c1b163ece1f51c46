"""Pictures of maps, and of importances by band and place in the patch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
import rasterio
from affine import Affine
from matplotlib.colors import to_hex

from oldgrowth import RandomForestClassifier, RandomForestRegressor, load, plot, raster
from oldgrowth.errors import DataError, NoDataError, ParameterError

matplotlib.use("Agg")
from matplotlib import pyplot

PLACE = {"crs": "EPSG:32637", "transform": Affine(30.0, 0.0, 820_000.0, 0.0, -30.0, 830_000.0)}
COLORS = {"lake": "#2040ff", "$wood$": "#108020"}


@pytest.fixture(autouse=True)
def _no_figure_is_left() -> Iterator[None]:
    yield
    pyplot.close("all")


def write(path: Path, bands: np.ndarray, **options: Any) -> Path:
    shape = dict(zip(("count", "height", "width"), bands.shape, strict=True))
    with rasterio.open(path, "w", driver="GTiff", dtype=bands.dtype, **shape, **(PLACE | options)) as file:
        file.write(bands)
    return path


class Made:
    """Maps of a scene whose class depends on the pixel to the right of the centre in the second band."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(0)
        self.bands = rng.integers(1, 255, (3, 40, 60), dtype=np.uint8)
        self.bands[:, :5] = 0
        self.truth = np.roll(self.bands[1], -1, axis=1) > 127
        scene = raster.open_scene(write(folder / "scene.tif", self.bands, nodata=0), patch=3)
        labels = write(folder / "labels.tif", 1 + self.truth[None].astype(np.uint8))
        data = scene.with_labels(labels)
        self.forest = RandomForestClassifier(6, max_features=None, random_state=0).fit(data)
        self.forest.classes_ = np.array(["$wood$", "lake"])
        self.map, self.margin = folder / "map.tif", folder / "margin.tif"
        raster.write_map(self.forest, scene, self.map, confidence=self.margin, colors=COLORS)
        self.values = folder / "values.tif"
        raster.write_map(RandomForestRegressor(3, random_state=0).fit(data), scene, self.values)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("made"))


def test_a_map_has_the_colours_and_names_of_its_classes(made: Made) -> None:
    ax = plot.map(made.map)
    (image,) = ax.images
    with rasterio.open(made.map) as file:
        values = file.read(1)
    pixels = image.get_array()
    for value, color in ((1, COLORS["$wood$"]), (2, COLORS["lake"])):
        assert {to_hex(one[:3] / 255) for one in np.unique(pixels[values == value], axis=0)} == {color}
    assert (pixels[..., 3] == np.where(values == 0, 0, 255)).all()
    assert image.get_extent() == [820_000, 821_800, 828_800, 830_000]
    key = ax.get_legend()
    assert [text.get_text() for text in key.get_texts()] == [r"\$wood\$", "lake"]
    assert [to_hex(patch.get_facecolor()) for patch in key.get_patches()] == list(COLORS.values())[::-1]
    assert ax.get_xlabel() == "EPSG:32637" and ax.get_title("left") == "map.tif"
    ax.figure.canvas.draw()


def test_the_confidence_is_beside_the_map(made: Made, tmp_path: Path) -> None:
    left, right = plot.map(str(made.map), made.margin)
    with rasterio.open(made.margin) as file:
        expected = file.read(1, masked=True)
    shown = right.images[0].get_array()
    np.testing.assert_allclose(shown.filled(-1), np.ma.masked_invalid(expected).filled(-1))
    assert right.images[0].get_clim() == (0, 1) and right.get_title("left") == "Confidence: margin"
    axes = pyplot.subplots(1, 2)[1]
    assert plot.map(made.map, made.margin, ax=axes) is axes and len(pyplot.get_fignums()) == 2
    left.figure.savefig(tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes()[:4] == b"\x89PNG"


def test_values_of_a_regression_have_a_scale_and_no_legend(made: Made) -> None:
    ax = plot.map(made.values)
    assert ax.get_legend() is None and ax.images[0].get_array().mask[:5].all()


def test_a_large_map_is_read_from_its_overviews(tmp_path: Path) -> None:
    lines = np.arange(6000, dtype=np.uint8)[:, None] // 100 % 5 + 1
    file = write(tmp_path / "large.tif", np.broadcast_to(lines, (1, 6000, 2000)), nodata=0, tiled=True)
    with rasterio.open(file, "r+") as large:
        large.build_overviews([4], rasterio.enums.Resampling.nearest)
        large.write(np.zeros((1, 6000, 2000), dtype=np.uint8))  # pixels; overviews are left as they are
    ax = plot.map(file)
    pixels = ax.images[0].get_array()
    assert pixels.shape[:2] == (1200, 400) and (pixels[..., 3] == 255).any()
    assert ax.images[0].get_extent() == [820_000, 880_000, 650_000, 830_000]


def test_a_map_with_many_classes_or_without_names(tmp_path: Path) -> None:
    many = np.arange(100, dtype=np.uint8).reshape(1, 10, 10)
    many[0, 5:, :5] = 7
    texts = [
        text.get_text() for text in plot.map(write(tmp_path / "many.tif", many)).get_legend().get_texts()
    ]
    assert len(texts) == 31 and texts[-1] == "and 45 more classes" and "7" in texts
    measured = np.arange(90_000, dtype=np.uint16).reshape(1, 300, 300)
    assert plot.map(write(tmp_path / "measured.tif", measured)).get_legend() is None


def test_what_is_no_map_is_refused(made: Made, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"scene.tif has 3 bands, but a map has one"):
        plot.map(made.map.with_name("scene.tif"))
    empty = write(tmp_path / "empty.tif", np.zeros((1, 4, 4), dtype=np.uint8), nodata=0)
    with pytest.raises(NoDataError, match="all of its pixels are nodata"):
        plot.map(empty)
    with pytest.raises(DataError, match="nowhere"):
        plot.map(tmp_path / "nowhere.tif")


def test_importances_by_band_and_place(made: Made, tmp_path: Path) -> None:
    made.forest.save(tmp_path / "forest.og")
    for forest in (made.forest, load(tmp_path / "forest.og")):
        ax = plot.patch_importances(forest)
        squares = [np.asarray(image.get_array()) for image in ax.images]
        labels = [text.get_text() for text in ax.texts]
        assert labels[0].startswith("B2 ") and len(squares) == 3
        assert squares[0].shape == (3, 3) and np.unravel_index(squares[0].argmax(), (3, 3)) == (1, 2)
        assert squares[0][1, 2] > 0.9 and sum(map(np.sum, squares)) == pytest.approx(1)
        assert labels[0].endswith(f"{squares[0].sum():.1%}")
        ax.figure.canvas.draw()


def test_importances_of_some_features(made: Made) -> None:
    scene = raster.open_scene(made.map.with_name("scene.tif"), patch=3)
    data = scene.with_labels(made.map.with_name("labels.tif")).select(["B2(1,0)", "B1(0,-1)"])
    forest = RandomForestClassifier(2, random_state=0).fit(data)
    squares = {text.get_text().split()[0]: image for text, image in _squares(plot.patch_importances(forest))}
    assert squares.keys() == {"B1", "B2"}
    shares = np.ma.filled(squares["B1"].get_array().astype(float), np.nan)
    assert np.isfinite(shares).sum() == 1 and np.isfinite(shares[0, 1])


def _squares(ax: Any) -> Any:
    return zip(ax.texts, ax.images, strict=True)


def test_importances_by_place_need_a_scene() -> None:
    forest = RandomForestClassifier(2).fit([[1], [2]], [1, 2])
    with pytest.raises(DataError, match="The forest was not trained on a scene"):
        plot.patch_importances(forest)


def test_a_confidence_with_another_grid_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "map.tif", np.ones((1, 40, 60), dtype=np.uint8))
    small = write(tmp_path / "small.tif", np.ones((1, 20, 30), dtype=np.float32))
    there = write(tmp_path / "there.tif", np.ones((1, 40, 60), dtype=np.float32), transform=Affine.scale(30))
    for other in (small, there):
        with pytest.raises(
            ParameterError, match=r"confidence must be a raster with the grid of the map, 60 x"
        ):
            plot.map(path, confidence=other)
