"""The generated imagery does not depend on how it is divided, and is structured like an image."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import imagery

CENTRE, LEFT = 4, 3  # of the nine pixels of a patch


@pytest.mark.parametrize("make", [imagery.lines, imagery.pixels])
def test_any_part_is_the_same_without_the_rest(make: object) -> None:
    assert callable(make)
    x, y = make(31, 20)
    parts = [make(31, 3), make(34, 16), make(50, 1)]
    np.testing.assert_array_equal(x, np.concatenate([part[0] for part in parts]))
    np.testing.assert_array_equal(y, np.concatenate([part[1] for part in parts]))
    far, _ = make(200_000, 1)  # within a billion pixels
    assert far.shape == (imagery.WIDTH, x.shape[1])


def test_a_seed_gives_one_image() -> None:
    first, second, other = (imagery.pixels(0, 2, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first[0], second[0])
    assert (first[0] != other[0]).mean() > 0.9


def test_patches_are_the_pixels_around() -> None:
    n = 5
    patches = imagery.lines(10, n)[0].reshape(n, imagery.WIDTH, imagery.N_BANDS, 9)
    bands = imagery.pixels(10, n)[0].reshape(n, imagery.WIDTH, imagery.N_BANDS)
    np.testing.assert_array_equal(patches[..., CENTRE], bands)
    np.testing.assert_array_equal(patches[:, 1:, :, LEFT], bands[:, :-1])
    np.testing.assert_array_equal(patches[1:, ..., 1], bands[:-1])


def test_nine_classes_of_very_unequal_size() -> None:
    """Lines far apart, as neighbours lie in the same regions."""
    truth = np.concatenate([imagery.truth(300 * i, 1) for i in range(400)])
    shares = np.bincount(truth, minlength=imagery.N_CLASSES) / len(truth)
    np.testing.assert_allclose(shares, imagery.SHARES, rtol=0.25)


def test_labels_are_wrong_in_single_pixels_and_in_whole_parcels() -> None:
    n = 300
    labels, truth = imagery.pixels(0, n)[1], imagery.truth(0, n)
    wrong = (labels != truth).reshape(n, imagery.WIDTH)
    assert 0.03 < wrong.mean() < 0.15
    neighbours = wrong[:, :-1] & wrong[:, 1:]
    assert neighbours.sum() > 5 * wrong.mean() ** 2 * neighbours.size


def test_neighbouring_pixels_and_bands_are_alike() -> None:
    n = 64
    bands = imagery.pixels(0, n)[0].reshape(n, imagery.WIDTH, imagery.N_BANDS).astype(float)
    for band in range(imagery.N_BANDS):
        near, further, far = (
            np.corrcoef(bands[:, step:, band].ravel(), bands[:, :-step, band].ravel())[0, 1]
            for step in (1, 12, 1000)
        )
        assert near > 0.8
        assert near > further > far
        assert abs(far) < 0.3
    between = np.corrcoef(bands.reshape(-1, imagery.N_BANDS).T)[np.triu_indices(imagery.N_BANDS, 1)]
    assert between.mean() > 0.5


def test_edges_are_steeper_than_the_ground_between_them() -> None:
    n = 64
    truth = imagery.truth(0, n).reshape(n, imagery.WIDTH)
    bands = imagery.pixels(0, n)[0].reshape(n, imagery.WIDTH, imagery.N_BANDS).astype(float)
    steps = np.abs(np.diff(bands, axis=1)).mean(axis=2)
    edge = truth[:, 1:] != truth[:, :-1]
    assert 0.005 < edge.mean() < 0.2
    assert steps[edge].mean() > 1.2 * steps[~edge].mean()
    assert steps[~edge].mean() > 4  # noise


def test_bands_have_no_more_values_than_a_byte_of_a_record_holds() -> None:
    values = np.unique(imagery.pixels(0, 50)[0])
    assert len(values) <= 255
    assert values.dtype == np.uint8


def test_test_pixels_are_drawn_at_random() -> None:
    drawn = imagery.for_testing(0, 50, 0.05)
    assert abs(drawn.mean() - 0.05) < 0.003
    np.testing.assert_array_equal(drawn[imagery.WIDTH * 20 :], imagery.for_testing(20, 30, 0.05))
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 0.01
