"""Accuracies by area: the worked example of Olofsson et al. (2014), and the same from single points."""

import math

import numpy as np
import pytest

from oldgrowth.errors import EmptyStratumError, ParameterError
from oldgrowth.raster import area_adjusted

NAMES = ["deforestation", "forest gain", "stable forest", "stable non-forest"]
COUNTS = [[66, 0, 5, 4], [0, 55, 8, 12], [1, 0, 153, 11], [2, 1, 9, 313]]
PIXELS = [200_000, 150_000, 3_200_000, 6_450_000]


def test_the_worked_example_to_its_printed_digits():
    found = area_adjusted(COUNTS, PIXELS, NAMES, 0.09)
    assert found.overall.text(2) == "0.95 ± 0.02"
    users = [label.users.text(2) for label in found.classes]
    assert users == ["0.88 ± 0.07", "0.73 ± 0.10", "0.93 ± 0.04", "0.96 ± 0.02"]
    producers = [label.producers.text(2) for label in found.classes]
    assert producers == ["0.75 ± 0.21", "0.85 ± 0.25", "0.93 ± 0.03", "0.96 ± 0.02"]
    assert round(found.classes[0].share.value * found.pixels) == 235_086
    areas = [found.area(label).text(0) for label in found.classes]
    assert areas == ["21,158 ± 6,158", "11,686 ± 3,756", "285,770 ± 15,510", "581,386 ± 16,282"]
    assert found.area_unit == "ha" and "21,158 ± 6,158" in str(found)
    assert [label.points for label in found.classes] == [75, 75, 165, 325]


def by_points(counts, pixels, numerator, denominator):
    """A ratio of two totals and its standard error, from the single points of each stratum."""
    parts = []
    for i, size in enumerate(pixels):
        truth = np.repeat(np.arange(counts.shape[1]), counts[i])
        y, x = (np.array([float(of(i, j)) for j in truth]) for of in (numerator, denominator))
        parts.append((size, y, x))
    total_y, total_x = (
        sum(size * values.mean() for size, *two in parts for values in [two[k]]) for k in (0, 1)
    )
    ratio = total_y / total_x
    variance = sum(size**2 * np.var(y - ratio * x, ddof=1) / len(y) for size, y, x in parts)
    return ratio, math.sqrt(variance) / total_x


def test_estimates_are_those_of_ratios_of_single_points():
    """The general estimator of ratios for stratified samples, of which the paper's are special cases."""
    rng = np.random.default_rng(0)
    counts, pixels = rng.integers(0, 40, (3, 4)) + 2 * np.eye(3, 4, dtype=int), [5_000, 70_000, 900_000]
    found = area_adjusted(counts, pixels, list("abcd"))
    for j, label in enumerate(found.classes):
        expected = {
            "users": (lambda i, k, j=j: i == k == j, lambda i, k, j=j: i == j),
            "producers": (lambda i, k, j=j: i == k == j, lambda i, k, j=j: k == j),
            "share": (lambda i, k, j=j: k == j, lambda i, k: 1),
        }
        for name, ratio in expected.items():
            if (name, j) != ("users", 3):
                got = getattr(label, name)
                assert (got.value, got.error) == pytest.approx(by_points(counts, pixels, *ratio)), (name, j)
    overall = by_points(counts, pixels, lambda i, k: i == k, lambda i, k: 1)
    assert (found.overall.value, found.overall.error) == pytest.approx(overall)
    assert sum(label.share.value for label in found.classes) == pytest.approx(1)


def test_intervals_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(1)
    pixels, truth = [300, 3_000, 30_000], np.array([[0.8, 0.1, 0.1], [0.1, 0.7, 0.2], [0.1, 0.2, 0.7]])
    ground = [rng.choice(3, size, p=p) for size, p in zip(pixels, truth, strict=True)]
    areas = np.bincount(np.concatenate(ground), minlength=3) / sum(pixels)
    held = np.zeros(3)
    for _ in range(400):
        drawn = [rng.choice(values, 100, replace=False) for values in ground]
        found = area_adjusted([np.bincount(d, minlength=3) for d in drawn], pixels, list("abc"))
        intervals = [label.share.interval for label in found.classes]
        held += [low <= area <= high for (low, high), area in zip(intervals, areas, strict=True)]
    assert (held / 400 > 0.9).all(), held


