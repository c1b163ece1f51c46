"""The data summary does not depend on the division of rows into chunks."""

from math import fsum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from oldgrowth.rows.data_summary import DataSummary, ExactSum, SummaryBuilder


@given(arrays(np.float64, st.integers(1, 60), elements=st.floats(0, 1e300)), st.integers(1, 59))
def test_a_sum_is_exact_in_any_parts(values: np.ndarray, cut: int) -> None:
    total = ExactSum()
    for part in (values[cut:], values[:cut]):
        total.add(part)
    assert total.value() == fsum(values)


def found(targets: np.ndarray, weights: np.ndarray | None, chunk: int, n_classes: int) -> DataSummary:
    finder = SummaryBuilder(3, classification=n_classes > 0)
    for first in range(0, len(targets), chunk):
        part = slice(first, first + chunk)
        finder.add(targets[part], None if weights is None else weights[part])
    return finder.summary(n_classes)


@pytest.mark.parametrize("n_classes", [0, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_chunks_do_not_show(n_classes: int, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 4, 1000).astype(float) if n_classes else rng.normal(size=1000)
    weights = rng.lognormal(0, 5, 1000) if weighted else None
    first, *others = (found(targets, weights, chunk, n_classes) for chunk in (1000, 1, 7, 333))
    for other in others:
        assert (first.n_rows, first.weight, first.low, first.high) == (
            other.n_rows,
            other.weight,
            other.low,
            other.high,
        )
        np.testing.assert_array_equal(first.class_rows, other.class_rows)
        np.testing.assert_array_equal(first.class_weight, other.class_weight)
    assert first.weight == (fsum(weights) if weighted else 1000)
    if n_classes:
        np.testing.assert_array_equal(first.class_rows, np.bincount(targets.astype(int), minlength=5))
        expected = [fsum(weights[targets == k]) if weighted else (targets == k).sum() for k in range(5)]
        np.testing.assert_array_equal(first.class_weight, expected)
    else:
        assert (first.low, first.high) == (targets.min(), targets.max())
