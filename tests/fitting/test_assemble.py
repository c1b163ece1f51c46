"""Stage 5, what it keeps of each tree: there may be millions."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from oldgrowth.fitting.assemble import _places
from oldgrowth.storage.grown_trees import BottomTree, TreesOnDisk
from oldgrowth.storage.workspace import spill_workspace
from stages import small_data, small_plan

TOPS, BUCKETS = 10, 2000


@pytest.mark.parametrize("levels", [(), (3, 0)], ids=["numbers", "categories"])
def test_what_is_known_of_a_tree_takes_few_bytes(tmp_path: Path, levels: tuple[int, ...]) -> None:
    plan = replace(small_plan(small_data()), levels=levels)
    sets = np.arange(2, dtype=np.uint16)[: 2 * bool(levels)]
    with spill_workspace(tmp_path) as workspace:
        trees = TreesOnDisk(workspace, 2, plan)
        for place in range(TOPS * BUCKETS):
            nodes = np.zeros(1 + place % 3, dtype=np.uint64)
            tree = BottomTree(nodes, np.zeros(3, dtype=np.float32), np.zeros(2), place % 7, sets)
            trees.add(place // BUCKETS, place % BUCKETS, 0, [tree])
        tracemalloc.start()
        starts, depth = _places(trees, [(BUCKETS, 1)] * TOPS, plan)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    n = TOPS * BUCKETS
    assert depth == 6
    assert np.array_equal(starts["nodes"], np.cumsum([0, *(1 + np.arange(n) % 3)]))
    assert np.array_equal(starts["table"], np.arange(n + 1))  # a row of three classes each
    assert "sets" not in starts or np.array_equal(starts["sets"], 2 * np.arange(n + 1))
    assert peak < n * 8 * (len(starts) + 3)  # and what is looked up for one top tree at a time