def test_a_class_that_the_map_lacks_has_an_area_and_is_never_found():
    found = area_adjusted([[8, 0, 2], [1, 9, 0]], [1_000, 9_000], ["a", "b", "new"])
    new = found.classes[2]
    assert (new.mapped, new.points, new.producers.value, new.producers.error) == (0, 0, 0, 0)
    assert math.isnan(new.users.value) and new.users.text(3) == "-"
    assert new.share.value == pytest.approx(0.1 * 0.2) and new.share.error > 0


def test_a_class_of_a_single_point_has_no_interval():
    found = area_adjusted([[1, 0], [3, 17]], [1_000, 9_000], ["rare", "other"])
    assert found.classes[0].users.text(2) == "1.00 ± -" and found.overall.value == pytest.approx(
        0.1 + 0.9 * 0.85
    )
    assert math.isnan(found.overall.error) and math.isnan(found.classes[1].share.error)
    assert found.classes[1].users.error == pytest.approx(math.sqrt(0.85 * 0.15 / 19)), (
        "it does not depend on it"
    )


def test_a_class_of_which_all_pixels_are_known_adds_no_error():
    found = area_adjusted([[1, 0], [0, 20]], [1, 9_000], ["rare", "other"])
    assert (found.classes[0].users.value, found.overall.value, found.overall.error) == (1, 1, 0)
    half = area_adjusted([[2, 2], [3, 17]], [4, 9_000], ["rare", "other"])
    assert half.classes[0].users.error == 0 and half.overall.error > 0


def test_a_class_without_pixels_needs_no_points():
    found = area_adjusted([[0, 0], [3, 17]], [0, 9_000], ["none", "other"])
    assert math.isnan(found.classes[0].users.value) and found.classes[0].producers.value == 0
    assert found.classes[0].share.value == pytest.approx(0.15) and found.overall.value == pytest.approx(0.85)
    never = area_adjusted([[20, 0], [17, 0]], [500, 500], ["a", "b"]).classes[1]
    assert math.isnan(never.producers.value) and never.share.value == 0, "no point has it"


def test_a_class_without_points_is_refused():
    with pytest.raises(EmptyStratumError, match=r"'rare' covers 1,000 pixels of the map \(10\.00%\)"):
        area_adjusted([[0, 0], [3, 17]], [1_000, 9_000], ["rare", "other"])


@pytest.mark.parametrize(
    ("counts", "mapped", "classes", "words"),
    [
        ([[1, 2], [3, 4], [5, 6]], [9, 9, 9], "ab", "counts must be whole numbers"),
        ([[1.5, 2], [3, 4]], [9, 9], "ab", "counts must be whole numbers"),
        ([[-1, 2], [3, 4]], [9, 9], "ab", "counts must be whole numbers"),
        ([], [], "", "counts must be whole numbers"),
        ([[1, 2], [3, 4]], [9], "ab", "mapped must be numbers of pixels of 2 classes"),
        ([[0, 0], [0, 0]], [0, 0], "ab", "mapped must be numbers of pixels"),
        ([[1, 2], [3]], [9, 9], "ab", r"counts must be whole numbers.*; got \[\[1, 2\], \[3\]\]"),
        ([[1, 2], [3, 4]], [[9], [9, 9]], "ab", "mapped must be numbers of pixels of 2 classes"),
        ([[1, 2], [3, 4]], [9, 9], None, "classes must be the names of 2 classes; got None"),
        ([[1, 2], [3, 4]], [9, 9], "abc", "classes must be the names of 2 classes"),
        ([[1, 2], [3, 4]], [9, 6], "ab", "at most the pixels of each class; 'b' has 6"),
    ],
)
def test_bad_counts_are_refused(counts, mapped, classes, words):
    with pytest.raises(ParameterError, match=words):
        area_adjusted(counts, mapped, None if classes is None else list(classes))
