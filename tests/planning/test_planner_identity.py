"""The identity of a fit, by which a checkpoint knows it again."""

import numpy as np

from oldgrowth.planning.planner import _plain


def test_lists_of_values_are_distinguished():
    assert _plain([0, 1]) != _plain([0, 2])
    assert _plain(np.array([0, 1])) == _plain((0, 1)) == [0, 1]
    assert _plain({"a": [np.float32(0.5)]}) == {"a": [0.5]}
