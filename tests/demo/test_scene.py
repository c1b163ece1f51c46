"""The generated scene: shares of classes, reproducibility, splits that keep the rare class."""

from __future__ import annotations

import numpy as np
import pytest

from oldgrowth.demo.scene import (
    CLASS_NAMES,
    MIN_SIDE,
    Scene,
    make_scene,
    split_blocks,
)
from oldgrowth.errors import DataError, ParameterError

RARE = len(CLASS_NAMES) - 1


@pytest.fixture(scope="module")
def scene() -> Scene:
    return make_scene(400, 410, seed=3)


def shares(labels: np.ndarray) -> np.ndarray:
    return np.bincount(labels.ravel(), minlength=len(CLASS_NAMES)) / labels.size


def test_types_and_shapes(scene: Scene) -> None:
    assert scene.shape == (400, 410)
    assert scene.bands.shape == (6, 400, 410) and scene.bands.dtype == np.uint16
    assert scene.labels.shape == scene.truth.shape == (400, 410) and scene.labels.dtype == np.uint8
    assert all(len(np.unique(band)) > 256 for band in scene.bands), "the bands need 16 bits"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [(MIN_SIDE, MIN_SIDE), (150, 240)])
def test_one_class_dominates_and_one_is_rare(size: tuple[int, int], seed: int) -> None:
    made = make_scene(*size, seed=seed)
    for labels in (made.labels, made.truth):
        share = shares(labels)
        assert share[0] > 0.5
        assert (share[1:RARE] > 0.002).all()
        assert 0 < share[RARE] < 0.001


def test_rare_class_has_enough_pixels_at_its_usual_size() -> None:
    made = make_scene(600, 600, seed=0)
    assert 100 <= (made.labels == RARE).sum() <= 300


def test_rare_class_lies_in_a_few_compact_objects(scene: Scene) -> None:
    rare = scene.truth == RARE
    padded = np.pad(rare, 1)
    neighbours = (
        sum(padded[1 + dy : 401 + dy, 1 + dx : 411 + dx] for dy in (-1, 0, 1) for dx in (-1, 0, 1)) - 1
    )
    assert neighbours[rare].mean() > 4
    blocks = {(y // 40, x // 40) for y, x in np.argwhere(rare)}
    assert 2 <= len(blocks) <= 12


def test_some_labels_are_wrong_but_none_of_the_rare_class(scene: Scene) -> None:
    wrong = scene.labels != scene.truth
    assert 0.005 < wrong.mean() < 0.05
    assert not wrong[scene.truth == RARE].any()
    assert not wrong[scene.labels == RARE].any()


def test_bands_are_spatially_correlated(scene: Scene) -> None:
    for band in scene.bands.astype(float):
        near = np.corrcoef(band[:, 1:].ravel(), band[:, :-1].ravel())[0, 1]
        far = np.corrcoef(band[:, 150:].ravel(), band[:, :-150].ravel())[0, 1]
        assert near > 0.5 and near > far + 0.3


def test_same_seed_same_scene() -> None:
    one, same, other = (make_scene(120, 110, seed=seed) for seed in (5, 5, 6))
    for name in ("bands", "labels", "truth"):
        np.testing.assert_array_equal(getattr(one, name), getattr(same, name))
        assert (getattr(one, name) != getattr(other, name)).any()


@pytest.mark.parametrize(
    ("height", "width", "name"), [(99, 100, "height"), (100, 5, "width"), (100.5, 100, "height")]
)
def test_too_small_a_scene_is_refused(height: int, width: int, name: str) -> None:
    with pytest.raises(ParameterError, match=f"{name} must be a whole number of at least 100"):
        make_scene(height, width)


def test_every_class_is_in_train_and_test(scene: Scene) -> None:
    test = split_blocks(scene, 0.3, seed=1)
    assert test.shape == scene.shape and test.dtype == bool
    assert 0.25 < test.mean() < 0.37
    for label in range(len(CLASS_NAMES)):
        share = test[scene.truth == label].mean()
        assert 0.1 < share < 0.7, CLASS_NAMES[label]
    np.testing.assert_array_equal(test, split_blocks(scene, 0.3, seed=1))
    assert (test != split_blocks(scene, 0.3, seed=2)).any()


def test_blocks_are_whole(scene: Scene) -> None:
    test = split_blocks(scene, block=30, seed=0)
    for y in range(0, 400, 30):
        for x in range(0, 410, 30):
            part = test[y : y + 30, x : x + 30]
            assert part.all() or not part.any()


def test_impossible_splits_are_refused(scene: Scene) -> None:
    with pytest.raises(DataError, match="choose a smaller block"):
        split_blocks(scene, block=410)
    for share in (0.0, 1.0, float("nan")):
        with pytest.raises(ParameterError, match="test_share must be between 0 and 1"):
            split_blocks(scene, share)
    with pytest.raises(ParameterError, match="block must be"):
        split_blocks(scene, block=0)
