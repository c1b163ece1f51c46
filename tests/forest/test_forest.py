"""The assembled forest: checked, immutable, and the same after a pickle."""

import pickle

import numpy as np
import pytest

from helpers import make_data
from oldgrowth import RandomForestClassifier, RandomForestRegressor
from oldgrowth.forest.forest import Forest


@pytest.fixture(scope="module")
def forest() -> Forest:
    x, y = make_data(500, 5, 3, seed=0)
    return RandomForestClassifier(6, bucket_size=100, max_depth=6, random_state=0).fit(x, y).forest_


def test_a_pickle_holds_the_same_forest(forest: Forest) -> None:
    stored = pickle.dumps(forest)
    assert pickle.loads(stored).digest() == forest.digest()
    assert len(stored) < 8 * forest.n_nodes + forest.table.nbytes + 5000


def test_arrays_cannot_be_written_to(forest: Forest) -> None:
    with pytest.raises(ValueError, match="read-only"):
        forest.nodes[0] = 0


@pytest.mark.parametrize(
    "array", ["top_nodes", "nodes", "node_start", "table_start", "bottom_start", "trees_of_top"]
)
def test_a_damaged_forest_is_refused(forest: Forest, array: str) -> None:
    arrays = {name: getattr(forest, name).copy() for name in forest._arrays}
    for value in (0, 1, 2**40, 2**63 - 1):
        damaged = arrays | {array: arrays[array].copy()}
        damaged[array][len(damaged[array]) // 2] = value
        if (damaged[array] == arrays[array]).all():
            continue
        with pytest.raises(ValueError, match="corrupted"):
            Forest(forest.n_features, forest.n_classes, damaged).check()


def test_a_node_takes_eight_bytes(forest: Forest) -> None:
    assert forest.nodes.itemsize == 8
    assert forest.n_trees == 6


def test_regression_values_survive_the_leaf_format() -> None:
    x = np.arange(6.0)[:, None]
    for y in ([1e300, -1e300, 1e-300, 0.0, 3.0, -7.25], [1e-300, 2e-300, 0.0, 3e-300, 1e-301, 5e-300]):
        model = RandomForestRegressor(1, bootstrap=False).fit(x, y)
        np.testing.assert_allclose(model.predict(x), y, rtol=1e-15, atol=1e-15 * np.abs(y).max())
