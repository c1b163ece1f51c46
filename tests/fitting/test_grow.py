"""Stage 4: tasks for buckets of any size, and trees that depend on neither tasks nor neighbours."""

import numpy as np
import pytest

from oldgrowth import RandomForestClassifier, RandomForestRegressor
from oldgrowth.fitting.tasks import TopTasks
from oldgrowth.fitting.top_trees import TopTree, only_bucket
from oldgrowth.storage.grown_trees import NO_SETS, TreesInMemory
from stages import small_data, small_plan


class Sizes:
    """The part of a store that tasks need."""

    def __init__(self, *sizes: list[int]) -> None:
        self._sizes = sizes

    def sizes(self, top: int) -> np.ndarray:
        return np.array(self._sizes[top])

    def is_single_leaf(self, top: int, bucket: int, rows: int) -> bool:
        return False


def test_the_largest_bucket_comes_first_and_trees_are_numbered_through() -> None:
    two = TopTree(
        np.array([0, 2**63, 2**63 + 1], dtype=np.uint64), np.ones(2, np.uint32), np.zeros(3), NO_SETS
    )
    store, trees = Sizes([5, 7], [9]), TreesInMemory()
    tops = [TopTasks.of(store, i, top, [4, 2], trees) for i, top in enumerate([two, only_bucket(3)])]
    tasks = [task for top in tops for task in top.tasks(store)]
    assert [(t.top, t.rows, t.first_tree, t.trees) for t in tasks] == [
        (0, 7, 0, range(4)),
        (0, 5, 0, range(4)),
        (1, 9, 4, range(2)),
    ]


def test_trees_are_as_many_as_asked_for() -> None:
    data = small_data()
    for n, expected in [(1, [1]), (4, [4]), (6, [4, 2]), (9, [4, 4, 1])]:
        assert small_plan(data, n_estimators=n).trees_of_tops(data.n_rows) == expected
        assert small_plan(data, n_estimators=n, bucket_size=5000).trees_of_tops(data.n_rows) == [n]


def test_a_forest_beyond_16_bit_codes_is_exact() -> None:
    """More than 65,535 rows in one bucket: trees start on 32-bit codes and are narrowed on the way down."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(70_000, 4)).astype(np.float32)
    x[::7, 3] = np.nan
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    wide = RandomForestClassifier(1, bucket_size=10**6, bootstrap=False, max_features=None, random_state=0)
    assert wide.fit(x, y).score(x, y) == 1.0
    assert wide.fit_report_.buckets == 1


def test_a_bucket_in_which_no_row_was_drawn_is_grown_on_all() -> None:
    x = np.arange(40.0)[:, None]
    model = RandomForestClassifier(50, bucket_size=2, top_sample=40, random_state=0, max_samples=0.1)
    model.fit(x, np.arange(40) % 2)
    assert set(model.predict(x)) == {0, 1}
    assert np.isfinite(model.predict_proba(x)).all()


@pytest.mark.parametrize("forest", [RandomForestClassifier, RandomForestRegressor])
def test_balanced_bottom_trees_split_evenly_down_to_pure_leaves(forest: type) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2048, 4)).astype(np.float32)
    y = rng.integers(0, 2, 2048)
    shared = {"n_estimators": 1, "bootstrap": False, "random_state": 0}
    even = forest(bottom_balance=1, **shared).fit(x, y)
    assert even.fit_report_.depth == 11
    assert (even.predict(x) == y).all()
    depths = [forest(bottom_balance=b, **shared).fit(x, y).fit_report_.depth for b in (0, 0.1)]
    assert depths[0] > depths[1] > 11


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@pytest.mark.parametrize("n_classes", [5, 300, 4000])
def test_whole_weights_that_are_looked_up_give_the_trees_of_those_that_are_counted(n_classes: int) -> None:
    """More than 15 for a row are too many to count, as are more than 4,096 classes."""
    rng = np.random.default_rng(n_classes)
    x, y = rng.random((4000, 4)).round(2), rng.permutation(4000) % n_classes
    forests = [
        RandomForestClassifier(2, bootstrap=False, random_state=0).fit(x, y, weights).forest_
        for weights in (None, np.full(4000, 16.0))
    ]
    np.testing.assert_array_equal(forests[0].nodes, forests[1].nodes)
